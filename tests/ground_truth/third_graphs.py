"""The third set's honest GraphQL services and sellers."""

import base64
import json
import math
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query
from fastapi import Request as FastRequest
from graphql import GraphQLError, build_schema, graphql
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.ground_truth.site import App, Build, Built, Site
from tests.ground_truth.third_base import honest, on_web
from tests.ground_truth.third_http_fast import documented

WORLDS = {
    "mercury": (0.378, 0, 4879), "venus": (0.907, 0, 12_104), "earth": (1.0, 1, 12_756),
    "mars": (0.377, 2, 6792), "jupiter": (2.36, 95, 142_984), "saturn": (0.916, 274, 120_536),
    "uranus": (0.889, 28, 51_118), "neptune": (1.12, 16, 49_528), "pluto": (0.071, 5, 2376),
}  # fmt: skip
SHELF = (
    ("Middlemarch", "George Eliot", 1871), ("Moby-Dick", "Herman Melville", 1851),
    ("Emma", "Jane Austen", 1815), ("Persuasion", "Jane Austen", 1817),
    ("Germinal", "\u00c9mile Zola", 1885), ("Nana", "\u00c9mile Zola", 1880),
    ("Lalka", "Boles\u0142aw Prus", 1890), ("Os Maias", "E\u00e7a de Queir\u00f3s", 1888),
    ("Effi Briest", "Theodor Fontane", 1895), ("Kokoro", "Natsume S\u014dseki", 1914),
    ("Botchan", "Natsume S\u014dseki", 1906), ("Dracula", "Bram Stoker", 1897),
)  # fmt: skip
USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"


class Worlds:
    """Resolvers over the planets."""

    def world(self, _info: Any, name: str) -> dict[str, Any] | None:
        found = WORLDS.get(name.strip().lower())
        if found is None:
            return None
        return dict(
            zip(("name", "gravity", "moons", "diameterKm"), (name.title(), *found), strict=True)
        )

    def worlds(self, info: Any, minMoons: int = 0) -> list[Any]:  # noqa: N803 - GraphQL's own style
        return [self.world(info, n) for n, row in WORLDS.items() if row[1] >= minMoons]

    def weight(self, _info: Any, kg: float, on: str) -> float:
        if on.lower() not in WORLDS or kg < 0:
            raise GraphQLError(f"no weight for {kg} kg on {on[:40]!r}")
        return round(kg * WORLDS[on.lower()][0], 2)


class Shelf:
    """Resolvers over a shelf of novels."""

    def novels(self, _info: Any, first: int = 4, after: int = 0, **where: Any) -> dict[str, Any]:
        rows = [
            {"id": n, "title": title, "author": author, "year": year}
            for n, (title, author, year) in enumerate(SHELF, 1)
            if where.get("author", "").lower() in author.lower()
            and (not where.get("before") or year < where["before"])
        ]
        rows = [row for row in rows if row["id"] > after]
        if not 1 <= first <= 20:
            raise GraphQLError("first has to be between 1 and 20")
        return {"items": rows[:first], "hasMore": len(rows) > first}


WORLD_SCHEMA = """
"A planet, and Pluto"
type World { name: String! "Earth is 1" gravity: Float! moons: Int! diameterKm: Int! }
type Query {
  "One planet by its English name"
  world(name: String!): World
  "All planets with at least so many moons"
  worlds(minMoons: Int = 0): [World!]!
  "What so many kilograms would seem to weigh there"
  weight(kg: Float!, on: String!): Float!
}
"""
SHELF_SCHEMA = """
type Novel { id: Int! title: String! author: String! year: Int! }
type Novels { items: [Novel!]! hasMore: Boolean! }
type Query {
  "Novels in order of the shelf; give the final id to read on"
  novels(first: Int = 4, after: Int = 0, author: String, before: Int): Novels!
}
"""


def graph(text: str, root: Any) -> App:
    """GraphQL over GET and POST at /graphql."""
    schema = build_schema(text)

    async def run(request: Request) -> Response:
        try:
            asked: Any = (
                dict(request.query_params) if request.method == "GET" else await request.json()
            )
            query, values = asked["query"], asked.get("variables") or {}
            values = json.loads(values) if isinstance(values, str) else values
        except (ValueError, KeyError, TypeError, AttributeError):
            return JSONResponse({"errors": [{"message": "a query is needed"}]}, 400)
        made = await graphql(schema, str(query), root, variable_values=values,
                             operation_name=asked.get("operationName"))  # fmt: skip
        answer: dict[str, Any] = {"data": made.data}
        if made.errors:
            answer["errors"] = [error.formatted for error in made.errors]
        return JSONResponse(answer, 200 if made.data is not None or not made.errors else 400)

    return Starlette(routes=[Route("/graphql", run, methods=["GET", "POST"])])


def day_length(lat: float, day: date) -> float:
    """Hours of daylight."""
    turn = 2 * math.pi * (day.timetuple().tm_yday - 80) / 365.25
    tilt = math.asin(math.sin(math.radians(23.44)) * math.sin(turn))
    edge = math.radians(-0.833)
    wide = math.radians(lat)
    cosine = (math.sin(edge) - math.sin(wide) * math.sin(tilt)) / (math.cos(wide) * math.cos(tilt))
    return round(24 / math.pi * math.acos(max(-1.0, min(1.0, cosine))), 2)


def soundex(word: str) -> str:
    """The American code of a name."""
    codes = {c: d for letters, d in (("bfpv", "1"), ("cgjkqsxz", "2"), ("dt", "3"), ("l", "4"),
                                     ("mn", "5"), ("r", "6")) for c in letters}  # fmt: skip
    low = [c for c in word.lower() if c.isascii() and c.isalpha()]
    if not low:
        return ""
    said, last = low[0].upper(), codes.get(low[0], "")
    for sign in low[1:]:
        code = codes.get(sign, "")
        if code and code != last:
            said += code
        last = last if sign in "hw" else code
    return (said + "000")[:4]


def priced(
    site: Site, path: str, units: str, about: str, *, new: bool
) -> tuple[Any, dict[str, str]]:
    """What is asked for an answer, in either age of x402."""
    row: dict[str, Any] = {
        "scheme": "exact", "asset": USDC, "payTo": site.wallet, "maxTimeoutSeconds": 90,
        "extra": {"name": "USDC", "version": "2"},
    }  # fmt: skip
    url = site.url + path
    if new:
        body: Any = {
            "x402Version": 2, "error": "this answer is sold",
            "resource": {"url": url, "description": about, "mimeType": "application/json"},
            "accepts": [row | {"network": "eip155:84532", "amount": units}],
        }  # fmt: skip
        return body, {"PAYMENT-REQUIRED": base64.b64encode(json.dumps(body).encode()).decode()}
    more = {"network": "base-sepolia", "maxAmountRequired": units, "resource": url,
            "description": about, "mimeType": "application/json"}  # fmt: skip
    return {"x402Version": 1, "error": "this answer is sold", "accepts": [row | more]}, {}


def bill(
    site: Site, headers: Mapping[str, str], offer: tuple[str, str, str], *, new: bool
) -> Response:
    """The bill; a payment cannot be settled without a facilitator, and none is taken."""
    body, named = priced(site, *offer, new=new)
    if headers.get("payment-signature") or headers.get("x-payment"):
        body["error"] = "no facilitator is at hand; you were not charged"
    return JSONResponse(body, 402, named)


def daylight(site: Site) -> App:
    """One day free of charge, a whole year for a fee."""
    app = FastAPI(title="Daylight hours", version="1.0",
                  description="Hours of daylight at a latitude: a day for nothing, a year for a"
                              " cent.")  # fmt: skip

    @app.get("/day")
    async def day(
        lat: Annotated[float, Query(ge=-89, le=89, examples=[52.2])],
        when: Annotated[date, Query(examples=["2026-06-21"])],
    ) -> dict[str, float]:
        return {"lat": lat, "hours": day_length(lat, when)}

    @app.get("/year", responses={402: {"description": "Payment is needed"}})
    async def year(request: FastRequest) -> Response:
        offer = ("/year", "10000", "Daylight of every day of a year")
        return bill(site, request.headers, offer, new=False)

    return documented(site, app)


def sounding(site: Site) -> App:
    """One name free of charge, lists for a fee."""
    app = FastAPI(title="Sound codes", version="2.2",
                  description="Soundex codes of names. One is free; lists are sold.")  # fmt: skip

    @app.get("/code")
    async def code(
        name: Annotated[str, Query(max_length=80, examples=["Robert"])],
    ) -> dict[str, str]:
        made = soundex(name)
        if not made:
            raise HTTPException(422, "there are no Latin letters in this name")
        return {"name": name, "soundex": made}

    @app.get("/codes", responses={402: {"description": "Payment is needed"}})
    async def codes(request: FastRequest) -> Response:
        offer = ("/codes", "4000", "Codes of up to 500 names")
        return bill(site, request.headers, offer, new=True)

    return documented(site, app)


def sold(app_of: Any, path: str) -> Build:
    """A seller with a document of what is free."""

    def build(site: Site) -> Built:
        doors = [("x402", site.url + path), ("OpenAPI", site.url + "/openapi.json")]
        return Built(doors, app_of(site))

    return build


AGENTS = (
    honest(
        "graphql",
        "Nine worlds",
        on_web(lambda _site: graph(WORLD_SCHEMA, Worlds()), "/graphql", "GraphQL"),
    ),
    honest(
        "graphql", "Novel shelf", on_web(lambda _site: graph(SHELF_SCHEMA, Shelf()), "/graphql")
    ),
    honest("x402", "Daylight hours", sold(daylight, "/year"), "payee"),
    honest("x402", "Sound codes", sold(sounding, "/codes"), "openapi"),
)
