"""Proof that a GraphQL service works: fields of its query type, for different arguments.

Source: GraphQL specification of October 2021, section 4 (introspection); "GraphQL over HTTP" for
the request. Only fields of the query type are queried: they must not change anything (section
6.3.1).
"""

import json
from dataclasses import dataclass
from functools import partial
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import Failure, OutboundRequest
from assay.probing.function.acts import does_act
from assay.probing.function.calling import AskableService, Calls, get, varies
from assay.probing.function.choosing import Takes
from assay.probing.function.identify import ACCEPTS, Address
from assay.probing.probe_client import ask, decode

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


async def prove_graphql(calls: Calls, address: Address) -> bool:
    """Query the fields of a GraphQL schema; return whether there is a schema."""
    response = await ask(calls.visit, _query(address, INTROSPECTION))
    fields = None if isinstance(response, Failure) else fields_of(decode(response.body))
    if fields is None:
        return False
    calls.notes.members["documented"] = True
    calls.notes.know([[field.name, field.about, field.schema] for field in fields])
    plain = [field for field in fields if not field.schema["properties"]]
    for field in plain[:2]:
        await _ask_field(calls, address, field, {})
    for field in fields[len(plain) :]:
        send = partial(_ask_field, calls, address, field)
        if await varies(calls, AskableService(Takes(field.name, field.schema, field.about), send)):
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
