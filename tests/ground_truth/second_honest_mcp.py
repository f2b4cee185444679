"""Honest MCP servers of the second set, on the official library."""

import asyncio
import inspect
import json
import random
from datetime import date, timedelta
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from tests.ground_truth.mcp_parts import sse_mcp, stock_mcp
from tests.ground_truth.second_base import Second, honest
from tests.ground_truth.second_crafts_a import MEASURES, Craft, dates_in
from tests.ground_truth.second_crafts_b import FOODS, ROADS, shortest
from tests.ground_truth.second_crafts_c import GARDEN, REDACTOR, SAILING, SCANNER, STATISTICS
from tests.ground_truth.second_crafts_d import GERMAN, UKRAINIAN, gengo
from tests.ground_truth.second_layers import spaced
from tests.ground_truth.site import App, Built, Site

LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def served(site: Site, app: App, path: str = "/mcp", name: str = "MCP") -> Built:
    """The ordinary declaration of an MCP server."""
    return Built([(name, site.url + path)], app)


def shop(name: str, hints: str | None = None) -> MCPServer[Any]:
    """An empty server."""
    return MCPServer(name, version="0.3.8", instructions=hints, log_level="CRITICAL")


def tool_of(craft: Craft, name: str, argument: str) -> Any:
    """A trade as a typed function."""

    def work(**given: str) -> str:
        said = craft.answer(given[argument])
        if said is None:
            raise ToolError(f"Nothing found. An example: {craft.examples[0]}")
        return said

    return signed(work, name, argument)


def signed(work: Any, name: str, argument: str) -> Any:
    """A function with one text argument of this name."""
    one = inspect.Parameter(argument, inspect.Parameter.KEYWORD_ONLY, annotation=str)
    work.__name__ = name
    work.__signature__ = inspect.Signature([one], return_annotation=str)
    work.__annotations__ = {argument: str, "return": str}
    return work


class Converted(BaseModel):
    """A value in another unit."""

    value: float
    unit: str
    shown: str


Unit = Literal["mm", "cm", "m", "km", "inch", "feet", "yard", "mile"]
_METRES = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "inch": 0.0254, "feet": 0.3048,
           "yard": 0.9144, "mile": 1609.344}  # fmt: skip


def _yardstick(site: Site) -> Built:
    """Typed arguments, output schemas and annotations."""
    made = shop("yardstick")

    def convert_length(
        value: Annotated[float, Field(description="The length to convert", examples=[12.5])],
        source: Unit,
        target: Unit,
    ) -> Converted:
        result = value * _METRES[source] / _METRES[target]
        return Converted(
            value=result, unit=target, shown=f"{value:g} {source} = {result:g} {target}"
        )

    def list_units() -> list[str]:
        return list(_METRES)

    made.add_tool(
        convert_length, description="Converts a length into other units.", annotations=LOOKS
    )
    made.add_tool(list_units, description="Names of all units.", annotations=LOOKS)
    made.add_tool(tool_of(MEASURES, "convert_phrase", "phrase"), annotations=LOOKS,
                  description="Converts a phrase such as `3 litres in pints`.")  # fmt: skip
    return served(site, stock_mcp(made))


def _day_counter(site: Site) -> Built:
    """Without annotations, with sessions, answering in event streams."""
    made = shop("day-counter", "Dates are ISO 8601.")

    def _read(day: str) -> date:
        found = dates_in(day)
        if not found:
            raise ToolError("use YYYY-MM-DD")
        return found[0]

    def days_between(first: str, second: str) -> int:
        return (_read(second) - _read(first)).days

    def weekday(day: str) -> str:
        return f"{_read(day):%A}"

    def add_days(day: str, count: int) -> str:
        return (_read(day) + timedelta(days=max(-99999, min(count, 99999)))).isoformat()

    made.add_tool(days_between, description="Days from one date to another, e.g. 2026-01-31.")
    made.add_tool(weekday, description="The weekday of a date, for example of 2027-08-09.")
    made.add_tool(add_days, description="The date so many days after a date like 2026-11-05.")
    return served(site, stock_mcp(made, sessions=True, plain_json=False))


def _larder(site: Site) -> Built:
    """The older transport, with resources and a prompt."""
    made = shop("larder")

    @made.resource("larder://foods")
    def foods() -> str:
        return "\n".join(f"{name}: {row[0]} kcal per 100 g" for name, row in FOODS.items())

    @made.resource("larder://foods/{name}")
    def one(name: str) -> str:
        return json.dumps(dict(zip(("kcal", "protein", "carbs", "fat"), FOODS[name], strict=True)))

    @made.prompt()
    def meal_plan(days: str) -> str:
        return f"Plan meals for {days} days with foods from larder://foods and count their energy."

    def energy(food: str, grams: float = 100) -> str:
        if food.lower() not in FOODS:
            raise ToolError(f"unknown food; there are {', '.join(sorted(FOODS))}")
        return f"{FOODS[food.lower()][0] * grams / 100:.0f} kcal"

    def search_foods(prefix: str) -> list[str]:
        return [name for name in FOODS if name.startswith(prefix.lower())]

    made.add_tool(energy, annotations=LOOKS,
                  description="Energy of a food, e.g. lentils, oats or salmon.")  # fmt: skip
    made.add_tool(
        search_foods, description="Foods that begin with these letters.", annotations=LOOKS
    )
    return served(site, sse_mcp(made), "/sse")


def _pier(site: Site) -> Built:
    """Takes its time to look for a way."""
    made = shop("pier-finder")
    quays = sorted(ROADS)

    async def find_route(start: str, end: str) -> dict[str, Any]:
        await asyncio.sleep(random.uniform(2, 4))
        if start.title() not in ROADS or end.title() not in ROADS:
            raise ToolError(f"quays are {', '.join(quays)}")
        minutes, way = shortest(start.title(), end.title())
        return {"minutes": minutes, "way": way}

    def list_quays() -> list[str]:
        return quays

    made.add_tool(list_quays, description="All quays by name.", annotations=LOOKS)
    made.add_tool(find_route, annotations=LOOKS,
                  description="The quickest ferry way from quay to quay.")  # fmt: skip
    return served(site, stock_mcp(made), name="ferries")


def _proofreader(site: Site) -> Built:
    """Quotes what it is given: redaction, statistics, a scanner."""
    made = shop("reading-room", "All tools work on the text that they are given and keep nothing.")
    for craft, name in (
        (REDACTOR, "redact"),
        (STATISTICS, "text_stats"),
        (SCANNER, "scan_message"),
    ):
        words = f"{craft.about} For example: {craft.examples[0]}"
        made.add_tool(tool_of(craft, name, "text"), description=words, annotations=LOOKS)
    return served(site, stock_mcp(made, sessions=True))


def _tonnen(site: Site) -> Built:
    made = shop("muelltrennung", "Antwortet auf Deutsch.")
    words = f"{GERMAN.about} Beispiel: Joghurtbecher"
    made.add_tool(
        tool_of(GERMAN, "welche_tonne", "gegenstand"), description=words, annotations=LOOKS
    )
    return served(site, stock_mcp(made))


def _kody(site: Site) -> Built:
    made = shop("телефонні-коди")
    words = f"{UKRAINIAN.about} Наприклад: Львів"
    made.add_tool(tool_of(UKRAINIAN, "kod_mista", "misto"), description=words)
    return served(site, spaced(30, 30)(stock_mcp(made)))


def _nengo(site: Site) -> Built:
    made = shop("nengo")
    words = "和暦を西暦に、西暦を和暦に変換します。例: 平成3年"
    craft = Craft("nengo", words, ("平成3年",), gengo)
    made.add_tool(tool_of(craft, "convert_year", "year"), description=words, annotations=LOOKS)
    return served(site, stock_mcp(made, plain_json=False))


def _shelf(site: Site) -> Built:
    """Nothing but resources and prompts."""
    made = shop("two-small-books")
    for title, book in (("sailing", SAILING), ("garden", GARDEN)):
        _page(made, title, book)

    @made.prompt()
    def quiz(book: str) -> str:
        return f"Quiz me five times on the pages of book://{book}."

    return served(site, stock_mcp(made))


def _page(made: MCPServer[Any], title: str, book: dict[str, str]) -> None:
    @made.resource(f"book://{title}", name=f"All of {title}")
    def whole() -> str:
        return "\n".join(book.values())

    @made.resource(f"book://{title}/{{word}}", name=f"One page of {title}")
    def single(word: str) -> str:
        return book.get(word, "no such page")


KIND = "mcp"
AGENTS: list[Second] = [
    honest(KIND, "Yardstick", _yardstick),
    honest(KIND, "Day counter", _day_counter),
    honest(KIND, "Larder", _larder),
    honest(KIND, "Pier finder", _pier),
    honest(KIND, "Reading room", _proofreader),
    honest(KIND, "Tonnenfinder", _tonnen),
    honest(KIND, "Коди міст", _kody),
    honest(KIND, "年号", _nengo),
    honest(KIND, "Two small books", _shelf),
]
