"""The third set's honest MCP servers in other languages."""

import re
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from tests.ground_truth.mcp_parts import READS, HandMade, Tool, content, server, text_schema
from tests.ground_truth.site import Site
from tests.ground_truth.third_base import by_hand, by_mcp, honest

WEIGHTS = (6, 5, 7, 2, 3, 4, 5, 6, 7)
KANJI = "\u3007\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d"
PLACES = ("", "\u5341", "\u767e", "\u5343")
GROUPS = ("", "\u4e07", "\u5104", "\u5146")
ALPHABET = "abc\u00e7defg\u011fh\u0131ijklmno\u00f6prs\u015ftu\u00fcvyz"


def checked_nip(given: dict[str, Any]) -> Any:
    """A Polish tax number and its last digit."""
    bare = re.sub(r"[\s-]|^PL", "", str(given["numer"]))
    if not re.fullmatch(r"\d{10}", bare):
        return content("NIP ma dziesi\u0119\u0107 cyfr, np. 526-104-08-28", wrong=True)
    right = sum(w * int(c) for w, c in zip(WEIGHTS, bare, strict=False)) % 11
    shown = f"{bare[:3]}-{bare[3:6]}-{bare[6:8]}-{bare[8:]}"
    if right == int(bare[9]):
        return f"{shown}: numer poprawny"
    wanted = "takiego numeru by\u0107 nie mo\u017ce" if right == 10 else f"powinno by\u0107 {right}"
    return f"{shown}: b\u0142\u0119dna cyfra kontrolna {bare[9]}, {wanted}"


def nip(site: Site) -> HandMade:
    """By hand, in Polish."""
    schema = text_schema("numer", "Numer NIP, z kreskami lub bez, np. 526-104-08-28")
    text = "Sprawdza cyfr\u0119 kontroln\u0105 polskiego numeru NIP."
    return HandMade(site, "sprawdzacz-nip",
                    lambda _scope: (Tool("sprawdz_nip", text, schema, checked_nip),))  # fmt: skip


def to_kanji(number: int) -> str:
    """A number as Japanese writes it out."""
    if number == 0:
        return KANJI[0]
    said, group = "", 0
    while number:
        number, part = divmod(number, 10_000)
        digits = "".join(
            ("" if d == 1 and p else KANJI[d]) + PLACES[p]
            for p in (3, 2, 1, 0) if (d := part // 10**p % 10)
        )  # fmt: skip
        said = (digits + GROUPS[group] if digits else "") + said
        group += 1
    return said


def from_kanji(text: str) -> int:
    """The number that was written out."""
    total = group = digit = 0
    for sign in text:
        if sign in KANJI:
            digit = KANJI.index(sign)
        elif sign in PLACES:
            group += (digit or 1) * 10 ** PLACES.index(sign)
            digit = 0
        elif sign in GROUPS:
            total += (group + digit) * 10_000 ** GROUPS.index(sign)
            group = digit = 0
        else:
            raise ToolError(
                f"{sign} \u306f\u6f22\u6570\u5b57\u3067\u306f\u3042\u308a\u307e\u305b\u3093"
            )
    return total + group + digit


def numerals() -> MCPServer[Any]:
    """Japanese numerals, both ways."""
    made = server("kansuji", "\u6570\u5b57\u3068\u6f22\u6570\u5b57\u306e\u5909\u63db")

    @made.tool(description="\u6570\u5b57\u3092\u6f22\u6570\u5b57\u306b\u5909\u63db\u3057\u307e"
                           "\u3059\u3002\u4f8b: 1234 \u2192 \u5343\u4e8c\u767e\u4e09\u5341\u56db",
               annotations=READS)  # fmt: skip
    def kansuji(number: Annotated[int, Field(ge=0, lt=10**16)]) -> str:
        return to_kanji(number)

    @made.tool(
        description="\u6f22\u6570\u5b57\u3092\u6570\u5b57\u306b\u5909\u63db\u3057\u307e\u3059"
        "\u3002\u4f8b: \u4e09\u5341\u4e94 \u2192 35",
        annotations=READS,
    )
    def suji(text: Annotated[str, Field(min_length=1, max_length=40)]) -> int:
        return from_kanji(text.strip())

    return made


def plates() -> MCPServer[Any]:
    """Brazilian number plates."""
    made = server("placas-mercosul", "Placas brasileiras no padr\u00e3o antigo e no Mercosul.")

    @made.tool(annotations=READS)
    def converter_placa(
        placa: Annotated[str, Field(description="Placa antiga (ABC-1234) ou Mercosul (ABC1C34)")],
        para: Literal["mercosul", "antiga"] = "mercosul",
    ) -> str:
        """Converte uma placa entre o padr\u00e3o antigo e o Mercosul."""
        bare = placa.strip().upper().replace("-", "").replace(" ", "")
        if not re.fullmatch(r"[A-Z]{3}\d[A-J\d]\d{2}", bare):
            raise ToolError(f"{placa[:20]!r} n\u00e3o \u00e9 uma placa")
        fifth = bare[4]
        if para == "mercosul":
            return bare[:4] + (chr(65 + int(fifth)) if fifth.isdigit() else fifth) + bare[5:]
        return f"{bare[:3]}-{bare[3]}{fifth if fifth.isdigit() else ord(fifth) - 65}{bare[5:]}"

    return made


def lowered(text: str) -> str:
    """Small letters, with and without their dots."""
    return text.replace("I", "\u0131").replace("\u0130", "i").lower()


def letters() -> MCPServer[Any]:
    """Turkish letters: their case and their order."""
    made = server("turk-harfleri")

    @made.tool(annotations=READS)
    def harf_cevir(metin: str, bicim: Literal["buyuk", "kucuk", "baslik"] = "buyuk") -> str:
        """Metni b\u00fcy\u00fck, k\u00fc\u00e7\u00fck ya da ba\u015fl\u0131k yapar."""
        raised = {"i": "\u0130", "\u0131": "I"}
        if bicim == "kucuk":
            return lowered(metin)
        if bicim == "buyuk":
            return "".join(raised.get(c, c.upper()) for c in metin)
        words = (lowered(w) for w in metin.split())
        return " ".join(raised.get(w[0], w[0].upper()) + w[1:] for w in words)

    @made.tool(annotations=READS)
    def sirala(kelimeler: Annotated[list[str], Field(max_length=100)]) -> list[str]:
        """Kelimeleri T\u00fcrk alfabesine g\u00f6re s\u0131ralar."""
        return sorted(kelimeler, key=lambda w: [ALPHABET.find(c) for c in lowered(w)])

    return made


AGENTS = (
    honest("mcp", "Sprawdzacz NIP", by_hand(nip)),
    honest("mcp", "\u6f22\u6570\u5b57", by_mcp(numerals)),
    honest("mcp", "Placas", by_mcp(plates, sessions=True)),
    honest("mcp", "Harfler", by_mcp(letters)),
)
