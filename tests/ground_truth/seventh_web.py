"""Honest services of the seventh set without an OpenAPI document, one of them GraphQL."""

import html
import json
import random
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from graphql import build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tests.ground_truth import seventh_goods, seventh_guard, seventh_home
from tests.ground_truth.seventh_base import (
    Allowance,
    at,
    honest,
    parsed,
    query,
    send_text,
    today,
)
from tests.ground_truth.seventh_outdoors import apart_km, bearing, clock
from tests.ground_truth.site import App, Scope, Site, read

HUTS = (
    ("Falkenhütte", 1848, 150, (47.4186, 11.5036)), ("Lamsenjoch", 1953, 134, (47.3853, 11.6067)),
    ("Karwendelhaus", 1765, 182, (47.4276, 11.4219)), ("Plumsjoch", 1630, 60, (47.4644, 11.6333)),
    ("Tölzer", 1825, 80, (47.5136, 11.4689)), ("Pfeishütte", 1922, 110, (47.3306, 11.4289)),
)  # fmt: skip
"""Name, height, beds, place."""

GRAPH = """
"A mountain hut of the Karwendel"
type Hut { name: String!, height: Int!, beds: Int!, lat: Float!, lon: Float!
  "The other huts, the nearest first"
  near(first: Int = 3): [Near!]! }
type Near { name: String!, km: Float!, bearing: Int! }
type Query {
  huts(above: Int = 0, bedsAtLeast: Int = 0): [Hut!]!
  hut(name: String!): Hut }
"""


def hut_row(row: tuple[str, int, int, tuple[float, float]]) -> dict[str, Any]:
    """A hut, and how far the others are as the crow flies."""
    name, height, beds, place = row

    def near(_info: Any, first: int = 3) -> list[dict[str, Any]]:
        rows = sorted((apart_km(place, other[3]), other) for other in HUTS if other != row)
        return [
            {"name": o[0], "km": round(km, 2), "bearing": round(bearing(place, o[3])) % 360}
            for km, o in rows[: max(0, first)]
        ]

    return {"name": name, "height": height, "beds": beds, "lat": place[0], "lon": place[1],
            "near": near}  # fmt: skip


def huts(_site: Site) -> App:
    schema = build_schema(GRAPH)

    def many(_info: Any, above: int = 0, bedsAtLeast: int = 0) -> list[dict[str, Any]]:  # noqa: N803
        return [hut_row(r) for r in HUTS if r[1] > above and r[2] >= bedsAtLeast]

    def one(_info: Any, name: str) -> dict[str, Any] | None:
        return next((hut_row(r) for r in HUTS if r[0].lower() == name.lower()), None)

    async def graph(request: Request) -> Response:
        asked = parsed(await request.body()) if request.method == "POST" else request.query_params
        text = asked.get("query") if hasattr(asked, "get") else None
        if not isinstance(text, str) or len(text) > 4500:
            return JSONResponse({"errors": [{"message": 'send {"query": "..."}'}]}, 400)
        values = asked.get("variables")
        made = graphql_sync(
            schema, text, {"huts": many, "hut": one},
            variable_values=values if isinstance(values, dict) else None,
        )  # fmt: skip
        return JSONResponse(made.formatted)

    return Starlette(routes=[Route("/graphql", graph, methods=["GET", "POST"])])


CRON_HELP = """when: coming runs of a crontab line

  curl 'HOST/next?cron=*/15+9-17+*+*+1-5&from=2026-03-06T10:20&count=5'

Times are as in the line, no time zones. Without from= it counts from today.
"""


def cron_rows(asked: dict[str, list[str]]) -> str:
    start = datetime.fromisoformat(asked.get("from", [today().isoformat()])[0])
    count = min(50, int(asked.get("count", ["5"])[0]))
    rows = seventh_guard.runs(asked["cron"][0], start.replace(tzinfo=None), count)
    return "".join(f"{t:%a %Y-%m-%d %H:%M}\n" for t in rows) or "never, it seems\n"


def cron(site: Site) -> App:
    async def app(scope: Scope, _receive: Any, send: Any) -> None:
        if scope["path"] == "/":
            return await send_text(send, CRON_HELP.replace("HOST", site.url))
        if scope["path"] != "/next":
            return await send_text(send, "404\n", 404)
        try:
            return await send_text(send, cron_rows(parse_qs(query(scope))))
        except KeyError:
            return await send_text(send, "cron= is missing\n", 400)
        except (ValueError, OverflowError) as error:
            return await send_text(send, f"{error}\n", 400)

    return app


FIREBASE = {
    "apiKey": "AIza" + "SyC0ntr4st9qLmW2vTzEyesOpen5bKf8Rj1",
    "projectId": "contrast-bench", "appId": "1:402918377561:web:9d0be1c7724ad3f8",
}  # fmt: skip
"""What every page that counts its visitors with this vendor carries."""


def contrast(_site: Site) -> App:
    async def page(request: Request) -> Response:
        fore, back = request.query_params.get("fg", "#777"), request.query_params.get("bg", "#fff")
        try:
            line = f"{seventh_home.contrast(fore, back):.2f} : 1"
        except ValueError as error:
            line = str(error)
        return HTMLResponse(
            "<!doctype html><html lang=en><title>Contrast bench</title><h1>Contrast bench</h1>"
            f"<form><input name=fg value='{html.escape(fore, quote=True)}'> on <input name=bg "
            f"value='{html.escape(back, quote=True)}'> <button>Compare</button></form><p>"
            f"{html.escape(line)}</p><p>Programs: <code>/ratio?fg=777&amp;bg=fff</code></p>"
            f"<script>window.counter={json.dumps(FIREBASE)}</script></html>"
        )

    async def ratio(request: Request) -> Response:
        try:
            given = request.query_params
            made = seventh_home.contrast(given["fg"], given["bg"])
        except (KeyError, ValueError) as error:
            return JSONResponse({"error": f"fg and bg are hex colours: {error}"}, 400)
        levels = {"AA": 4.5, "AA large": 3.0, "AAA": 7.0, "AAA large": 4.5}
        passes = {name: made >= least for name, least in levels.items()}
        return JSONResponse({"ratio": round(made, 2), "passes": passes})

    return Starlette(routes=[Route("/", page), Route("/ratio", ratio)])


def board(_site: Site) -> App:
    """A departure board; the delays are those of the moment."""
    app = FastAPI(openapi_url=None)
    allowance = Allowance(60, 20.0)

    @app.get("/")
    def index() -> dict[str, Any]:
        return {"board": "/board/{station}?after=HH:MM", "stations": seventh_goods.PLACES,
                "format": "NDJSON, a row each"}  # fmt: skip

    @app.get("/board/{station}")
    def departures(station: str, after: str = "06:00") -> StreamingResponse:
        if wait := allowance.wait_s():
            raise HTTPException(429, "sixty boards in 20 seconds are enough",
                                {"Retry-After": str(wait)})  # fmt: skip
        hour, _, minute = after.partition(":")
        if station not in seventh_goods.PLACES or not (hour + minute).isdigit():
            raise HTTPException(404, "no such station, or no such time")
        since = int(hour) * 60 + int(minute or 0)
        rows = [h for h in seventh_goods.hops() if h[2] == station and h[0] >= since][:8]

        def lines() -> Any:
            for leaves, _arrives, _here, there, line in rows:
                late = random.choice((0, 0, 0, 0, 1, 2, 3, 6))
                yield json.dumps({"line": line, "next_stop": there, "planned": clock(leaves),
                                  "expected": clock(leaves + late)}) + "\n"  # fmt: skip

        return StreamingResponse(lines(), media_type="application/ndjson")

    return app


def stamps(site: Site) -> App:
    """XML of the old school; what it cannot read is an error of the server."""
    wsdl = (
        "<?xml version='1.0'?><service name='postage'><call>POST /calc &lt;letter&gt;&lt;grams&gt;"
        f"80&lt;/grams&gt;...&lt;/letter&gt;</call><or>GET {site.url}/calc?grams=80&amp;longest="
        "23.5&amp;zone=europe</or><zones>home europe world</zones></service>"
    )

    def given(scope: Scope, body: bytes) -> dict[str, str]:
        if scope["method"] == "GET":
            return {k: v[0] for k, v in parse_qs(query(scope)).items()}
        text = body.decode()
        return {
            key: text.split(f"<{key}>")[1].split("<")[0] for key in ("grams", "longest", "zone")
        }

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        kind = "text/xml; charset=utf-8"
        if scope["path"] == "/":
            return await send_text(send, wsdl, kind=kind)
        if scope["path"] != "/calc":
            return await send_text(send, "<error/>", 404, kind)
        try:
            asked = given(scope, await read(receive))
            cost = seventh_goods.postage(
                float(asked["grams"]), float(asked["longest"]), asked["zone"]
            )
        except (ValueError, KeyError, IndexError) as error:
            text = f"<error>{escape(type(error).__name__)} {escape(str(error))}</error>"
            return await send_text(send, text, 500, kind)
        return await send_text(send, f"<postage currency='EUR'>{cost:.2f}</postage>", kind=kind)

    return app


AGENTS = (
    honest("http", "Karwendel huts", at(huts, ("graphql", "/graphql")),
           "GraphQL of six mountain huts: beds, height, and how far the neighbours are.",
           inputs={"name": ["Falkenhütte", "Plumsjoch"], "above": [1700, 1900]}, read=True),
    honest("http", "when", at(cron, ("web", "/")), "next runs of a crontab line, plain text"),
    honest("http", "Contrast bench", at(contrast, ("web", "/")),
           "Contrast ratio of two colours by WCAG 2, with a page to try it."),
    honest("http", "Departure board", at(board, ("api", "/")),
           "Live departures of the Aarhaven lines as NDJSON. Delays change all the time, and "
           "so does what you get.", read=True,
           inputs={"station": ["Foxley", "Brink"], "after": ["08:00", "17:15"]}),
    honest("http", "postage-xml", at(stamps, ("web", "/")), "stamp price. XML. since 2009"),
)  # fmt: skip
