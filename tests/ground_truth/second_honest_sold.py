"""Honest services of the second set that are sold, have several doors, or are written by hand."""

import asyncio
import json
import random
from typing import Any
from uuid import uuid4

from aiohttp import web
from fastapi import FastAPI, HTTPException
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tests.ground_truth.fresh_base import CARD, own_socket
from tests.ground_truth.mcp_parts import stock_mcp
from tests.ground_truth.second_base import Second, counter_app, crafts, honest, poster
from tests.ground_truth.second_crafts_a import Craft, almanac
from tests.ground_truth.second_crafts_b import CHECKS, LOANS, MUSIC, NETWORKS
from tests.ground_truth.second_crafts_c import DIGEST
from tests.ground_truth.second_honest_http import Passage
from tests.ground_truth.second_honest_mcp import served, shop, tool_of
from tests.ground_truth.second_layers import prefixes, spaced
from tests.ground_truth.second_shop import (
    argument,
    bill,
    named_api,
    operation,
    paper,
    present,
    settled,
)
from tests.ground_truth.site import App, Build, Built, Scope, Site, send_json


def seller(craft: Craft, name: str, cents: int, *, free: bool, old: bool = False) -> Build:
    """Sells answers, and delivers; perhaps a sample is free."""

    def build(site: Site) -> Built:
        price = bill(site, "/full", cents * 10_000)
        paths = {"/full": operation(craft, name, paid=f"{cents / 100:.2f}")}
        if free:
            paths["/sample"] = operation(craft, name, number=-1)
        written = paper(site, f"{craft.title}, sold by the answer", paths)

        async def app(scope: Scope, receive: Any, send: Any) -> None:
            del receive
            path = scope["path"]
            if path == "/openapi.json":
                await send_json(send, written)
            elif path == "/full" and not settled(scope, price):
                await present(send, site, "/full", price, old=old, about=craft.about)
            elif path == "/full" or (free and path == "/sample"):
                said = craft.answer(argument(scope, name))
                await send_json(send, {"result": said or "not understood"}, 200 if said else 422)
            else:
                await send_json(send, {"error": "unknown article"}, 404)

        more = [("API", site.url + "/openapi.json")] if free else []
        return Built([("x402", site.url + "/full"), *more], app)

    return build


def _three_doors(site: Site) -> Built:
    """A card, tools and an API of one agent."""
    talk, shown = crafts(MUSIC), poster(MUSIC, title="Rehearsal room", path="/a2a")
    tools = shop("rehearsal-room")
    tools.add_tool(
        tool_of(MUSIC, "spell_chord", "chord"), description="Notes of a chord like Ebm7."
    )
    card = counter_app(site, shown, talk)
    api = FastAPI(title="Rehearsal room", version="4")

    @api.get("/notes", summary=MUSIC.about)
    async def notes(of: str) -> dict[str, str]:
        said = MUSIC.answer(of)
        if not said:
            raise HTTPException(404, "try D dorian or Ebm7")
        return {"notes": said}

    app = prefixes({"/": api, "/a2a": card, CARD: card, "/mcp": stock_mcp(tools)})
    return Built([("A2A", site.url + CARD), *served(site, app).services,
                  ("OpenAPI", site.url + "/openapi.json")], app)  # fmt: skip


def _slow_digest(site: Site) -> Built:
    """Answers after a while, and not too often."""
    app = FastAPI(title="Digest", description=DIGEST.about, version="3.0")

    @app.post("/digest")
    async def digest(passage: Passage) -> dict[str, str]:
        await asyncio.sleep(random.uniform(2, 5))
        return {"digest": DIGEST.answer(passage.text) or passage.text}

    inner: App = named_api(site, app)
    return Built([("REST", site.url + "/openapi.json")], spaced(25, 30)(inner))


_HOME = """<!doctype html><html lang="en"><head><title>Week numbers</title></head>
<body><h1>Week numbers</h1><p>Ask <code>/week?day=2026-11-22</code>.</p></body></html>"""


def _weeks(site: Site) -> Built:
    """A page for people, a document for machines, and answers by chance in two layouts."""

    async def page(_request: Request) -> Response:
        return HTMLResponse(_HOME)

    async def week(request: Request) -> Response:
        said = almanac(request.query_params.get("day", ""))
        if not said:
            return JSONResponse({"error": "day=YYYY-MM-DD"}, 422)
        return JSONResponse({"result": said, "served": random.choice(("a", "b"))})

    craft = Craft("Week numbers", "Weekday and ISO week of a date.", ("2026-11-22",), almanac)
    written = paper(site, craft.title, {"/week": operation(craft, "day")})

    async def document(_request: Request) -> Response:
        return JSONResponse(written)

    routes = [Route("/", page), Route("/week", week), Route("/openapi.json", document)]
    return Built([("web", site.url + "/"), ("OpenAPI", site.url + "/openapi.json")],
                 Starlette(routes=routes))  # fmt: skip


_CHECK = {
    "name": "verify",
    "title": "Verify a number",
    "description": "Tells whether an IBAN, an EAN or a Luhn number has the right check digits.",
    "inputSchema": {
        "type": "object",
        "properties": {"number": {"type": "string", "examples": ["4006381333931"]}},
        "required": ["number"],
        "additionalProperties": False,
    },
}


class _Window:
    """By hand on aiohttp: sessions by header, one tool, errors as the specification has them."""

    def __init__(self) -> None:
        self.open: set[str] = set()

    async def post(self, request: web.Request) -> web.Response:
        try:
            asked = json.loads(await request.read())
            method, number = str(asked["method"]), asked.get("id")
        except (ValueError, KeyError, TypeError, AttributeError):
            wrong = {"code": -32700, "message": "no request in that"}
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": wrong}, status=400)
        if number is None:
            return web.Response(status=202)
        head: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if method == "initialize":
            session = uuid4().hex
            self.open.add(session)
            about = {"name": "check-digits", "version": "5"}
            hello = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            return web.json_response(
                head | {"result": hello | {"serverInfo": about}},
                headers={"mcp-session-id": session},
            )
        if request.headers.get("mcp-session-id") not in self.open:
            return web.json_response(head | {"error": {"code": -32000, "message": "hello first"}},
                                     status=404)  # fmt: skip
        return web.json_response(head | self.say(method, asked.get("params") or {}))

    def say(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "ping":
            return {"result": {}}
        if method == "tools/list":
            return {"result": {"tools": [_CHECK]}}
        if method != "tools/call" or params.get("name") != "verify":
            return {"error": {"code": -32601, "message": f"{method} is not done here"}}
        said = CHECKS.answer(str((params.get("arguments") or {}).get("number", "")))
        text = said or "That is neither an IBAN nor a row of digits."
        return {"result": {"content": [{"type": "text", "text": text}], "isError": said is None}}


async def _numbers(site: Site) -> Built:
    window = _Window()
    app = web.Application()
    app.router.add_post("/", window.post)
    return await own_socket(site, app, Built([("mcp", site.url + "/")]))


KIND = "http"
AGENTS: list[Second] = [
    honest("mcp", "Check digits by hand", _numbers, served=False),
    honest(KIND, "Slow digest", _slow_digest, "openapi"),
    honest(KIND, "Week numbers", _weeks),
    honest("several doors", "Rehearsal room", _three_doors),
    honest("x402", "Loans by the answer", seller(LOANS, "loan", 2, free=True), "openapi"),
    honest("x402", "Chords by the answer", seller(MUSIC, "chord", 1, free=True, old=True)),
    honest("x402 only", "Networks by the answer", seller(NETWORKS, "range", 5, free=False), "payee",
           row="payments_only"),
]  # fmt: skip
