"""JSON-RPC 2.0 services that are no A2A agents, and what only speaks the envelope.

Sources: the JSON-RPC 2.0 specification; OpenRPC 1.3 (`rpc.discover`).
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb
from typing import cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from assay.common.json import JsonObject, JsonValue, is_array, is_object

Result = Callable[[JsonValue], JsonValue]
_random = random.Random(3)


class Refused(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def ways(params: JsonValue) -> JsonValue:
    """In how many ways some can be chosen of many; by name or by position."""
    given: JsonValue = params
    if is_object(params):
        given = [params.get("many"), params.get("some")]
    if not is_array(given) or len(given) != 2 or not all(isinstance(v, int) for v in given):
        raise Refused(-32602, "Invalid params: many and some are integers")
    many, some = cast("tuple[int, int]", tuple(given))
    return {"ways": comb(max(many, some), min(many, some))}


HOLLOW: dict[str, Result] = {
    "echo": lambda params: {"you": params},
    "template": lambda params: f"Handled {json.dumps(params)} without any trouble",
    "measures": lambda params: len(json.dumps(params)),
    "makes up": lambda _: {"ways": _random.randint(1, 10**9)},
    "always": lambda _: {"ways": 42},
}


@dataclass
class RpcService:
    """A service: where it is declared, and how it says what can be called."""

    declared: str = "/"
    path: str = "/"
    method: str = "find_ways"
    discovery: JsonObject = field(default_factory=dict[str, JsonValue])
    """Results of methods that say what there is."""
    page: str = ""
    refusal: str = "Method not found"
    called: list[str] = field(default_factory=list[str])

    def app(self, result: Result = ways) -> Starlette:
        """The service, with a result of its own or of a twin."""

        async def index(_request: Request) -> Response:
            return HTMLResponse(self.page)

        async def call(request: Request) -> Response:
            try:
                asked = json.loads(await request.body())
            except ValueError:
                return JSONResponse(_error(None, Refused(-32700, "Parse error")))
            if not is_object(asked) or asked.get("jsonrpc") != "2.0":
                return JSONResponse(_error(None, Refused(-32600, "Invalid Request")))
            try:
                said = self._result(str(asked.get("method")), asked.get("params"), result)
            except Refused as error:
                return JSONResponse(_error(asked.get("id"), error))
            return JSONResponse({"jsonrpc": "2.0", "id": asked.get("id"), "result": said})

        routes = [Route(self.path, call, methods=["POST"])]
        return Starlette(routes=routes + ([Route("/", index)] if self.page else []))

    def _result(self, method: str, params: JsonValue, result: Result) -> JsonValue:
        self.called.append(method)
        if method in self.discovery:
            found = self.discovery[method]
            named = params[0] if is_array(params) and params else ""
            return found.get(str(named)) if is_object(found) and method != "rpc.discover" else found
        if method != self.method:
            raise Refused(-32601, self.refusal)
        return result(params)


def _error(number: JsonValue, error: Refused) -> JsonObject:
    said = {"code": error.code, "message": error.message}
    return {"jsonrpc": "2.0", "id": number, "error": said}


def _described(name: str, summary: str, *params: str, structure: str = "either") -> JsonObject:
    rows = [
        {"name": p, "required": True, "schema": {"$ref": "#/components/schemas/n"}} for p in params
    ]
    return {"name": name, "summary": summary, "paramStructure": structure, "params": rows}


def services() -> dict[str, RpcService]:
    """By how each says what can be called."""
    document: JsonObject = {
        "openrpc": "1.3.2",
        "info": {"title": "Choices", "version": "1"},
        "methods": [
            _described("place_order", "Orders so many", "many", "some"),
            _described("find_ways", "Finds ways to choose", "many", "some", structure="by-name"),
        ],
        "components": {"schemas": {"n": {"type": "integer", "minimum": 2, "maximum": 30}}},
    }
    body = '{"jsonrpc": "2.0", "id": 1, "method": "find_ways", "params": %s}'
    return {
        "OpenRPC": RpcService(discovery={"rpc.discover": document}),
        "a list with signatures": RpcService(
            discovery={
                "system.listMethods": ["system.listMethods", "place_order", "find_ways"],
                "system.methodSignature": {"find_ways": [["object", "int", "int"]]},
                "system.methodHelp": {"find_ways": "Finds ways to choose some of many"},
            }
        ),
        "a page with a call by position": RpcService(
            path="/rpc", page=f"<pre>curl $URL/rpc -d '{body % '[14, 6]'}'</pre>"
        ),
        "a page with a call by name": RpcService(
            path="/rpc",
            page=f"<p>JSON-RPC at /rpc:</p><pre>{body % json.dumps({'many': 14, 'some': 6})}</pre>",
        ),
        "a page with a signature": RpcService(
            path="/api/rpc",
            page="<p>JSON-RPC 2.0 at <b>/api/rpc</b>: <code>find_ways(many, some)</code> finds"
            " the ways to choose.</p>",
        ),
        "a refusal that names methods": RpcService(
            declared="/rpc",
            path="/rpc",
            refusal="Method not found; methods: find_ways(many, some)",
        ),
    }
