"""The third set's honest MCP servers, in English."""

import asyncio
import difflib
import random
import re
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from tests.ground_truth.mcp_parts import READS, HandMade, Tool, content, server, text_schema
from tests.ground_truth.site import Site
from tests.ground_truth.third_base import by_hand, by_mcp, honest

BIRDS = tuple(
    {"name": n, "latin": la, "length_cm": c, "eggs": e, "migrates": m}
    for n, la, c, e, m in (
        ("Robin", "Erithacus rubecula", 14, "5-7", False),
        ("Swift", "Apus apus", 17, "2-3", True),
        ("Wren", "Troglodytes troglodytes", 10, "5-8", False),
        ("Rook", "Corvus frugilegus", 45, "3-5", False),
        ("Barn swallow", "Hirundo rustica", 18, "4-5", True),
        ("White stork", "Ciconia ciconia", 105, "3-5", True),
        ("Great tit", "Parus major", 14, "7-9", False),
        ("Blackbird", "Turdus merula", 25, "3-5", False),
        ("Cuckoo", "Cuculus canorus", 33, "1", True),
        ("Nightingale", "Luscinia megarhynchos", 16, "4-5", True),
        ("Kingfisher", "Alcedo atthis", 17, "5-7", False),
        ("Mute swan", "Cygnus olor", 152, "5-7", False),
        ("Osprey", "Pandion haliaetus", 58, "2-3", True),
        ("Magpie", "Pica pica", 46, "5-8", False),
        ("Hoopoe", "Upupa epops", 27, "5-8", True),
        ("Goldcrest", "Regulus regulus", 9, "9-11", False),
        ("Jay", "Garrulus glandarius", 34, "4-5", False),
        ("Puffin", "Fratercula arctica", 28, "1", True),
    )
)  # fmt: skip


def sheets() -> MCPServer[Any]:
    """Sizes of paper, worked out."""
    made = server("sheet-sizes", "Sizes of paper in the A, B and C series.")

    @made.tool(annotations=READS)
    def sheet_size(
        series: Annotated[Literal["A", "B", "C"], Field(description="Letter of the series")],
        number: Annotated[int, Field(ge=0, le=10, description="4 for A4")],
        unit: Annotated[Literal["mm", "in"], Field(description="Millimetres or inches")] = "mm",
    ) -> str:
        """Width and height of a paper size."""
        height, width = {"A": (1189, 841), "B": (1414, 1000), "C": (1297, 917)}[series]
        for _ in range(number):
            height, width = width, height // 2
        if unit == "in":
            return f"{series}{number}: {width / 25.4:.2f} x {height / 25.4:.2f} in"
        return f"{series}{number}: {width} x {height} mm"

    @made.tool(annotations=READS)
    def sheets_needed(
        pages: Annotated[int, Field(ge=1, le=100_000)], per_side: Annotated[int, Field(ge=1,
                                                                                       le=16)] = 1,
        *, both_sides: bool = False,
    ) -> int:  # fmt: skip
        """How many sheets a document takes."""
        return -(-pages // (per_side * (2 if both_sides else 1)))

    return made


def remainder(text: str) -> int:
    """ISO 7064's number, letters being 10 to 35."""
    return int("".join(str(int(c, 36)) for c in text)) % 97


def references() -> MCPServer[Any]:
    """References that creditors print on bills, and account numbers."""
    made = server("creditor-references")

    @made.tool(annotations=READS)
    def make_reference(invoice: Annotated[str, Field(pattern="^[A-Za-z0-9]{1,21}$")]) -> str:
        """An RF creditor reference (ISO 11649) for an invoice's number."""
        body = invoice.upper()
        return f"RF{98 - remainder(body + 'RF00'):02d}{body}"

    @made.tool(annotations=READS)
    def check_reference(reference: Annotated[str, Field(max_length=40)]) -> str:
        """Whether an RF reference or an IBAN has the right check digits."""
        bare = re.sub(r"\s", "", reference).upper()
        if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{1,30}", bare):
            raise ToolError(f"{reference!r} is neither an RF reference nor an IBAN")
        right = f"{98 - remainder(bare[4:] + bare[:2] + '00'):02d}"
        if right == bare[2:4]:
            return f"{bare}: the check digits are right"
        return f"{bare}: wrong, {bare[2:4]} should be {right}"

    return made


def versions() -> MCPServer[Any]:
    """Two versions of a text, side by side."""
    made = server("side-by-side")

    @made.tool(annotations=READS)
    async def compare_texts(
        before: str, after: str, by: Literal["lines", "words"] = "words"
    ) -> str:
        """Shows what was taken out [-so-] and put in {+so+} between two versions of a text."""
        await asyncio.sleep(random.uniform(1.0, 1.8))
        glue = " " if by == "words" else "\n"
        old, new = (t.split() if by == "words" else t.splitlines() for t in (before, after))
        shown: list[str] = []
        for kind, a, b, c, d in difflib.SequenceMatcher(
            None, old, new, autojunk=False
        ).get_opcodes():
            if kind == "equal":
                shown.append(glue.join(old[a:b]))
                continue
            shown += [f"[-{glue.join(old[a:b])}-]"] if b > a else []
            shown += [f"{{+{glue.join(new[c:d])}+}}"] if d > c else []
        return glue.join(shown) or "both are empty"

    return made


class Page(BaseModel):
    """Some birds, and where the list goes on."""

    total: int
    birds: list[dict[str, Any]]
    next_page: int | None


def birds() -> MCPServer[Any]:
    """A small book of birds."""
    made = server("hedge-birds", "Eighteen birds of Europe.")

    @made.tool(annotations=READS)
    def list_birds(
        page: Annotated[int, Field(ge=1)] = 1, per_page: Annotated[int, Field(ge=1, le=10)] = 5,
        order: Literal["name", "length_cm"] = "name", migrates: bool | None = None,  # noqa: FBT001
    ) -> Page:  # fmt: skip
        """Birds page by page, ordered by name or by length."""
        rows = [b for b in BIRDS if migrates is None or b["migrates"] == migrates]
        rows.sort(key=lambda b: b[order])
        start = (page - 1) * per_page
        more = page + 1 if start + per_page < len(rows) else None
        return Page(total=len(rows), birds=rows[start : start + per_page], next_page=more)

    @made.tool(annotations=READS)
    def get_bird(
        name: Annotated[str, Field(description="English or Latin, such as Wren")],
    ) -> dict[str, Any]:
        """One bird: Latin name, length, size of the clutch, and whether it migrates."""
        found = [
            b for b in BIRDS if name.strip().lower() in {b["name"].lower(), b["latin"].lower()}
        ]
        if not found:
            raise ToolError(f"no bird called {name[:60]!r}; list_birds shows those there are")
        return found[0]

    @made.resource("birds://clutches", name="Clutches", mime_type="text/plain")
    def clutches() -> str:
        return "\n".join(f"{b['name']}: {b['eggs']} eggs" for b in BIRDS)

    return made


STYLES = {
    "snake": "_".join, "kebab": "-".join,
    "constant": lambda words: "_".join(words).upper(),
    "pascal": lambda words: "".join(w.capitalize() for w in words),
    "camel": lambda words: words[0] + "".join(w.capitalize() for w in words[1:]),
}  # fmt: skip


def renamed(given: dict[str, Any]) -> Any:
    """A name in another style."""
    words = [
        w.lower()
        for w in re.findall(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]*|[a-z]+|\d+", str(given["name"]))
    ]
    style = str(given.get("style", "snake"))
    if not words or style not in STYLES:
        return content(f"no words, or no such style; styles are {', '.join(STYLES)}", wrong=True)
    return STYLES[style](words)


def namer(site: Site) -> HandMade:
    """Names of variables, by hand."""
    schema = text_schema("name", "A name or a few words, such as 'maxRetryCount'")
    schema["properties"]["style"] = {"type": "string", "enum": list(STYLES), "default": "snake"}
    tool = Tool(
        "rename", "Writes a name in another style, such as kebab or camel.", schema, renamed
    )
    return HandMade(site, "naming", lambda _scope: (tool,))


AGENTS = (
    honest("mcp", "Sheet sizes", by_mcp(sheets)),
    honest("mcp", "Bill references", by_mcp(references, sessions=True)),
    honest("mcp", "Side by side", by_mcp(versions, plain_json=False)),
    honest("mcp", "Hedge birds", by_mcp(birds)),
    honest("mcp", "Name styles", by_hand(namer)),
)
