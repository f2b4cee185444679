"""Parses the operation that a 402 describes for paying callers. Pure.

Source: x402 version 2, extension `bazaar` (`info.input`, `schema`); x402 version 1,
`outputSchema.input`.
"""

import base64
import binascii
from typing import Final
from urllib.parse import urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse
from assay.probing.function.acts import does_act
from assay.probing.function.examples import schema_like
from assay.probing.function.request import Operation
from assay.probing.probe_client import decode
from assay.probing.x402_reader import HEADER_CHARS_MAX

NAMES_MAX: Final = 16
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_PLACES: Final = (("queryParams", "query"), ("body", "body"), ("bodyFields", "body"))


def documents_of(demand: EgressResponse) -> list[JsonObject]:
    """Return the demand of the header, and that of the body."""
    header = demand.header("payment-required") or ""
    try:
        packed = base64.b64decode(header[:HEADER_CHARS_MAX], validate=True)
    except (binascii.Error, ValueError):
        packed = b""
    return [found for text in (packed, demand.body) if is_object(found := decode(text))]


def demanded_operation(demand: EgressResponse, url: str) -> Operation | None:
    """Return the arguments that a 402 of this address describes.

    None without any, or for an act.
    """
    for document in documents_of(demand):
        about = _about(document)
        for described, schema in _inputs(document):
            method = str(described.get("method") or "GET").upper()
            path = urlsplit(url).path
            is_act = does_act(path, about, says_it_reads=method == "GET")
            taken = _taken(described, schema)
            if taken is not None and method in {"GET", "POST"} and not is_act:
                return Operation(method, path, *taken, None, about)
    return None


def _inputs(document: JsonObject) -> list[tuple[JsonObject, JsonObject]]:
    """Return descriptions of inputs, with the schemas of their members by place."""
    bazaar = _member(_member(document, "extensions"), "bazaar")
    shapes = _member(_member(_member(bazaar, "schema"), "properties"), "input")
    accepts = document.get("accepts")
    first = accepts[0] if is_array(accepts) and accepts else None
    newer = _member(_member(bazaar, "info"), "input"), _member(shapes, "properties")
    older: tuple[JsonObject, JsonObject] = _member(_member(first, "outputSchema"), "input"), {}
    return [one for one in (newer, older) if one[0]]


def _taken(described: JsonObject, schema: JsonObject) -> tuple[JsonObject, JsonObject] | None:
    """Return the schema of its arguments, and where each of them goes."""
    properties: dict[str, JsonValue] = {}
    places: dict[str, JsonValue] = {}
    for place, where in _PLACES:
        shapes = _member(_member(schema, place), "properties")
        for name, shown in list(_member(described, place).items())[:NAMES_MAX]:
            properties[name] = _declared(shown, shapes.get(name))
            places[name] = where
    required: list[JsonValue] = [*properties]
    return ({"properties": properties, "required": required}, places) if properties else None


def _declared(shown: JsonValue, shape: JsonValue) -> JsonObject:
    """Return one argument's schema from a schema, the name of a type, or an example."""
    if is_object(shape) and not is_object(shown):
        return {**shape, "examples": [shown]} if shown is not None else shape
    if is_object(shown) and ("type" in shown or "description" in shown):
        return shown
    if isinstance(shown, str) and shown in _TYPES:
        return {"type": shown}
    return schema_like([shown])


def _about(document: JsonObject) -> str:
    """Return the description of what is sold."""
    accepts = document.get("accepts")
    listed = [row for row in accepts[:1] if is_object(row)] if is_array(accepts) else []
    rows = [_member(document, "resource"), *listed]
    said = [row.get("description") for row in rows]
    return next((text for text in said if isinstance(text, str) and text), "")


def _member(of: JsonValue, name: str) -> JsonObject:
    found = of.get(name) if is_object(of) else None
    return found if is_object(found) else {}
