"""Proof that an HTTP service works, with REST, JSON-RPC or GraphQL, for different inputs.

Proof that a JSON-RPC service works: read-only methods, for different parameters.

Source: the JSON-RPC 2.0 specification.

Proof that a GraphQL service works: fields of its query type, for different arguments.

Source: GraphQL specification of October 2021, section 4 (introspection); "GraphQL over HTTP" for
the request. Only fields of the query type are queried: they must not change anything (section
6.3.1).

Without documentation the declared address itself is called, with its own parameters varied.
Source: evidence.md#operations.
"""

import json
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse, Failure, OutboundRequest
from assay.probing.function.acts import does_act
from assay.probing.function.calling import (
    BY_NAME,
    NOT_FOUND,
    AskableService,
    Calls,
    Method,
    endpoint_in,
    get,
    is_envelope,
    may_call,
    method_signed,
    methods_described,
    methods_shown,
    schemas_in,
    varies,
)
from assay.probing.function.chat import Chat, bare_chat, documented_chat
from assay.probing.function.choosing import Takes
from assay.probing.function.conversation import Transcript, random_for
from assay.probing.function.described_operations import (
    base_of,
    declared_operation,
    demanding,
    operations_of,
    operations_shown,
    paths_of,
)
from assay.probing.function.examples import fixed_part, published_inputs
from assay.probing.function.identify import (
    ACCEPTS,
    Address,
    Operation,
    find_openapi,
    is_page,
    request_for,
)
from assay.probing.function.shown_calls import calls_shown
from assay.probing.function.verdicts import judge
from assay.probing.function.words import leaves, visible_text
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import ask, decode, text_of, unknown_url

TEXT_CHARS_MAX = 32 * 1024
LISTED_MAX = 60
HELPED_MAX = 3
"""Listed methods whose parameters are requested from the service."""

_NO_GET: Final = frozenset({400, 404, 405, 406, 415, 422, 501})
"""Statuses of a `GET` where only `POST` is supported."""


async def _prove_rpc(calls: Calls, address: Address) -> bool:
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


_TYPE: Final = "kind name ofType{kind name ofType{kind name ofType{kind name}}}"
INTROSPECTION: Final = (
    "{__schema{queryType{name}types{kind name enumValues{name}fields{name description"
    f" args{{name description defaultValue type{{{_TYPE}}}}}type{{{_TYPE}}}}}}}}}}}"
)
FIELDS_MAX = 60
SELECTED_MAX = 8
DEPTH_MAX = 2
TYPES_MAX = 400

_SCALARS: Final = {
    "String": "string",
    "ID": "string",
    "Int": "integer",
    "Float": "number",
    "Boolean": "boolean",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the query type that can be queried."""

    name: str
    about: str
    schema: JsonObject
    """Its arguments as JSON Schema; of several optional ones, only the first."""
    selection: str
    """The selected part of its result; empty for a scalar."""
    enums: frozenset[str]
    """Arguments whose values are names, not strings."""

    def query(self, arguments: JsonObject) -> str:
        """Return the query with these arguments."""
        given = ", ".join(
            f"{name}: {value if name in self.enums else json.dumps(value, ensure_ascii=False)}"
            for name, value in arguments.items()
        )
        return f"{{{self.name}{f'({given})' if given else ''}{self.selection}}}"


async def _prove_graphql(calls: Calls, address: Address) -> bool:
    """Query the fields of a GraphQL schema; return whether there is a schema."""
    response = await ask(calls.visit, _query(address, INTROSPECTION))
    fields = None if isinstance(response, Failure) else fields_of(decode(response.body))
    if fields is None:
        return False
    calls.notes.members["documented"] = True
    calls.notes.know([[one.name, one.about, one.schema] for one in fields])
    plain = [one for one in fields if not one.schema["properties"]]
    for one in plain[:2]:
        await _ask_field(calls, address, one, {})
    for one in fields[len(plain) :]:
        send = partial(_ask_field, calls, address, one)
        if await varies(calls, AskableService(Takes(one.name, one.schema, one.about), send)):
            break
    return True


def _query(address: Address, query: str) -> OutboundRequest:
    headers = {**ACCEPTS, "content-type": "application/json"}
    return OutboundRequest("POST", address.url, headers, json.dumps({"query": query}).encode())


async def _ask_field(calls: Calls, address: Address, field: Field, arguments: JsonObject) -> None:
    request = _query(address, field.query(arguments))
    await get(calls, "call", field.name, request, arguments)


def fields_of(answer: JsonValue) -> list[Field] | None:
    """Return the fields that can be queried, those without arguments first.

    None without a schema.
    """
    data = answer.get("data") if is_object(answer) else None
    schema = data.get("__schema") if is_object(data) else None
    listed = schema.get("types") if is_object(schema) else None
    if not is_object(schema) or not is_array(listed):
        return None
    types = {str(t.get("name")): t for t in listed[:TYPES_MAX] if is_object(t)}
    query = schema.get("queryType")
    root = types.get(str(query.get("name"))) if is_object(query) else None
    rows = _rows(root, "fields") if root is not None else []
    found = [field for row in rows[:FIELDS_MAX] if (field := _field(row, types)) is not None]
    return sorted(found, key=lambda field: bool(field.schema["properties"]))


def _field(row: JsonObject, types: dict[str, JsonObject]) -> Field | None:
    name, about = str(row.get("name")), str(row.get("description") or "")
    if does_act(name, about, says_it_reads=True):
        return None
    properties: dict[str, JsonValue] = {}
    required: list[str] = []
    enums: set[str] = set()
    for argument in _rows(row, "args"):
        kind, base = _base(argument.get("type"))
        key = str(argument.get("name"))
        schema = _argument(base, types)
        if schema is None:
            if kind == "NON_NULL":
                return None
            continue
        properties[key] = {**schema, "description": argument.get("description")}
        if "enum" in schema:
            enums.add(key)
        if kind == "NON_NULL" and argument.get("defaultValue") is None:
            required.append(key)
    asked = required or list(properties)[:1]
    selection = _selection(_base(row.get("type"))[1], types, 0)
    if selection is None:
        return None
    kept: JsonObject = {key: properties[key] for key in asked}
    return Field(name, about, {"properties": kept, "required": asked}, selection, frozenset(enums))


def _argument(base: str, types: dict[str, JsonObject]) -> JsonObject | None:
    """Return the JSON Schema of a scalar or enumeration; None for anything else."""
    if base in _SCALARS:
        return {"type": _SCALARS[base]}
    declared = types.get(base)
    if declared is None or declared.get("kind") != "ENUM":
        return None
    return {"type": "string", "enum": [row.get("name") for row in _rows(declared, "enumValues")]}


def _selection(base: str, types: dict[str, JsonObject], depth: int) -> str | None:
    """Return the scalars of a type and its members; None if there are none."""
    declared = types.get(base)
    if base in _SCALARS or declared is None or declared.get("kind") in {"SCALAR", "ENUM"}:
        return ""
    if depth > DEPTH_MAX:
        return None
    chosen: list[str] = []
    for row in _rows(declared, "fields"):
        if any(_base(a.get("type"))[0] == "NON_NULL" for a in _rows(row, "args")):
            continue
        inner = _selection(_base(row.get("type"))[1], types, depth + 1)
        if inner is not None and len(chosen) < SELECTED_MAX:
            chosen.append(f"{row.get('name')}{inner}")
    return "{" + " ".join(chosen) + "}" if chosen else None


def _base(declared: JsonValue) -> tuple[str, str]:
    """Return a type's outermost kind, and the name inside its lists and non-null marks."""
    outer = str(declared.get("kind")) if is_object(declared) else ""
    inner = declared
    while is_object(inner) and is_object(inner.get("ofType")):
        inner = inner.get("ofType")
    return outer, str(inner.get("name")) if is_object(inner) else ""


def _rows(value: JsonObject, member: str) -> list[JsonObject]:
    listed = value.get(member)
    return [row for row in listed[:FIELDS_MAX] if is_object(row)] if is_array(listed) else []


PLAIN_MAX = 4
"""Operations without arguments that are called; two of them must be open."""


async def prove_operations(visit: ProbeSession, address: Address, notes: Transcript) -> Chat | None:
    """Ask until function is proven or the visit's time or requests end.

    Return the conversation, if that is all that is left to ask.
    """
    try:
        documented = await find_openapi(visit, address)
        notes.members["documented"] = documented
        if documented:
            await prove_documented(visit, address, notes)
        else:
            await _prove_bare(visit, address, notes)
        if judge(notes.as_json()).state != "functional":
            return (
                documented_chat(visit, address) if documented else await bare_chat(visit, address)
            )
    except BudgetExhausted:
        notes.members["cut"] = True
    return None


async def prove_documented(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Do the same for the operations of the address's document. Raises `BudgetExhausted`."""
    notes.members["documented"] = True
    calls = Calls(visit, notes, random_for(visit, address.service.endpoint))
    document = address.document or {}
    notes.know([document.get("info"), list(paths_of(document))])
    components = document.get("components")
    calls.root = components.get("schemas") if is_object(components) else document.get("definitions")
    notes.members["security"] = bool(document.get("security"))
    calls.published = await published_inputs(visit, address.url)
    base = base_of(document, address)
    operations = operations_of(document, calls.published)
    for operation in [o for o in operations if not o.places][:PLAIN_MAX]:
        await _call(calls, base, operation, {})
        if len(notes.rows) - calls.closed() >= 2:  # noqa: PLR2004 - to be compared
            break
    if visit.announced:
        await _ask_unknown(calls, address.service.endpoint)
    for operation in [o for o in operations if o.places and not o.is_talk]:
        schema: JsonObject = {**operation.schema, "$defs": calls.root}
        send = partial(_call, calls, base, operation)
        if await varies(
            calls, AskableService(Takes(operation.path, schema, operation.about), send)
        ):
            return


async def _ask_unknown(calls: Calls, base: str) -> None:
    """Call an impossible address: an operation with the same answer proves nothing."""
    url = unknown_url(calls.visit, base)
    await get(calls, "unknown_path", "unknown", OutboundRequest("GET", url, ACCEPTS), {})


async def _prove_bare(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Prove an undocumented address: as declared, varied, then as its site shows."""
    calls = Calls(visit, notes, random_for(visit, address.service.endpoint))
    if _may_be_graphql(address) and await _prove_graphql(calls, address):
        return
    if not await _prove_rpc(calls, address):
        await _prove_plain(calls, address)
    if is_page(address) and judge(notes.as_json()).state != "functional":
        notes.members["end"] = "page"


async def _prove_plain(calls: Calls, address: Address) -> None:
    """Call an address as it is declared, with other values, and as its site shows."""
    declared = None if is_page(address) else declared_operation(address.url)
    base = urljoin(address.url, "/").rstrip("/")
    if declared is not None:
        await _call(calls, base, *declared)
    elif not is_page(address):
        await get(calls, "call", "declared", OutboundRequest("GET", address.url, ACCEPTS), {})
    if calls.visit.announced:
        await _ask_unknown(calls, address.url)
    calls.refuses_pages = True
    operation = declared[0] if declared else demanding(address.url, _demanded(address.reply))
    if operation is not None and not is_page(address):
        await _vary(calls, base, operation)
    if judge(calls.notes.as_json()).why != "results_vary":
        await _prove_shown(calls, address)


async def _vary(calls: Calls, base: str, operation: Operation) -> bool:
    send = partial(_call, calls, base, operation)
    return await varies(
        calls, AskableService(Takes(operation.path, operation.schema, operation.about), send)
    )


async def _prove_shown(calls: Calls, address: Address) -> None:
    """Make the calls shown at the declared address or, about it, at its site's home page.

    A page for people does not count as an answer.
    """
    path = urlsplit(address.url).path.rstrip("/")
    start = fixed_part(address.url)
    shown = [] if address.reply is None else operations_shown(address.reply.body, address.url)
    if not shown and path:
        home = await ask(calls.visit, OutboundRequest("GET", urljoin(address.url, "/"), ACCEPTS))
        body = home.body if isinstance(home, EgressResponse) else b""
        shown = [
            o for o in operations_shown(body, urljoin(address.url, "/"))
            if f"{o.path}/".startswith(f"{start}/")
        ]  # fmt: skip
    calls.refuses_pages = True
    base = urljoin(address.url, "/").rstrip("/")
    for operation in shown:
        if await _vary(calls, base, operation):
            return


def _may_be_graphql(address: Address) -> bool:
    """Return whether its name, its path or its answer to a plain request suggests queries."""
    said = address.reply.body[:4000].decode("utf-8", "replace") if address.reply else ""
    places = (address.service.name, urlsplit(address.url).path, said)
    words = ("graphql", "graphiql") if is_page(address) else ("graph", "query", "gql")
    return any(word in place.casefold() for place in places for word in words)


def _demanded(reply: EgressResponse | None) -> list[str]:
    """Return query parameters that a refusal names as missing, in FastAPI's words."""
    document = decode(reply.body) if reply is not None and reply.status in NOT_FOUND else None
    rows = document.get("detail") if is_object(document) else None
    places = [row.get("loc") for row in rows if is_object(row)] if is_array(rows) else []
    return [
        str(place[1])
        for place in places
        if is_array(place) and len(place) == 2 and place[0] == "query"  # noqa: PLR2004 - a pair
    ]


async def _call(calls: Calls, base: str, operation: Operation, arguments: JsonObject) -> None:
    request = request_for(operation, base, arguments)
    role = "shown" if operation.is_shown(arguments) else "call"
    await get(calls, role, operation.path, request, arguments, operation.answer)
