"""Two tools on the official MCP library that are slow or by lot, and two servers by hand."""

import asyncio
import datetime as dt
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from tests.ground_truth.fourth_base import on_own, on_server
from tests.ground_truth.mcp_parts import READS, HandMade, Tool, content, server, text_schema
from tests.ground_truth.site import Scope, Site
from tests.ground_truth.sixth_base import honest
from tests.ground_truth.sixth_crafts import draw, masked
from tests.ground_truth.sixth_papers import GEAR, packed


def santa() -> MCPServer[Any]:
    """Presents by lot."""
    made = server("hat-draw")

    def draw_names(names: list[str], couples: list[list[str]] | None = None) -> str:
        """Draw names for a gift exchange. Couples do not draw each other."""
        if len(set(names)) != len(names) or not 3 <= len(names) <= 60:
            raise ToolError("3 to 60 different names are needed")
        drawn = draw(names, couples or [])
        if drawn is None:
            raise ToolError("no draw is possible with these couples")
        return "\n".join(f"{giver} -> {taker}" for giver, taker in drawn.items())

    made.add_tool(draw_names, structured_output=False)
    return made


def rucksack() -> MCPServer[Any]:
    """What to pack."""
    made = server("rucksack", "Packing lists from our hire shop's catalogue of gear.")

    async def packing_list(
        days: Annotated[int, Field(ge=1, le=30, examples=[3])],
        climate: Annotated[Literal["cold", "mild", "hot", "wet"], Field(description="Weather")],
        activities: Annotated[
            list[Literal["hiking", "camping", "paddling", "climbing", "cycling"]],
            Field(max_length=5, description="What is planned", examples=[["hiking", "camping"]]),
        ],
    ) -> list[str]:
        """Recommends what to pack, in which amounts, and what we hire out at what price."""
        await asyncio.sleep(1.1)
        return packed(days, climate, activities)

    def catalogue() -> str:
        return "\n".join(f"{item}: {row[0]} euros a day" for item, row in GEAR.items() if row[0])

    made.add_tool(packing_list, annotations=READS)
    made.resource("catalogue://hire", name="hire", description="What we hire out.")(catalogue)
    return made


BINS: dict[str, str] = {
    "pizzakarton": "Papier, wenn er sauber ist, sonst Restmüll", "zeitung": "Papier",
    "eierkarton": "Papier", "kassenbon": "Restmüll", "windel": "Restmüll", "asche": "Restmüll",
    "spiegel": "Restmüll", "joghurtbecher": "Gelber Sack", "alufolie": "Gelber Sack",
    "getränkekarton": "Gelber Sack", "konservendose": "Gelber Sack", "teebeutel": "Biotonne",
    "eierschale": "Biotonne", "kaffeesatz": "Biotonne", "weinflasche": "Altglas",
    "marmeladenglas": "Altglas", "trinkglas": "Restmüll", "batterie": "Sammelstelle im Handel",
    "energiesparlampe": "Wertstoffhof", "bildschirm": "Wertstoffhof", "farbeimer": "Wertstoffhof",
}  # fmt: skip
STREETS = {"Ahornweg": (0, 0), "Brunnengasse": (1, 0), "Deichstraße": (2, 1), "Kirchplatz": (3, 1)}
"""Day of the week, and even or odd weeks."""


def wohin(given: dict[str, Any]) -> dict[str, Any]:
    asked = str(given["gegenstand"]).strip().lower()
    hits = [k for k in BINS if k in asked or (len(asked) > 3 and asked in k)]
    if not hits:
        text = f"Zu '{asked[:60]}' steht nichts in unserer Liste. Fragen Sie den Wertstoffhof."
        return content(text, wrong=True)
    return content("\n".join(f"{k.capitalize()}: {BINS[k]}" for k in hits))


def abholung(given: dict[str, Any]) -> dict[str, Any]:
    street = STREETS.get(str(given["strasse"]).strip())
    if street is None:
        return content(f"Diese Straße gehört nicht dazu. Es gibt: {', '.join(STREETS)}", wrong=True)
    try:
        day = dt.date.fromisoformat(str(given["ab"]))
    except ValueError:
        return content("'ab' ist ein Datum wie 2026-04-01", wrong=True)
    while (day.weekday(), day.isocalendar().week % 2) != street:
        day += dt.timedelta(days=1)
    return content(f"{day:%d.%m.%Y}")


DATES = {
    "type": "object",
    "properties": {
        "strasse": {"type": "string", "enum": list(STREETS)},
        "ab": {"type": "string", "format": "date", "description": "Frühester Tag, JJJJ-MM-TT",
               "examples": ["2026-04-01"]},
    },
    "required": ["strasse", "ab"],
    "additionalProperties": False,
}  # fmt: skip


def waste(site: Site) -> HandMade:
    """Müllabfuhr einer Gemeinde."""
    things = text_schema("gegenstand", "Ein Gegenstand wie Teebeutel")
    things["properties"]["gegenstand"]["examples"] = ["Teebeutel", "Pizzakarton"]
    tools = (
        Tool("wohin_damit", "Sagt, in welche Tonne ein Gegenstand gehört.", things, wohin),
        Tool("naechste_abholung", "Nächster Tag, an dem die Restmülltonne geleert wird.", DATES,
             abholung),
    )  # fmt: skip
    return HandMade(site, "muell-wiesental", lambda _scope: tools, instructions=_hello)


def _hello(_scope: Scope) -> str:
    return "Abfall-ABC und Abholtage der Gemeinde Wiesental."


def redact(given: dict[str, Any]) -> dict[str, Any]:
    text, counts = masked(str(given["text"]), given.get("keep") or ())
    return content(text) | {"structuredContent": {"text": text, "replaced": counts}}


def redactor(site: Site) -> HandMade:
    """Blacks out."""
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "keep": {"type": "array", "items": {"enum": ["EMAIL", "IBAN", "CARD", "IP", "PHONE"]}},
        },
        "required": ["text"],
    }
    about = (
        "Replaces mail addresses and IBANs, card numbers, IPs and phone numbers by placeholders."
    )
    return HandMade(site, "black-marker", lambda _scope: (Tool("redact", about, schema, redact),))


AGENTS = (
    honest("mcp", "Names in a hat", on_server(santa), "Draws names for presents."),
    honest("mcp", "Rucksack", on_server(rucksack, plain_json=False), "Packing lists.", read=True,
           inputs={"days": [3, 5], "climate": ["cold", "wet"],
                   "activities": [["hiking", "camping"], ["cycling"]]}),
    honest("mcp", "Müll Wiesental", on_own(waste), "Abfall-ABC und Abholtage.", read=True,
           inputs={"gegenstand": ["Teebeutel", "Weinflasche"], "strasse": ["Ahornweg"],
                   "ab": ["2026-04-01", "2026-09-14"]}),
    honest("mcp", "Grey marker", on_own(redactor), "Redacts personal data."),
)  # fmt: skip
