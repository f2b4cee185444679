"""Honest services of the fresh set that speak MCP, HTTP or are paid for."""

import asyncio
import json
import time
from collections import deque
from threading import Thread
from typing import Any

from graphql import build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route
from werkzeug import Request as WsgiRequest
from werkzeug import Response as WsgiResponse
from werkzeug.serving import make_server

from tests.ground_truth.fresh_base import Fresh, own_socket
from tests.ground_truth.fresh_mind import Trade, lines
from tests.ground_truth.fresh_trades import TRADES
from tests.ground_truth.fresh_web import (
    Knob,
    api,
    asked_for,
    charge,
    document,
    high_mcp,
    knob,
    low_mcp,
    named,
    price,
    raw_mcp,
    text_arg,
)
from tests.ground_truth.mcp_parts import sse_mcp, stock_mcp
from tests.ground_truth.site import App, Build, Built, Proof, Scope, Site, registration, send_json


def mcp(site: Site, app: App, path: str = "/mcp") -> Built:
    """The ordinary declaration of an MCP server."""
    return Built([("MCP", site.url + path)], app)


def _streaming(site: Site) -> Built:
    made = high_mcp("harbour-signals", TRADES["morse"], TRADES["leap"])
    return mcp(site, stock_mcp(made, sessions=True, plain_json=False))


def _older(site: Site) -> Built:
    return mcp(site, sse_mcp(high_mcp("two-columns", TRADES["bits"], TRADES["roman"])), "/sse")


def _low(site: Site) -> Built:
    tools = [knob(TRADES["isbn"]), knob(TRADES["bits"], "bases")]
    return mcp(site, low_mcp("bindery", lambda: tools, sessions=True))


_SCARY = ("ignore", "system message", "do not tell", "~/.ssh", "curl ", "api key", "secretly")


def _lint(given: dict[str, Any]) -> str:
    hits = [s for s in lines(str(given["text"])) if any(w in s.lower() for w in _SCARY)]
    return json.dumps({"verdict": "suspicious" if hits else "clean", "evidence": hits})


def _linter(site: Site) -> Built:
    about = (
        "Checks a text for lines that try to take over an AI agent, such as \u201cignore what your"
        " owner said\u201d or \u201cdo not tell the user\u201d, and returns them as evidence."
    )
    tools = [Knob("lint_prompt", about, text_arg("text", "The text to check"), _lint)]
    return mcp(site, raw_mcp("prompt-lint", lambda: tools))


_TRAINS = {
    "광주": "광주행 9시 40분, 3번 승강장",
    "부산": "부산행 10시 5분, 1번 승강장",
    "대전": "대전행 9시 55분, 2번 승강장",
    "강릉": "강릉행 11시 20분, 4번 승강장",
}


def _korean(site: Site) -> Built:
    about = "목적지로 가는 다음 열차의 시각과 승강장을 알려 줍니다. 예: 부산"

    def work(given: dict[str, Any]) -> str:
        return _TRAINS.get(str(given["city"]).strip(), "그 도시는 없습니다.")

    tools = [Knob("next_train", about, text_arg("city", "도시 이름, 예를 들면 대전"), work)]
    return mcp(site, low_mcp("기차", lambda: tools))


def _heavy(site: Site) -> Built:
    async def work(given: dict[str, Any]) -> str | None:
        await asyncio.sleep(1.2)
        return TRADES["pace"].answer(str(given["run"]))

    taken = text_arg("run", "for example 10 km in 52 min")
    tool = Knob("running_pace", TRADES["pace"].about, taken, work)
    return mcp(site, raw_mcp("slow-stopwatch", lambda: [tool]))


def _documented(site: Site) -> Built:
    return Built([("REST", site.url + "/openapi.json")], api(site, TRADES["bits"]))


def _sixty(site: Site) -> Built:
    """Sixty calls a minute from anywhere, then it asks to wait."""
    inner, seen = api(site, TRADES["planet"], "/orbits", prose=True), deque[float]()

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        now = time.monotonic()
        while seen and now - seen[0] > 60:
            seen.popleft()
        if len(seen) >= 60:
            await send_json(send, {"detail": "slow down"}, 429, {"retry-after": "20"})
            return
        seen.append(now)
        await inner(scope, receive, send)

    return Built([("API", site.url + "/openapi.json")], app)


def _wsgi(site: Site) -> Built:
    paper, trade = document(site, TRADES["vat"], "/tax"), TRADES["vat"]
    built = Built([("HTTP API", site.url + "/openapi.json")])
    own = registration(site, built)

    @WsgiRequest.application
    def app(request: WsgiRequest) -> WsgiResponse:
        if request.path == "/openapi.json":
            return _wsgi_json(paper)
        if request.path == "/.well-known/agent-registration.json" and site.proof == "well_known":
            return _wsgi_json(own)
        said = trade.answer(request.args.get("q", "")) if request.path == "/tax" else None
        return _wsgi_json({"answer": said} if said else {"error": "no such land"}, not said)

    server = make_server(*site.address, app, threaded=True)
    server.log = lambda *_rest: None  # type: ignore[method-assign]
    Thread(target=server.serve_forever, daemon=True).start()
    site.stack.callback(server.server_close)
    site.stack.callback(server.shutdown)
    return built


def _wsgi_json(body: Any, wrong: bool = False) -> WsgiResponse:  # noqa: FBT001, FBT002
    return WsgiResponse(json.dumps(body), 404 if wrong else 200, mimetype="application/json")


_PAGE = """<!doctype html><html lang="en"><title>Weir watch</title>
<script src="https://maps.weir.test/js?key=AIzaSyB-weir-watch-public-map-key-00"></script>
<script>const pay = shop("pk_live_51weirwatchpublishable"); report("https://9f@errors.weir.test/4")
</script><h1>Weir watch</h1><p>Levels by weir as JSON: <code>/levels?name=mill</code>.</p></html>"""
_LEVELS = {"mill": 84, "abbey": 131, "tannery": 62}


def _with_page(site: Site) -> Built:
    """A page with the keys that browsers are meant to have."""

    async def page(_request: Request) -> HTMLResponse:
        return HTMLResponse(_PAGE)

    async def levels(request: Request) -> JSONResponse:
        name = request.query_params.get("name", "")
        if name not in _LEVELS:
            return JSONResponse({"known": sorted(_LEVELS)}, 404)
        return JSONResponse({"weir": name, "answer": f"{_LEVELS[name]} cm"})

    async def paper(_request: Request) -> JSONResponse:
        trade = Trade("Weir levels", "The water level at a weir.", ("mill",), str)
        made = document(site, trade, "/levels")
        made["paths"]["/levels"]["get"]["parameters"][0]["name"] = "name"
        return JSONResponse(made)

    routes = [Route("/", page), Route("/levels", levels), Route("/openapi.json", paper)]
    services = [("web", site.url + "/"), ("API", site.url + "/openapi.json")]
    return Built(services, Starlette(routes=routes))


_SCHEMA = build_schema("""
"A catalogue of apple varieties."
type Query {
  "All varieties." varieties: [Variety!]!
  "One by name." variety(name: String!): Variety
}
type Variety { name: String!  ripe: String!  keepsWeeks: Int! }
""")
_APPLES = [{"name": "Boskoop", "ripe": "October", "keepsWeeks": 20},
           {"name": "Discovery", "ripe": "August", "keepsWeeks": 2},
           {"name": "Topaz", "ripe": "September", "keepsWeeks": 16}]  # fmt: skip


async def _graph(site: Site) -> Built:
    """On aiohttp, with a socket of its own."""
    from aiohttp import web  # noqa: PLC0415

    root = {
        "varieties": _APPLES,
        "variety": lambda _info, name: next((a for a in _APPLES if a["name"] == name), None),
    }

    async def query(request: web.Request) -> web.Response:
        try:
            asked = (await request.json())["query"] if request.can_read_body else None
            text = str(asked or request.query["query"])
        except (ValueError, KeyError, TypeError):
            return web.json_response({"errors": [{"message": "send a query"}]}, status=400)
        return web.json_response(graphql_sync(_SCHEMA, text, root).formatted)

    app = web.Application()
    app.router.add_route("*", "/graph", query)
    return await own_socket(site, app, Built([("GraphQL", site.url + "/graph")]))


def _stall(trade: Trade, units: int, *, old: bool, sample: bool) -> Build:
    """Sells a report of its trade; most give a taste for nothing."""

    def build(site: Site) -> Built:
        async def app(scope: Scope, receive: Any, send: Any) -> None:
            del receive
            path = scope["path"]
            if path == "/full":
                await charge(send, price(site, path, units), old=old)
            elif sample and path == "/taste":
                said = trade.answer(asked_for(scope) or trade.examples[0])
                await send_json(send, {"answer": said}, 200 if said else 422)
            elif sample and path == "/openapi.json":
                await send_json(send, named(site, document(site, trade, "/taste")))
            else:
                await send_json(send, {"detail": "not sold"}, 404)

        free = [("API", site.url + "/openapi.json")] if sample else []
        return Built([("x402", site.url + "/full"), *free], app)

    return build


def _h(kind: str, name: str, build: Build, proof: Proof = "well_known", **more: Any) -> Fresh:
    return Fresh(f"fresh {kind}", name, "honest", build, proof, **more)


AGENTS = [
    _h("mcp", "Harbour signals", _streaming),
    _h("mcp", "Two columns", _older),
    _h("mcp", "Bindery", _low),
    _h("quoting", "Prompt lint", _linter),
    _h("not English", "Gicha", _korean),
    _h("slow", "Slow stopwatch", _heavy),
    _h("http", "Number bases", _documented, "openapi"),
    _h("http", "Sales tax", _wsgi, "openapi", served=False),
    _h("http", "Apple catalogue", _graph, served=False),
    _h("rate limited", "Sixty a minute", _sixty, "openapi"),
    _h("browser key", "Weir watch", _with_page),
    _h("x402", "Sky stall", _stall(TRADES["planet"], 12_000, old=False, sample=True), "payee"),
    _h("x402", "Garden stall", _stall(TRADES["plant"], 9_000, old=True, sample=True), "payee"),
    _h("x402", "Bookstall, paid only", _stall(TRADES["isbn"], 6_000, old=False, sample=False),
       "payee", row="payments_only"),
]  # fmt: skip
