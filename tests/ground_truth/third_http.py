"""The third set's honest HTTP services: by hand, and all of them in a list."""

import asyncio
import json
import math
import random
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.ground_truth.fresh_base import own_socket
from tests.ground_truth.site import App, Built, Site
from tests.ground_truth.third_base import honest, on_web
from tests.ground_truth.third_http_fast import cellar, cells, gauge, hijri, tabled
from tests.ground_truth.web_parts import openapi_identity

STRENGTHS = (
    (1, "Windstille"), (6, "leiser Zug"), (12, "leichte Brise"), (20, "schwache Brise"),
    (29, "m\u00e4\u00dfige Brise"), (39, "frische Brise"), (50, "starker Wind"),
    (62, "steifer Wind"), (75, "st\u00fcrmischer Wind"), (89, "Sturm"), (103, "schwerer Sturm"),
    (118, "orkanartiger Sturm"), (math.inf, "Orkan"),
)  # fmt: skip


def edits(left: str, right: str) -> int:
    """Levenshtein's distance."""
    row = list(range(len(right) + 1))
    for n, a in enumerate(left, 1):
        before, row[0] = row[0], n
        for m, b in enumerate(right, 1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (a != b))
    return row[-1]


Operation = Callable[[Request], Awaitable[Response]]


def handwritten(
    site: Site, title: str, about: str, path: str, operation: tuple[dict[str, Any], Operation],
    method: str = "get",
) -> App:  # fmt: skip
    """One operation with a document by hand."""
    row = {
        "responses": {
            "200": {"description": "The answer"},
            "400": {"description": "Not understood"},
        }
    }
    document = openapi_identity(site, {
        "openapi": "3.1.0", "info": {"title": title, "version": "2", "description": about},
        "servers": [{"url": site.url}], "paths": {path: {method: row | operation[0]}},
    })  # fmt: skip

    async def openapi(_request: Request) -> Response:
        return JSONResponse(document)

    async def home(_request: Request) -> Response:
        return JSONResponse({"service": title, "document": "/openapi.json"})

    routes = [
        Route("/", home),
        Route("/openapi.json", openapi),
        Route(path, operation[1], methods=[method.upper()]),
    ]
    return Starlette(routes=routes)


def parameter(name: str, about: str, example: Any, **schema: Any) -> dict[str, Any]:
    """A query parameter."""
    return {"name": name, "in": "query", "required": "default" not in schema, "description": about,
            "schema": {"type": "string"} | schema, "example": example}  # fmt: skip


def nearness(site: Site) -> App:
    """How far two words are apart; takes its time."""

    async def run(request: Request) -> Response:
        await asyncio.sleep(random.uniform(1.0, 2.0))
        a, b = (request.query_params.get(k, "") for k in ("a", "b"))
        method = request.query_params.get("method", "levenshtein")
        if not a or not b or len(a) + len(b) > 400 or method not in {"levenshtein", "hamming"}:
            return JSONResponse({"error": "a and b are needed, up to 400 letters"}, 400)
        if method == "hamming" and len(a) != len(b):
            return JSONResponse({"error": "hamming wants equal lengths"}, 400)
        steps = (
            edits(a, b)
            if method == "levenshtein"
            else sum(x != y for x, y in zip(a, b, strict=True))
        )
        return JSONResponse({"a": a, "b": b, "method": method, "distance": steps})

    shape = {"summary": "Steps that turn a word into the next", "parameters": [
        parameter("a", "First word", "kitten"), parameter("b", "Second word", "sitting"),
        parameter("method", "How to count", "levenshtein", enum=["levenshtein", "hamming"],
                  default="levenshtein"),
    ]}  # fmt: skip
    return handwritten(site, "Word distance", "Counts edits of words.", "/distance", (shape, run))


def beaufort(site: Site) -> App:
    """Wind in German."""

    async def run(request: Request) -> Response:
        try:
            value = float(request.query_params["wert"].replace(",", "."))
            kmh = (
                value
                * {"kmh": 1.0, "ms": 3.6, "kn": 1.852}[request.query_params.get("einheit", "kmh")]
            )
        except (KeyError, ValueError):
            return JSONResponse(
                {"fehler": "wert fehlt oder einheit ist nicht kmh, ms oder kn"}, 400
            )
        if not 0 <= kmh < 1000:
            return JSONResponse({"fehler": "so einen Wind gibt es nicht"}, 400)
        force = next(n for n, (limit, _) in enumerate(STRENGTHS) if kmh < limit)
        return JSONResponse(
            {"windstaerke": force, "name": STRENGTHS[force][1], "kmh": round(kmh, 1)}
        )

    shape = {"summary": "Windst\u00e4rke nach Beaufort", "parameters": [
        parameter("wert", "Geschwindigkeit", 45, type="number"),
        parameter("einheit", "Einheit", "kmh", enum=["kmh", "ms", "kn"], default="kmh"),
    ]}  # fmt: skip
    return handwritten(site, "Windst\u00e4rken", "Rechnet Windgeschwindigkeiten in Beaufort um.",
                       "/beaufort", (shape, run))  # fmt: skip


async def beams(site: Site) -> Built:
    """On a socket of its own, with aiohttp."""
    document = openapi_identity(site, {
        "openapi": "3.0.3", "info": {"title": "Beam sums", "version": "5"},
        "paths": {"/moment": {"get": {
            "summary": "Bending moment and support force of a simple beam",
            "parameters": [
                parameter("span", "Metres between supports", 6, type="number"),
                parameter("load", "kN at midspan, or kN per metre", 12, type="number"),
                parameter("kind", "How the load lies", "point", enum=["point", "spread"],
                          default="point"),
            ],
            "responses": {"200": {"description": "Moment in kNm and force in kN"}},
        }}},
    })  # fmt: skip

    async def moment(request: web.Request) -> web.Response:
        try:
            span, load = (float(request.query[k]) for k in ("span", "load"))
        except (KeyError, ValueError):
            return web.json_response({"error": "span and load have to be numbers"}, status=400)
        kind = request.query.get("kind", "point")
        if kind not in {"point", "spread"} or not 0 < span < 1e4 or not abs(load) < 1e9:
            return web.json_response({"error": "span above 0; kind is point or spread"}, status=400)
        most, held = (
            (load * span / 4, load / 2)
            if kind == "point"
            else (load * span**2 / 8, load * span / 2)
        )
        return web.json_response({"moment_kNm": round(most, 3), "support_kN": round(held, 3)})

    async def shown(_request: web.Request) -> web.Response:
        return web.Response(text=json.dumps(document), content_type="application/json")

    app = web.Application()
    app.router.add_get("/moment", moment)
    app.router.add_get("/openapi.json", shown)
    app.router.add_get("/", shown)
    return await own_socket(site, app, Built([("web", site.url + "/")]))


AGENTS = (
    honest("http", "Grid cells", on_web(cells, "/openapi.json", "OpenAPI"), "openapi"),
    honest("http", "Cellar list", on_web(cellar)),
    honest("http", "Stitch gauge", on_web(gauge, "/cast-on")),
    honest("http", "Word distance", on_web(nearness, "/openapi.json", "REST"), "openapi"),
    honest("http", "Windst\u00e4rken", on_web(beaufort)),
    honest(
        "http",
        "\u0627\u0644\u062a\u0642\u0648\u064a\u0645 \u0627\u0644\u0647\u062c\u0631\u064a",
        on_web(hijri, "/openapi.json", "API"),
    ),
    honest("http", "Comma to pipe", on_web(tabled, "/openapi.json"), "openapi"),
    honest("http", "Beam sums", beams, served=False),
)
