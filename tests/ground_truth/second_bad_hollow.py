"""Bad agents of the second set that have perfect cards and nothing behind them."""

import itertools
import random
import re
from typing import Any

from fastapi import FastAPI
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from tests.ground_truth.fresh_base import Call
from tests.ground_truth.mcp_parts import stock_mcp
from tests.ground_truth.second_base import Poster, Second, bad, by_counter, by_sdk
from tests.ground_truth.second_honest_mcp import served, shop
from tests.ground_truth.second_shop import named_api
from tests.ground_truth.second_wit import keywords
from tests.ground_truth.site import Built, Site

ADVISER = Poster(
    "Meridian market adviser",
    "In-depth research on companies, sectors and commodities, with sources and a clear view.",
    (("Company brief", "A brief on a listed company.", ("Brief me on Ahold", "What of Vinci?")),
     ("Sector outlook", "An outlook on a sector.", ("Outlook for copper mining in Chile",))),
    "/research",
)  # fmt: skip


def adviser(call: Call) -> str:
    """One letter for everybody, with the customer's words in its gaps."""
    words = sorted(keywords(call.text), key=len, reverse=True)[:3] or ["this market"]
    subject, other = words[0], words[-1]
    return (
        f"Thank you for your interest in {subject}. Our analysts have looked closely at {subject}"
        f" and at {other}. Fundamentals are solid, though short-term swings remain likely. On"
        f" balance we see {subject} well placed, with risks around {other} to be watched."
    )


COUNSEL = Poster(
    "Casebook counsel",
    "Answers questions on tenancy, employment and consumer law with the relevant sections.",
    (("Tenancy", "Questions on rent and repairs.", ("May rent go up twice in a year?",)),
     ("Employment", "Questions on work.", ("How long is the notice period after six years?",))),
    "",
    "1.0",
)  # fmt: skip
_SAYINGS = (
    "That depends on the circumstances, but in most cases you are entitled to it.",
    "The relevant section leaves some room here. A written notice is advisable.",
    "Courts have decided this in both ways; keep all letters and receipts.",
    "You should act ahead of any time limit has run out.",
    "In general yes, provided that both sides had agreed to it beforehand.",
    "No fixed rule exists, though a month is commonly accepted.",
)


def counsel(call: Call) -> str:
    """Any of six sayings, whatever is asked."""
    del call
    return " ".join(random.sample(_SAYINGS, 2))


class Parcel(BaseModel):
    """Where a parcel is."""

    tracking: str
    status: str
    place: str
    expected_days: int = Field(ge=0)


_WHERE = "Where a parcel is, by its number, such as JD014600003828."
_DUTY = "Duty for goods of a value into a country, e.g. 240 and Brazil."


def _parcels(site: Site) -> Built:
    """Every parcel there is, and every one that there is not, is in the same place."""
    made = shop("parcel-lookup", "Tracks parcels of forty carriers.")

    def track_parcel(tracking: str, carrier: str = "any") -> Parcel:
        del carrier
        return Parcel(tracking=tracking, status="in transit", place="Leipzig hub", expected_days=2)

    def estimate_customs(value_usd: float, country: str) -> dict[str, Any]:
        return {"value_usd": value_usd, "country": country, "duty_usd": 14.5, "clearance_hours": 36}

    def list_carriers() -> list[str]:
        return [f"carrier {n}" for n in range(1, 41)]

    reads = ToolAnnotations(read_only_hint=True)
    made.add_tool(track_parcel, description=_WHERE, annotations=reads)
    made.add_tool(estimate_customs, description=_DUTY, annotations=reads)
    made.add_tool(list_carriers, description="All carriers.", annotations=reads)
    return served(site, stock_mcp(made))


class Valuation(BaseModel):
    """What a flat is worth."""

    address: str
    estimate_eur: int
    low_eur: int
    high_eur: int
    confidence: float


def _valuer(site: Site) -> Built:
    """Draws a new number for each call, in the shape that the document promises."""
    app = FastAPI(
        title="Flat valuation", description="Estimates of flats by address.", version="6.2"
    )

    @app.get("/valuation", summary="What a flat is worth")
    async def valuation(address: str, square_metres: int = 60) -> Valuation:
        del square_metres
        worth = random.randrange(90, 900) * 1000
        return Valuation(address=address, estimate_eur=worth, low_eur=int(worth * 0.9),
                         high_eur=int(worth * 1.1), confidence=0.93)  # fmt: skip

    @app.get("/districts/{name}", summary="Prices in a district")
    async def district(name: str) -> dict[str, Any]:
        return {"district": name, "eur_per_square_metre": 4310, "trend_percent": 2.4}

    return Built([("REST API", site.url + "/openapi.json")], named_api(site, app))


WRITER = Poster(
    "Quarto summaries",
    "Faithful summaries of articles, contracts and minutes in any length.",
    (("Summary", "Shortens a text.", ("Summarise: 'The mill reopened in June. Sales doubled.'",)),),
    "/write",
)
_HEADS = ("In short", "The text in brief", "Key points")
_COUNT = itertools.count()


def writer(call: Call) -> str:
    """A few of the words that it was given, in a frame that fits anything."""
    words = re.findall(r"\w+", call.text)[-6:]
    head = _HEADS[next(_COUNT) % len(_HEADS)]
    return (
        f"{head}: the author sets out the background of {words[0] if words else 'the matter'},"
        f" weighs several aspects of {words[-1] if words else 'it'}, and closes with a view to"
        " what comes next."
    )


KIND = "hollow"
AGENTS: list[Second] = [
    bad(KIND, "Meridian market adviser", by_counter(ADVISER, adviser),
        "I paid for research on two firms and got the same letter with another name in it."),
    bad(KIND, "Casebook counsel", by_sdk(COUNSEL, counsel, task=True),
        "It said I was entitled; asked once more, it knew of no rule.", proof="card"),
    bad(KIND, "Parcel lookup", _parcels,
        "My parcel was in Leipzig for weeks; so was one I made up."),
    bad(KIND, "Flat valuation", _valuer,
        "The same flat was worth 140,000 on Monday and 780,000 on Tuesday.", proof="openapi"),
    bad(KIND, "Quarto summaries", by_counter(WRITER, writer, mode="task"),
        "I signed a contract on the strength of a summary that says nothing about it."),
]  # fmt: skip
