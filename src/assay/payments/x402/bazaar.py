"""Describes a sold call for catalogues: the extension `bazaar` of x402 version 2. Pure.

A client repeats it in its payment, and a facilitator that keeps a catalogue lists the call. No part
of it is signed, and nothing that a client repeats is read here. Source: x402.md#extension-bazaar.
"""

import json
from typing import Final
from urllib.parse import quote as percent_encoded
from urllib.parse import urlsplit

from assay.common.json import JsonObject, JsonValue
from assay.payments.model import Quote

BYTES_MAX: Final = 2048
"""Largest description: it is in a header of the 402, and in one of the payment."""

_QUERY_METHODS: Final = ("GET", "HEAD", "DELETE")
_BODY_METHODS: Final = ("POST", "PUT", "PATCH")
_TEXT: Final[JsonObject] = {"type": "string"}
_TEXTS: Final[JsonObject] = {"type": "object", "additionalProperties": _TEXT}
_REST: Final = "rest"
"""Name of the parameter for what follows a prefix: `/files/*` is listed as `/files/:rest`."""


def described(quote: Quote) -> JsonObject:
    """Return `extensions` of a 402: `{"bazaar": ...}`, or `{}` for a call that is not listed.

    A call is not listed if its quote has no route, or if the extension has no form for its method
    or its path.
    """
    if not quote.route or quote.method not in {*_QUERY_METHODS, *_BODY_METHODS}:
        return {}
    has_body = quote.method in _BODY_METHODS
    found: dict[str, JsonValue] = {"type": "http", "method": quote.method}
    shapes: dict[str, JsonValue] = {
        "type": {**_TEXT, "const": "http"},
        "method": {**_TEXT, "enum": list(_BODY_METHODS if has_body else _QUERY_METHODS)},
        "queryParams": _TEXTS,
    }
    if has_body:  # required by the extension; what a wrapper's upstream takes is not known here
        found |= {"bodyType": "json", "body": {}}
        shapes |= {"bodyType": {**_TEXT, "const": "json"}, "body": {"type": "object"}}
    required: list[JsonValue] = list(found)
    template = _template(quote)
    if template:
        found["pathParams"] = _parameters(quote)
        shapes["pathParams"] = _TEXTS
    bazaar: dict[str, JsonValue] = {
        "info": {"input": found},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "input": {
                    "type": "object",
                    "properties": shapes,
                    "required": required,
                    "additionalProperties": False,
                }
            },
            "required": ["input"],
        },
        **({"routeTemplate": template} if template else {}),
    }
    is_listed = ".." not in template and len(json.dumps(bazaar)) <= BYTES_MAX
    return {"bazaar": bazaar} if is_listed else {}


def resource_of(quote: Quote) -> JsonObject:
    """Return what a 402 of version 2 says about the sold resource."""
    return {
        "url": quote.url,
        "description": quote.description,
        "mimeType": "application/json",
    }


def _template(quote: Quote) -> str:
    """Return the route below the host with `:name` for each parameter; empty if it has none."""
    segments = quote.route.split("/")
    names = [_name(segment) for segment in segments]
    if not any(names):
        return ""
    shown = [
        f":{name}" if name else percent_encoded(segment, safe="")
        for name, segment in zip(names, segments, strict=True)
    ]
    return urlsplit(quote.url.removesuffix(quote.path)).path + _below(quote) + "/".join(shown)


def _parameters(quote: Quote) -> JsonObject:
    """Return the parameters of this call by name, as they are in its path."""
    given = quote.path.removeprefix(_below(quote)).split("/")
    found: dict[str, JsonValue] = {}
    for place, segment in enumerate(quote.route.split("/")[: len(given)]):
        name = _name(segment)
        if name:
            found[name] = "/".join(given[place:]) if segment == "*" else given[place]
    return found


def _below(quote: Quote) -> str:
    return f"/wrap/{quote.operator_id}"


def _name(segment: str) -> str:
    if segment == "*":
        return _REST
    return segment[1:-1] if segment.startswith("{") else ""
