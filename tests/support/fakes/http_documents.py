"""Small services with an OpenAPI document, each of which describes its calls in its own way."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from tests.support.fakes.http_shapes import Handler

PORTS = {"Aldren": 3, "Brackwater": 17, "Corvale": 40, "Dunmouth": 71}


@dataclass(frozen=True)
class Documented:
    """A service: what is declared, its document and where that is, and how it works."""

    document: JsonObject
    route: str
    works: Handler
    method: str = "GET"
    document_at: str = "/openapi.json"
    declared: str = "/"

    def app(self, handler: Handler | None = None) -> Starlette:
        """The service, or with another handler its twin."""

        async def describe(_request: Request) -> Response:
            return JSONResponse(self.document)

        call = Route(self.route, handler or self.works, methods=[self.method])
        return Starlette(routes=[Route(self.document_at, describe), call])


def _refused(why: str, status: int = 422) -> Response:
    return JSONResponse({"error": why}, status)


async def _legs(request: Request) -> Response:
    """Miles between two ports that only this service knows."""
    start, goal = request.query_params.get("start"), request.query_params.get("goal")
    if start not in PORTS or goal not in PORTS:
        return _refused(
            "unknown, see /legs?start=Aldren&goal=Corvale or /legs?start=Dunmouth&goal=Aldren"
        )
    return JSONResponse({"miles": abs(PORTS[start] - PORTS[goal]) * 11})


async def _silent_legs(request: Request) -> Response:
    """The same, where a refusal says nothing."""
    start, goal = request.query_params.get("start"), request.query_params.get("goal")
    if start not in PORTS or goal not in PORTS:
        return _refused("unknown")
    return JSONResponse({"miles": abs(PORTS[start] - PORTS[goal]) * 11})


async def _text(request: Request) -> Response:
    """How often each word's first letter stands in a text, in their order."""
    if "text/plain" not in request.headers.get("content-type", ""):
        return _refused("text/plain", 415)
    text = (await request.body()).decode()
    return PlainTextResponse(" ".join(str(text.count(word[0]) * 7) for word in text.split()))


async def _form(request: Request) -> Response:
    """Steps of a stair."""
    given = dict(parse_qsl((await request.body()).decode()))
    if "form-urlencoded" not in request.headers.get("content-type", ""):
        return _refused("a form", 415)
    try:
        return JSONResponse({"steps": int(given["height"]) * 10 // int(given["riser"])})
    except (KeyError, ValueError, ZeroDivisionError):
        return _refused("height and riser")


async def _body(request: Request) -> Response:
    """Paint for walls."""
    given = await request.json()
    walls = given.get("walls") if is_object(given) else None
    coats = given.get("coats") if is_object(given) else None
    if not is_array(walls) or not isinstance(coats, int) or not walls:
        return _refused("walls and coats")
    rows = [(w.get("wide"), w.get("high")) for w in walls if is_object(w)]
    area = sum(w * h for w, h in rows if isinstance(w, int | float) and isinstance(h, int | float))
    return JSONResponse({"litres": round(area * coats / 9.5, 3)})


async def _lists(request: Request) -> Response:
    """A polynomial at a place; its coefficients repeated, or joined by commas."""
    query = request.query_params
    rows = query.getlist("c")
    rows = rows[0].split(",") if len(rows) == 1 else rows
    try:
        at, made = float(query["x"]), 0.0
        for one in map(float, rows):
            made = made * at + one
    except (KeyError, ValueError):
        return _refused("c and x")
    return JSONResponse({"y": round(made, 4)}) if len(rows) > 1 else _refused("more of c")


async def _plate(request: Request) -> Response:
    """A check letter of a plate."""
    plate = str(request.path_params["plate"])
    if not re.fullmatch(r"[A-Z]{2}-\d{3}", plate):
        return _refused("no plate")
    said = sum(ord(c) * place for place, c in enumerate(plate, 3))
    return JSONResponse({"remainder": said % 9973})


def _openapi(path: str, method: str, operation: JsonObject, **more: JsonValue) -> JsonObject:
    info = {"title": "Service", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {path: {method: operation}}, **more}


def _query(name: str, schema: JsonObject, **more: bool) -> JsonObject:
    return {"name": name, "in": "query", "required": True, "schema": schema, **more}


_TEXT: JsonObject = {"type": "string"}
_NUMBERS: JsonObject = {"type": "array", "items": {"type": "number"}}
_LEGS: JsonObject = {
    "summary": "Miles of a passage", "parameters": [_query("start", _TEXT), _query("goal", _TEXT)],
}  # fmt: skip
_STAIR: JsonObject = {"height": {"type": "integer"}, "riser": {"type": "integer"}}
_WALLS: JsonObject = {"walls": [{"wide": 4, "high": 2.5}, {"wide": 7, "high": 3.5}], "coats": 2}


def _posts(summary: str, media: str, content: JsonObject) -> JsonObject:
    return {"summary": summary, "requestBody": {"required": True, "content": {media: content}}}


def _swagger(path: str, operation: JsonObject, **more: JsonValue) -> JsonObject:
    info = {"title": "Service", "version": "1"}
    return {"swagger": "2.0", "info": info, "basePath": "/v2", "paths": {path: operation}, **more}


DOCUMENTED = {
    "a description that shows a call": Documented(
        _openapi("/legs", "get", {**_LEGS, "description": "Try `/legs?start=Aldren&goal=Corvale`"
                 " and `/legs?start=Dunmouth&goal=Corvale`."}),
        "/legs", _silent_legs,
    ),
    "a refusal that shows a call": Documented(_openapi("/legs", "get", _LEGS), "/legs", _legs),
    "plain text": Documented(
        _openapi("/letters", "post", _posts("Counts of letters are returned", "text/plain",
                 {"schema": _TEXT, "example": "Seven herons stand there"})),
        "/letters", _text, "POST",
    ),
    "a form": Documented(
        _openapi("/stairs", "post", _posts("Returns the steps of a stair",
                 "application/x-www-form-urlencoded",
                 {"schema": {"type": "object", "properties": _STAIR, "required": [*_STAIR]}})),
        "/stairs", _form, "POST",
    ),
    "an example of a whole body": Documented(
        _openapi("/paint", "post", _posts("Calculates paint", "application/json",
                 {"schema": {"type": "object"}, "example": _WALLS})),
        "/paint", _body, "POST",
    ),
    "a body behind references": Documented(
        _openapi("/paint", "post",
                 {"summary": "Calculates paint",
                  "requestBody": {"$ref": "#/components/requestBodies/P"}},
                 components={
                     "requestBodies": {"P": {"content": {"application/json": {
                         "schema": {"$ref": "#/components/schemas/P"}}}}},
                     "schemas": {
                         "P": {"allOf": [{"$ref": "#/components/schemas/W"}, {
                             "properties": {"coats": {"type": "integer", "minimum": 1}},
                             "required": ["coats"]}]},
                         "W": {"properties": {"walls": {"type": "array", "items": {
                             "$ref": "#/components/schemas/Wall"}}}, "required": ["walls"]},
                         "Wall": {"type": "object", "properties": {
                             "wide": {"type": "number"}, "high": {"type": "number"}},
                             "required": ["wide", "high"]}},
                 }),
        "/paint", _body, "POST",
    ),
    "arguments given more than once": Documented(
        _openapi("/poly", "get", {"summary": "A polynomial at x", "parameters": [
            _query("c", _NUMBERS), _query("x", {"type": "integer"})]}),
        "/poly", _lists,
    ),
    "lists joined by commas": Documented(
        _openapi("/poly", "get", {"summary": "A polynomial at x", "parameters": [
            _query("c", _NUMBERS, explode=False), _query("x", {"type": "integer"})]}),
        "/poly", _lists,
    ),
    "a pattern in the path": Documented(
        _openapi("/plates/{plate}", "get", {"summary": "Check of a plate", "parameters": [
            {"name": "plate", "in": "path", "required": True,
             "schema": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}}]}),
        "/plates/{plate}", _plate,
    ),
    "a server with a base path": Documented(
        _openapi("/poly", "get", {"summary": "A polynomial at x", "parameters": [
            _query("c", _NUMBERS), _query("x", {"type": "integer"})]},
            servers=[{"url": "https://elsewhere.example/{stage}/math",
                      "variables": {"stage": {"default": "live"}}}]),
        "/live/math/poly", _lists,
    ),
    "Swagger 2.0 with a body": Documented(
        _swagger("/paint", {"post": {
            "summary": "Calculates paint", "consumes": ["application/json"],
            "parameters": [{"in": "body", "name": "job", "required": True,
                            "schema": {"$ref": "#/definitions/Job"}}],
            "responses": {"200": {"schema": {"$ref": "#/definitions/Litres"}}}}},
            definitions={
                "Job": {"type": "object", "required": ["walls", "coats"], "example": _WALLS,
                        "properties": {"walls": {"type": "array"}, "coats": {"type": "integer"}}},
                "Litres": {"type": "object"}}),
        "/v2/paint", _body, "POST", "/swagger/v1/swagger.json",
    ),
    "Swagger 2.0 with a form": Documented(
        _swagger("/stairs", {"post": {
            "summary": "Returns the steps of a stair",
            "consumes": ["application/x-www-form-urlencoded"],
            "parameters": [{"in": "formData", "name": n, "type": "integer", "required": True}
                           for n in _STAIR]}}),
        "/v2/stairs", _form, "POST", "/api/openapi.json",
    ),
    "Swagger 2.0 with a list": Documented(
        _swagger("/poly", {"get": {"summary": "A polynomial at x", "parameters": [
            {"in": "query", "name": "c", "type": "array", "items": {"type": "number"},
             "collectionFormat": "csv", "required": True},
            {"in": "query", "name": "x", "type": "integer", "required": True}]}}),
        "/v2/poly", _lists, "GET", "/api-docs",
    ),
}  # fmt: skip
"""By what each describes."""
