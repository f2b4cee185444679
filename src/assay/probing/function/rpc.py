"""Proof that a JSON-RPC service works: read-only methods, for different parameters.

Source: the JSON-RPC 2.0 specification.
"""

import json
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.function.calling import AskableService, Calls, get, varies
from assay.probing.function.choosing import Takes
from assay.probing.function.identify import ACCEPTS, Address
from assay.probing.function.markup import visible_text
from assay.probing.function.request import Operation
from assay.probing.function.rpc_methods import (
    BY_NAME,
    Method,
    endpoint_in,
    is_envelope,
    may_call,
    method_signed,
    methods_described,
    methods_shown,
    schemas_in,
)
from assay.probing.function.shown_calls import calls_shown
from assay.probing.function.words import leaves
from assay.probing.probe_client import ask, decode, text_of

TEXT_CHARS_MAX = 32 * 1024
LISTED_MAX = 60
HELPED_MAX = 3
"""Listed methods whose parameters are requested from the service."""

_NO_GET: Final = frozenset({400, 404, 405, 406, 415, 422, 501})
"""Statuses of a `GET` where only `POST` is supported."""


async def prove_rpc(calls: Calls, address: Address) -> bool:
    """Call the methods of a JSON-RPC service; return whether there is one."""
    said = "" if address.reply is None else text_of(address.reply)[:TEXT_CHARS_MAX]
    url = _endpoint(address, said)
    if not url:
        return False
    found = await _methods(calls, url, said)
    if found is None:
        return False
    calls.notes.know([[method.name, method.about] for method in found])
    for method in found:
        caller = _Caller(calls, url, method, list(method.styles))
        schema: JsonObject = {**method.schema, "$defs": calls.root}
        if await varies(
            calls, AskableService(Takes(method.name, schema, method.about), caller.send)
        ):
            break
    return True


def _endpoint(address: Address, said: str) -> str:
    """Return the possible JSON-RPC endpoint; empty if nothing suggests one."""
    for one in calls_shown(said.encode(), address.url):
        if one.method == "POST" and "jsonrpc" in one.given:
            return urljoin(address.url, one.raw)
    path = endpoint_in(_plain(said))
    words = f"{address.service.name} {urlsplit(address.url).path} {said}".casefold()
    is_named = "rpc" in words
    if path and is_named:
        return urljoin(address.url, path)
    has_refused = address.reply is not None and address.reply.status in _NO_GET
    return address.url if is_named or has_refused else ""


def _plain(said: str) -> str:
    document = decode(said.encode())
    return visible_text(said) if document is None else "\n".join([said, *leaves(document)])


async def _methods(calls: Calls, url: str, said: str) -> list[Method] | None:
    """Return the methods that can be called; None if JSON-RPC is not spoken."""
    discovered = await _ask(calls, url, "rpc.discover", [])
    if discovered is None:
        return None
    document = discovered.get("result")
    calls.root = schemas_in(document)
    found = methods_described(document)
    if not found:
        listed = await _ask(calls, url, "system.listMethods", [])
        names = listed.get("result") if listed is not None else None
        found = await _signed(calls, url, names)
    text = "\n".join([_plain(said), *leaves(discovered.get("error"))])
    known = {method.name for method in found}
    return [*found, *(method for method in methods_shown(text) if method.name not in known)]


async def _signed(calls: Calls, url: str, names: JsonValue) -> list[Method]:
    """Return the first listed methods that may be called, with the service's descriptions."""
    listed = [str(name) for name in names[:LISTED_MAX]] if is_array(names) else []
    own = [name for name in listed if not name.startswith(("system.", "rpc."))]
    found: list[Method] = []
    for name in sorted(own, key=lambda n: not may_call(n, ""))[:HELPED_MAX]:
        helped = await _ask(calls, url, "system.methodHelp", [name])
        text = helped.get("result") if helped is not None else None
        about = text if isinstance(text, str) else ""
        if may_call(name, about):
            signed = await _ask(calls, url, "system.methodSignature", [name])
            signature = signed.get("result") if signed is not None else None
            method = method_signed(name, signature, about)
            shown = [one for one in methods_shown(about) if one.name == name]
            found += [method] if method is not None else shown
    return found


async def _ask(calls: Calls, url: str, method: str, params: JsonValue) -> JsonObject | None:
    """Return the answer to a method that lists what exists; None if it is not JSON-RPC."""
    response = await ask(calls.visit, _request(url, method, params))
    document = decode(response.body) if isinstance(response, EgressResponse) else None
    return document if is_object(document) and is_envelope(document) else None


def _request(url: str, method: str, params: JsonValue) -> OutboundRequest:
    said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {**ACCEPTS, "content-type": "application/json"}
    return OutboundRequest("POST", url, headers, json.dumps(said).encode())


@dataclass(slots=True)
class _Caller:
    """Calls one method, by name or by position: the other way after each refusal."""

    calls: Calls
    url: str
    method: Method
    styles: list[str] = field(default_factory=list[str])

    async def send(self, arguments: JsonObject) -> None:
        """Call with these arguments, and record the answer."""
        order = self.method.schema["properties"]
        names = list(order) if is_object(order) else []
        values = [arguments[name] for name in names if name in arguments]
        params = arguments if self.styles[0] == BY_NAME else values
        request = _request(self.url, self.method.name, params)
        operation = Operation("POST", "", self.method.schema, {}, None)
        role = "shown" if operation.is_shown(arguments) else "call"
        await get(self.calls, role, self.method.name, request, arguments)
        if self.calls.notes.rows[-1]["class"] == "not_found":
            self.styles.append(self.styles.pop(0))
