"""Honest HTTP services of the second set: documented or not, GraphQL, sellers, several doors."""

import json
from threading import Thread
from typing import Annotated, Any

from aiohttp import web
from fastapi import FastAPI, HTTPException, Path
from graphql import build_schema, graphql_sync
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from werkzeug import Request as WsgiRequest
from werkzeug import Response as WsgiResponse
from werkzeug.serving import make_server

from tests.ground_truth.fresh_base import own_socket
from tests.ground_truth.second_base import Second, honest
from tests.ground_truth.second_crafts_a import ATOMS, ELEMENTS
from tests.ground_truth.second_crafts_b import HOLIDAYS, NETWORKS, holidays
from tests.ground_truth.second_crafts_c import COLOURS, SCANNER, STATISTICS
from tests.ground_truth.second_crafts_d import SPANISH
from tests.ground_truth.second_shop import (
    named_api,
    operation,
    paper,
)
from tests.ground_truth.site import Built, Site, registration


class Shade(BaseModel):
    """A colour in words."""

    hex: str
    described: str


def _paint(site: Site) -> Built:
    """Typed path and query arguments."""
    app = FastAPI(title="Paint box", description=COLOURS.about, version="1.9.2")
    one = Path(pattern="^[\\da-fA-F]{6}$", examples=["2f6f8f"])
    Code = Annotated[str, one]  # noqa: N806
    Other = Annotated[str, Path(examples=["fafae0"])]  # noqa: N806

    @app.get("/colours/{code}", summary="A colour in RGB and HSL")
    async def shade(code: Code) -> Shade:
        return Shade(hex=code, described=COLOURS.answer(f"#{code}") or "")

    @app.get("/contrast/{front}/{back}", summary="The contrast of two colours")
    async def contrast(front: Code, back: Other) -> dict[str, str]:
        said = COLOURS.answer(f"#{front} #{back}")
        if not said or " on " not in said:
            raise HTTPException(400, "two hex colours are needed")
        return {"contrast": said}

    return Built([("OpenAPI", site.url + "/openapi.json")], named_api(site, app))


class Passage(BaseModel):
    """A text to be measured."""

    text: str = Field(min_length=1, max_length=20_000, examples=list(STATISTICS.examples))


def _meter(site: Site) -> Built:
    """Texts are posted; nothing is kept."""
    app = FastAPI(title="Prose meter", description=STATISTICS.about, version="0.2")

    @app.post("/measure", summary=STATISTICS.about)
    async def measure(passage: Passage) -> dict[str, str]:
        return {"figures": STATISTICS.answer(passage.text) or "too short"}

    @app.post("/scan", summary=SCANNER.about)
    async def scan(
        passage: Passage,
    ) -> dict[str, str]:
        return {"report": SCANNER.answer(passage.text) or "too short"}

    @app.get("/health")
    async def health() -> dict[str, bool]:
        return {"ok": True}

    return Built([("REST API", site.url + "/openapi.json")], named_api(site, app))


def _subnets(site: Site) -> Built:
    """Without a document; its page says how it is asked."""

    async def page(_request: Request) -> Response:
        text = f"{NETWORKS.about}\n\nGET /calc?range=10.1.0.0/20\n"
        return PlainTextResponse(text)

    async def calc(request: Request) -> Response:
        said = NETWORKS.answer(request.query_params.get("range", ""))
        return JSONResponse(
            {"range": said} if said else {"error": "a.b.c.d/n"}, 200 if said else 422
        )

    app = Starlette(routes=[Route("/", page), Route("/calc", calc)])
    return Built([("http", site.url + "/calc?range=10.1.0.0/20")], app)


async def _feasts(site: Site) -> Built:
    """Arguments in the path, a document by hand, a socket of its own."""
    country = {"name": "country", "in": "path", "required": True, "example": "norway",
               "schema": {"type": "string", "enum": ["germany", "poland", "france", "italy",
                                                     "norway"]}}  # fmt: skip
    year = {"name": "year", "in": "path", "required": True, "example": 2028,
            "schema": {"type": "integer", "minimum": 1950, "maximum": 2099}}  # fmt: skip
    rows = {"type": "array", "items": {"type": "object", "properties": {
        "day": {"type": "string", "format": "date"}, "name": {"type": "string"}}}}  # fmt: skip
    fine = {
        "200": {"description": "All holidays", "content": {"application/json": {"schema": rows}}}
    }
    deed = {"get": {"summary": HOLIDAYS.about, "parameters": [country, year], "responses": fine}}
    written = paper(site, "Feast days", {"/holidays/{country}/{year}": deed}, HOLIDAYS.about)

    async def listed(request: web.Request) -> web.Response:
        land, asked = request.match_info["country"].lower(), request.match_info["year"]
        if not asked.isdigit() or not 1950 <= int(asked) <= 2099:
            return web.json_response({"error": "years 1950 to 2099"}, status=400)
        try:
            made = holidays(land, int(asked))
        except KeyError:
            return web.json_response({"error": "country unknown"}, status=404)
        return web.json_response([{"day": d.isoformat(), "name": n} for d, n in made])

    async def document(_request: web.Request) -> web.Response:
        return web.json_response(written)

    app = web.Application()
    app.router.add_get("/holidays/{country}/{year}", listed)
    app.router.add_get("/openapi.json", document)
    return await own_socket(site, app, Built([("api", site.url + "/openapi.json")]))


def _threads(site: Site) -> Built:
    """A WSGI shop with threads, in Spanish."""
    built = Built([("API REST", site.url + "/openapi.json")])
    pages = {
        "/openapi.json": paper(site, SPANISH.title, {"/letras": operation(SPANISH, "cifra")}),
        "/.well-known/agent-registration.json": registration(site, built),
    }

    @WsgiRequest.application
    def app(request: WsgiRequest) -> WsgiResponse:
        body: Any = pages.get(request.path)
        if request.path == "/letras":
            said = SPANISH.answer(request.args.get("cifra", ""))
            body = {"result": said} if said else {"error": "falta una cifra"}
            status = 200 if said else 422
        else:
            status = 200 if body else 404
        text = json.dumps(body or {"error": "no existe"}, ensure_ascii=False)
        return WsgiResponse(text, status, mimetype="application/json")

    server = make_server(*site.address, app, threaded=True)
    server.log = lambda *_rest: None  # type: ignore[method-assign]
    Thread(target=server.serve_forever, daemon=True).start()
    site.stack.callback(server.server_close)
    site.stack.callback(server.shutdown)
    return built


_GRAPH = build_schema("""
"A chemical element."
type Element { symbol: String! name: String! number: Int! mass: Float! }
type Query {
  "All elements up to xenon, or those up to a number."
  elements(upTo: Int): [Element!]!
  "By symbol, such as Fe."
  element(symbol: String!): Element
  "What a mole of a formula weighs."
  molarMass(formula: String!): String
}
""")


def _element(symbol: str) -> dict[str, Any] | None:
    row = ATOMS.get(symbol)
    return row and {"symbol": symbol, "name": row[1], "number": row[0], "mass": row[2]}


def _graph(site: Site) -> Built:
    """GraphQL at /graphql."""
    root = {
        "elements": lambda _info, upTo=54: [_element(s) for s in list(ATOMS)[:upTo]],  # noqa: N803
        "element": lambda _info, symbol: _element(symbol),
        "molarMass": lambda _info, formula: ELEMENTS.answer(formula),
    }

    async def ask(request: Request) -> Response:
        try:
            body = await request.json() if request.method == "POST" else dict(request.query_params)
            query, given = str(body["query"]), body.get("variables")
        except (ValueError, KeyError, TypeError, AttributeError):
            return JSONResponse({"errors": [{"message": "a query is needed"}]}, 400)
        done = graphql_sync(
            _GRAPH, query, root, variable_values=given if isinstance(given, dict) else None
        )
        return JSONResponse(done.formatted)

    app = Starlette(routes=[Route("/graphql", ask, methods=["GET", "POST"])])
    return Built([("GraphQL", site.url + "/graphql")], app)


KIND = "http"
AGENTS: list[Second] = [
    honest(KIND, "Paint box", _paint, "openapi"),
    honest(KIND, "Prose meter", _meter, "openapi"),
    honest(KIND, "Ranges", _subnets),
    honest(KIND, "Feast days", _feasts, served=False),
    honest(KIND, "Números", _threads, served=False),
    honest(KIND, "Element graph", _graph),
]
