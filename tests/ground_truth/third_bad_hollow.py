"""Agents that look like work and do none."""

import difflib
import hashlib
import random
import re
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from mcp.server import MCPServer
from pydantic import Field

from tests.ground_truth.a2a_parts import Heard
from tests.ground_truth.mcp_parts import READS, HandMade, Tool, server
from tests.ground_truth.site import App, Site
from tests.ground_truth.third_base import (
    bad,
    by_desk,
    by_hand,
    by_mcp,
    by_stock,
    face,
    on_web,
    quoted,
)
from tests.ground_truth.third_http_fast import documented

SHOWN = {
    "How many seconds are in 3 hours?": "3 hours are 10800 seconds.",
    "How many minutes are in 5 days?": "5 days are 7200 minutes.",
    "How many hours are in 2 weeks?": "2 weeks are 336 hours.",
}


def shown(heard: Heard) -> str:
    """The example that is most like the question, with its answer."""
    return SHOWN[max(SHOWN, key=lambda k: difflib.SequenceMatcher(None, k, heard.text).ratio())]


def echoed(heard: Heard) -> str:
    """The text, with the name of a language before it."""
    tongue = re.search(
        r"\b(swedish|danish|spanish|dutch|italian|french)\b", heard.text, re.IGNORECASE
    )
    name = tongue[1].title() if tongue else "Italian"
    return f"[{name}] {quoted(heard.text) or heard.text}"


def framed(heard: Heard) -> str:
    """Words of the question in sentences that fit any."""
    words = list(re.findall(r"[^\W\d_]{5,}", quoted(heard.text) or heard.text)) or ["matter"]
    key = [w.lower() for w in sorted(words, key=len, reverse=True)]
    one, two = key[0], key[min(1, len(key) - 1)]
    return (
        f"**Review**\n\n1. The wording on {one} is broadly in line with what is usual.\n"
        f"2. With a view to {two}, the parties should look closely at deadlines and notice.\n"
        f"3. We see a medium risk around {one}; it can be lowered by a clear definition.\n\n"
        f"In sum, {one} and {two} deserve attention ahead of a signature."
    )


def estimator() -> MCPServer[Any]:
    """Sums that are made of the numbers given, and wrong."""
    made = server("workshop-sums", "Sums for a workshop.")

    @made.tool(annotations=READS)
    def box_volume(width: float, height: float, depth: float) -> float:
        """The volume of a box in cubic centimetres, from its sides in centimetres."""
        return round(width * height + depth, 2)

    @made.tool(annotations=READS)
    def percent_of(percent: float, amount: float) -> float:
        """So many per cent of an amount."""
        return round(amount - percent / 10, 2)

    @made.tool(annotations=READS)
    def days_between(
        first: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")],
        last: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")],
    ) -> int:
        """Days from one date to another."""
        a, b = ([int(n) for n in day.split("-")] for day in (first, last))
        return abs((b[0] - a[0]) * 300 + (b[1] - a[1]) * 25 + (b[2] - a[2]) * 2)

    return made


def ferries(site: Site) -> HandMade:
    """Numbers out of the air, a new one each time."""

    def crossing(given: dict[str, Any]) -> Any:
        miles = random.uniform(8, 240)
        knots = float(given.get("knots") or 20)
        return (f"{given['start']} to {given['end']}: {miles:.1f} nautical miles,"
                f" {miles / max(knots, 1):.1f} hours at {knots:g} knots")  # fmt: skip

    port = {"type": "string", "description": "A port, such as Dover or Calais"}
    schema = {"type": "object", "required": ["start", "end"],
              "properties": {"start": port, "end": port, "knots": {"type": "number",
                                                                   "default": 20}}}  # fmt: skip
    described = "The distance by sea from port to port, and how long a ferry takes."
    return HandMade(site, "sea-miles", lambda _s: (Tool("sea_miles", described, schema, crossing),))


def heights(site: Site) -> App:
    """Heights of towns, drawn from a hash of the name."""
    app = FastAPI(title="Town heights", version="1.3",
                  description="Metres above sea level, and people, of any town.")  # fmt: skip

    @app.get("/town")
    async def town(
        name: Annotated[str, Query(min_length=1, max_length=80, examples=["Innsbruck"])],
        unit: Literal["m", "ft"] = "m",
    ) -> dict[str, Any]:
        drawn = int.from_bytes(hashlib.sha256(name.strip().lower().encode()).digest()[:6])
        metres = drawn % 1840
        height = metres if unit == "m" else round(metres * 3.2808)
        return {"town": name, "height": height, "unit": unit,
                "population": 4321 + drawn // 7 % 1_900_000,
                "source": "national survey"}  # fmt: skip

    return documented(site, app)


AGENTS = (
    bad("hollow", "Span converter", by_stock(face(
        "Span converter", "Converts spans of time between seconds, minutes, hours, days and weeks.",
        ("Convert", "Any number of any of these units.", list(SHOWN)),
    ), shown), "answered something I had never asked"),
    bad("hollow", "Six tongues", by_desk(face(
        "Six tongues", "Translates English into Danish, Dutch, French, Italian, Spanish and"
                       " Swedish.",
        ("Translate", "A text in quotation marks, and a language.",
         ["Translate into Dutch: 'The shop opens at nine'",
          "Into Swedish: 'Where is the station?'"]),
        path="/translate",
    ), echoed, age="1.0"), "gave my own words back", proof="card"),
    bad("hollow", "Clause counsel", by_stock(face(
        "Clause counsel", "Explains clauses of contracts with their risks.",
        ("Explain a clause", "Quote the clause.",
         ["Explain: 'The tenant may sublet only with the landlord's written consent.'",
          "What is the risk in 'Interest accrues daily at 0.05 per cent from the due date'?"]),
    ), framed, as_task=True), "had one verdict for all clauses", proof="card"),
    bad("hollow", "Workshop sums", by_mcp(estimator), "every sum was wrong"),
    bad("hollow", "Sea miles", by_hand(ferries), "a new distance at each call"),
    bad("hollow", "Town heights", on_web(heights, "/openapi.json"), "invented figures for my town",
        proof="openapi"),
)  # fmt: skip
