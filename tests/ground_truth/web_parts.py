"""HTTP services of several frameworks, and what stands in front of them."""

import asyncio
import json
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import web
from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from werkzeug.serving import make_server
from werkzeug.wrappers import Request as WsgiRequest
from werkzeug.wrappers import Response as WsgiResponse

from tests.ground_truth.knowledge import Domain
from tests.ground_truth.site import App, Built, Scope, Site, registration, send_json

Middle = Callable[[Scope, Any, Any, App], Awaitable[None]]


def around(app: App, *layers: Middle) -> App:
    """The app with layers in front, the first outermost."""
    for layer in reversed(layers):
        app = _wrapped(layer, app)
    return app


def _wrapped(layer: Middle, app: App) -> App:
    async def outer(scope: Scope, receive: Any, send: Any) -> None:
        await layer(scope, receive, send, app)

    return outer


def by_path(parts: Mapping[str, App], rest: App | None = None) -> App:
    """Several apps on one origin, by the longest prefix."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        for prefix in sorted(parts, key=len, reverse=True):
            if scope["path"].startswith(prefix):
                await parts[prefix](scope, receive, send)
                return
        if rest is not None:
            await rest(scope, receive, send)
        else:
            await send_json(send, {"error": "not found"}, 404)

    return app


class Answered(BaseModel):
    """The answer to one question."""

    question: str
    answer: str


def openapi_identity(site: Site, document: dict[str, Any]) -> dict[str, Any]:
    """The document, naming the agent where that is its proof of control."""
    if site.proof == "openapi":
        document["info"]["x-agent-registrations"] = site.identity["registrations"]
        document["info"]["x-agent-wallet"] = site.identity["agentWallet"]
    return document


def fastapi_service(site: Site, domain: Domain, path: str = "/v1/answer") -> FastAPI:
    """A documented API: `path?q=` and a list of examples."""
    app = FastAPI(title=domain.title, description=domain.summary, version="1.4.0")

    async def answer(q: str = Query(examples=list(domain.examples), max_length=400)) -> Answered:
        said = domain.answer(q)
        if said is None:
            raise HTTPException(404, "no answer to this question")
        return Answered(question=q, answer=said)

    async def examples() -> list[str]:
        return list(domain.examples)

    async def home() -> dict[str, str]:
        return {"service": domain.title, "documentation": "/docs"}

    app.get(path)(answer)
    app.get(f"{path}/examples")(examples)
    app.get("/")(home)
    plain = app.openapi

    app.openapi = lambda: openapi_identity(site, plain())  # type: ignore[method-assign]
    return app


def starlette_service(domain: Domain, *, notes: str = "") -> Starlette:
    """An undocumented JSON API: `/ask?text=`."""

    async def ask(request: Request) -> Response:
        said = domain.answer(request.query_params.get("text", ""))
        if said is None:
            return JSONResponse({"error": "ask about something else"}, 422)
        return JSONResponse({"said": said, "by": domain.title})

    async def home(_request: Request) -> Response:
        first = domain.examples[0].replace(" ", "%20")
        return PlainTextResponse(f"{domain.summary}\nTry /ask?text={first}\n{notes}")

    return Starlette(routes=[Route("/ask", ask), Route("/", home)])


def described(site: Site, domain: Domain, path: str, name: str) -> dict[str, Any]:
    """An OpenAPI document written by hand."""
    argument = {
        "name": name, "in": "query", "required": True, "schema": {"type": "string"},
        "example": domain.examples[0],
    }  # fmt: skip
    shape = {"type": "object", "required": ["result"], "properties": {"result": {"type": "string"}}}
    document: dict[str, Any] = {
        "openapi": "3.0.3",
        "info": {"title": domain.title, "version": "7", "description": domain.summary},
        "servers": [{"url": site.url}],
        "paths": {
            path: {
                "get": {
                    "summary": domain.summary,
                    "parameters": [argument],
                    "responses": {
                        "200": {
                            "description": "The result",
                            "content": {"application/json": {"schema": shape}},
                        },
                        "400": {"description": "Not understood"},
                    },
                }
            }
        },
    }
    return openapi_identity(site, document)


async def aiohttp_service(site: Site, domain: Domain, path: str = "/api/query") -> None:
    """An aiohttp server with a hand-written document, on the site's own socket."""
    document = described(site, domain, path, domain.argument)

    async def query(request: web.Request) -> web.Response:
        said = domain.answer(request.query.get(domain.argument, ""))
        if said is None:
            return web.json_response({"error": "not understood"}, status=400)
        return web.json_response({"result": said})

    async def openapi(_request: web.Request) -> web.Response:
        return web.json_response(document)

    async def proof(_request: web.Request) -> web.Response:
        return web.json_response(own_file(site))

    app = web.Application()
    app.router.add_get(path, query)
    app.router.add_get("/openapi.json", openapi)
    if site.proof == "well_known":
        app.router.add_get("/.well-known/agent-registration.json", proof)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    site.stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, *site.address).start()


def own_file(site: Site) -> dict[str, Any]:
    """What a domain-wide proof of control holds."""
    return registration(site, Built([("web", site.url + "/")]))


def werkzeug_service(site: Site, domain: Domain) -> None:
    """A threaded WSGI server, as small Flask shops run it."""

    @WsgiRequest.application
    def app(request: WsgiRequest) -> WsgiResponse:
        if request.path == "/.well-known/agent-registration.json":
            return WsgiResponse(json.dumps(own_file(site)), mimetype="application/json")
        if request.method not in {"GET", "HEAD"}:
            return WsgiResponse("Method Not Allowed", 405, mimetype="text/plain")
        if request.path == "/":
            return WsgiResponse(f"<h1>{domain.title}</h1><p>{domain.summary}", mimetype="text/html")
        if request.path == "/openapi.json":
            text = json.dumps(described(site, domain, "/find", "q"))
            return WsgiResponse(text, mimetype="application/json")
        if request.path != "/find":
            return WsgiResponse("Not Found", 404, mimetype="text/plain")
        said = domain.answer(request.args.get("q", ""))
        status = 200 if said else 400
        return WsgiResponse(json.dumps({"result": said}), status, mimetype="application/json")

    host, port = site.address
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = make_server(host, port, app, threaded=True)
    _in_thread(site, server)


def stdlib_service(site: Site, domain: Domain) -> None:
    """Nothing but the standard library."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = parse_qs(parts.query)
            if parts.path == "/.well-known/agent-registration.json":
                self._say(200, own_file(site))
            elif parts.path == "/lookup" and domain.argument in asked:
                said = domain.answer(asked[domain.argument][0])
                self._say(200 if said else 400, {"result": said})
            elif parts.path == "/openapi.json":
                self._say(200, described(site, domain, "/lookup", domain.argument))
            else:
                self._say(404, {"error": "unknown address"})

        def _say(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(site.address, Handler)
    server.daemon_threads = True
    _in_thread(site, server)


def _in_thread(site: Site, server: Any) -> None:
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True)
    thread.start()
    site.stack.callback(server.shutdown)


def slow(low_s: float, high_s: float) -> Middle:
    """Every call takes its time; documents do not."""

    async def layer(scope: Scope, receive: Any, send: Any, app: App) -> None:
        if scope["method"] == "POST":
            await asyncio.sleep(random.uniform(low_s, high_s))
        await app(scope, receive, send)

    return layer


def limited(per_minute: int) -> Middle:
    """A few calls a minute, then 429 with the time to wait."""
    times: list[float] = []

    async def layer(scope: Scope, receive: Any, send: Any, app: App) -> None:
        now = asyncio.get_running_loop().time()
        times[:] = [t for t in times if now - t < 60]
        if len(times) >= per_minute:
            wait = {"retry-after": str(int(61 - (now - times[0])))}
            await send_json(send, {"error": "slow down"}, 429, wait)
            return
        times.append(now)
        await app(scope, receive, send)

    return layer


def behind_key(key: str) -> Middle:
    """Everything but the card needs a bearer key."""

    async def layer(scope: Scope, receive: Any, send: Any, app: App) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        if given == f"Bearer {key}" or "/.well-known/" in scope["path"]:
            await app(scope, receive, send)
        else:
            ask = {"www-authenticate": "Bearer"}
            await send_json(send, {"error": "a key is needed"}, 401, ask)

    return layer
