"""The fifth set's honest services without a framework, or on their own socket."""

import json
import logging
import textwrap
import threading
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from aiohttp import web
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from tests.ground_truth.fifth_base import honest
from tests.ground_truth.fifth_sums import convergents, derived, polynomial
from tests.ground_truth.fourth_base import on_http
from tests.ground_truth.site import App, Built, Scope, Site, read, registration, send_json
from tests.ground_truth.web_parts import openapi_identity

REGISTRATION = "/.well-known/agent-registration.json"


def _number(name: str, unit: str, example: float) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": True, "description": unit, "example": example,
            "schema": {"type": "number", "exclusiveMinimum": 0}}  # fmt: skip


async def battery(site: Site) -> Built:
    """How long a battery lasts: aiohttp on the site's own socket."""
    wanted = (
        _number("capacity_mah", "capacity in mAh", 2200),
        _number("load_ma", "load in mA", 150),
    )
    document: dict[str, Any] = openapi_identity(site, {
        "openapi": "3.0.0",
        "info": {"title": "Amp hours", "version": "4", "description": "How long a battery lasts."},
        "servers": [{"url": site.url + "/api"}],
        "paths": {"/runtime": {"get": {
            "summary": "Hours until a battery is empty; efficiency is 1 unless given",
            "parameters": [*wanted, {"name": "efficiency", "in": "query", "schema": {
                "type": "number", "minimum": 0.05, "maximum": 1, "default": 1}}],
            "responses": {"200": {"description": "hours"}, "422": {"description": "bad number"}},
        }}},
    })  # fmt: skip

    async def runtime(request: web.Request) -> web.Response:
        try:
            capacity, load = (float(request.query[row["name"]]) for row in wanted)
            efficiency = float(request.query.get("efficiency", 1))
            hours = capacity * efficiency / load
        except (KeyError, ValueError, ZeroDivisionError) as wrong:
            return web.json_response({"title": "bad number", "detail": str(wrong)}, status=422)
        whole, rest = divmod(round(hours * 60), 60)
        return web.json_response({"hours": round(hours, 2), "clock": f"{whole}:{rest:02d}"})

    async def openapi(_request: web.Request) -> web.Response:
        return web.json_response(document)

    made = web.Application()
    made.router.add_get("/api/runtime", runtime)
    made.router.add_get("/openapi.json", openapi)
    runner = web.AppRunner(made, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    site.stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, *site.address).start()
    return Built([("web", site.url + "/openapi.json")])


def lens(site: Site) -> Built:
    """The thin lens, in XML, by a threaded WSGI server."""
    built = Built([("web", site.url + "/")])

    def image(request: Request) -> tuple[str, int]:
        try:
            focal, away = float(request.args["f"]), float(request.args["distance"])
            there = 1 / (1 / focal - 1 / away)
        except (KeyError, ValueError):
            return "<error>f and distance are needed, in millimetres</error>", 400
        except ZeroDivisionError:
            return "<image at='infinity'/>", 200
        sort = "real" if there > 0 else "virtual"
        inner = f"<distance unit='mm'>{there:.2f}</distance><scale>{-there / away:.3f}</scale>"
        return f"<image sort='{sort}'>{inner}</image>", 200

    @Request.application
    def app(request: Request) -> Response:
        if request.path == REGISTRATION:
            return Response(json.dumps(registration(site, built)), mimetype="application/json")
        if request.path == "/image":
            text, status = image(request)
            return Response(f"<?xml version='1.0'?>\n{text}", status, mimetype="text/xml")
        if request.path == "/":
            say = "<h1>Thin lens</h1><p>Where a lens puts the image, and how large it is. XML."
            link = escape("/image?f=50&distance=200", {"'": "&apos;"})
            return Response(f"{say}<p><a href='{link}'>Try it</a>", mimetype="text/html")
        return Response("not here", 404)

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    _threaded(site, make_server(*site.address, app, threaded=True))
    return built


def fractions(site: Site) -> Built:
    """Continued fractions, by the standard library's server."""
    built = Built([("web", site.url + "/cf/355/113")])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path).path.strip("/").split("/")
            if "/" + "/".join(parts) == REGISTRATION:
                self._say(200, registration(site, built))
            elif parts[0] != "cf":
                self._say(404, {"usage": f"{site.url}/cf/355/113 or {site.url}/cf/3.1416"})
            else:
                try:
                    terms, steps = convergents(Fraction("/".join(parts[1:])[:40]))
                except (ValueError, ZeroDivisionError):
                    self._say(400, {"error": "after /cf/ comes a fraction or a decimal"})
                else:
                    self._say(200, {"terms": terms, "convergents": steps})

        def _say(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Says nothing."""

    server = ThreadingHTTPServer(site.address, Handler)
    server.daemon_threads = True
    _threaded(site, server)
    return built


def _threaded(site: Site, server: Any) -> None:
    threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()
    site.stack.callback(server.server_close)
    site.stack.callback(server.shutdown)


USAGE = (
    "boxed - draws a frame around your text\n\n"
    "  curl --data-binary 'Hello there' URL/box\n"
    "  curl --data-binary 'Hello there' 'URL/box?width=20&align=center'\n"
)


def framed(text: str, width: int, align: str) -> str:
    """A text in a frame."""
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, width) or [""]]
    wide = max(map(len, lines), default=0)
    put = {"center": str.center, "right": str.rjust}.get(align, str.ljust)
    inner = "\n".join(f"\u2502 {put(line, wide)} \u2502" for line in lines)
    line = "\u2500" * (wide + 2)
    return f"\u250c{line}\u2510\n{inner}\n\u2514{line}\u2518\n"


def boxes(site: Site) -> App:
    """Text in, text out, on bare ASGI."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        status, text = 200, USAGE.replace("URL", site.url)
        if scope["path"] == "/box" and scope["method"] == "POST":
            asked = dict(p.partition("=")[::2] for p in scope["query_string"].decode().split("&"))
            width = int(asked["width"]) if asked.get("width", "").isdigit() else 60
            body = (await read(receive)).decode("utf-8", "replace")[:3900]
            text = framed(body, max(4, min(width, 120)), asked.get("align", "left"))
        elif scope["path"] not in {"/", "/box"}:
            status, text = 404, "no such page\n"
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    return app


def _floats(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "required": True,
        "schema": {"type": "array", "items": {"type": "number"}},
    }


METHODS: list[dict[str, Any]] = [
    {"name": "poly.value", "summary": "Value of a polynomial, highest power first",
     "params": [_floats("coefficients"), {"name": "x", "required": True,
                                          "schema": {"type": "number"}}],
     "result": {"name": "value", "schema": {"type": "number"}},
     "examples": [{"name": "at two", "params": [{"name": "coefficients", "value": [1, 0, -1]},
                                                {"name": "x", "value": 2}],
                   "result": {"name": "value", "value": 3}}]},
    {"name": "poly.derivative", "summary": "The derivative, as coefficients",
     "params": [_floats("coefficients")],
     "result": {"name": "coefficients", "schema": {"type": "array"}}},
]  # fmt: skip


def _polynomial(method: str, given: Any) -> dict[str, Any]:
    if isinstance(given, list):
        given = dict(zip(("coefficients", "x"), given, strict=False))
    try:
        row = [float(c) for c in given["coefficients"]]
        if method == "poly.derivative":
            return {"result": derived(row)}
        if method == "poly.value":
            return {"result": polynomial(row, float(given["x"]))}
    except (KeyError, TypeError, ValueError):
        return {"error": {"code": -32602, "message": "numbers were expected"}}
    return {"error": {"code": -32601, "message": "try rpc.discover"}}


def polynomials(site: Site) -> App:
    """Plain JSON-RPC with an OpenRPC document, no protocol of agents at all."""
    document = {
        "openrpc": "1.3.2",
        "info": {"title": "Horner", "version": "1.0.0"},
        "servers": [{"name": "here", "url": site.url + "/rpc"}],
        "methods": METHODS,
    }

    def run(asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("method") == "rpc.discover":
            return {"result": document}
        return _polynomial(str(asked.get("method")), asked.get("params"))

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] in {"/", "/openrpc.json"} and scope["method"] == "GET":
            return await send_json(send, document)
        if scope["path"] != "/rpc":
            return await send_json(send, {"message": "unknown"}, 404)
        try:
            asked = json.loads(await read(receive))
            said = run(asked) | {"jsonrpc": "2.0", "id": asked.get("id")}
        except (ValueError, AttributeError, RecursionError):
            error = {"code": -32700, "message": "not JSON-RPC"}
            said = {"jsonrpc": "2.0", "id": None, "error": error}
        return await send_json(send, said)

    return app


AGENTS = (
    honest("http", "Amp hours", battery, "openapi", served=False),
    honest("http", "Thin lens", lens, served=False),
    honest("http", "Convergents", fractions, served=False),
    honest("http", "Boxed", on_http(boxes)),
    honest("http", "Horner", on_http(polynomials, "/rpc", "JSON-RPC")),
)
