"""A read-only operation, and the request that calls it. Pure.

Sources: OpenAPI 3.1, "Style Values"; OpenAPI 2.0, "Parameter Object"; URL Standard, section 5.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import OutboundRequest
from assay.probing.function.identify import ACCEPTS

FORM: Final = "application/x-www-form-urlencoded"
JOINED: Final[Mapping[str, str]] = {"csv": ",", "ssv": " ", "tsv": "\t", "pipes": "|"}
"""Separators of lists in one query value, by the place of the argument."""

WHOLE: Final = "whole"
TEXT: Final = "text"


@dataclass(frozen=True, slots=True)
class Operation:
    """A documented operation that only reads, according to its document."""

    method: str
    path: str
    schema: JsonObject
    """Its required parameters, by name, as one object."""
    places: JsonObject
    """Where each parameter goes: `path`, `query` or one of `JOINED`, a member of a JSON `body` or
    of a `form`; or the `whole` JSON body, or all of it as `text`."""
    answer: JsonValue
    """Schema of its documented answer."""
    about: str = ""
    """Its description in the document."""
    is_talk: bool = False
    """Whether it takes a message in words, and answers."""
    media: str = ""
    """Media type of a text body."""
    shown: tuple[JsonObject, ...] = ()
    """Arguments of whole calls that its owner shows."""

    def is_shown(self, arguments: JsonObject) -> bool:
        """Return whether its owner shows exactly these: an answer may be prepared for them."""
        if arguments in self.shown:
            return True
        declared = self.schema.get("properties")
        properties: JsonObject = declared if is_object(declared) else {}
        open_to_us = [n for n in arguments if not _is_listed(properties.get(n))]
        return bool(open_to_us) and all(
            arguments[name] in _examples(properties.get(name)) for name in open_to_us
        )


def _is_listed(declared: JsonValue) -> bool:
    return is_object(declared) and bool(declared.keys() & {"enum", "const"})


def _examples(declared: JsonValue) -> list[JsonValue]:
    if not is_object(declared):
        return []
    examples = declared.get("examples")
    return [*(examples if is_array(examples) else ()), declared.get("example")]


def request_for(operation: Operation, base: str, arguments: JsonObject) -> OutboundRequest:
    """Return the request that calls an operation with these arguments."""
    path = operation.path
    query: dict[str, str | list[str]] = {}
    body: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        where = str(operation.places.get(name))
        if where == "path":
            path = path.replace("{" + name + "}", quote(_joined(value, ","), safe=","))
        elif where == "query":
            query[name] = list(map(_plain, value)) if is_array(value) else _plain(value)
        elif where in JOINED:
            query[name] = _joined(value, JOINED[where])
        else:
            body[name] = value
    joined = base + "/" + path.lstrip("/") if path else base
    url = joined + (f"?{urlencode(query, doseq=True)}" if query else "")
    if operation.method != "POST":
        return OutboundRequest(operation.method, url, ACCEPTS)
    media, content = _body(operation, body)
    return OutboundRequest("POST", url, {**ACCEPTS, "content-type": media}, content)


def _body(operation: Operation, given: JsonObject) -> tuple[str, bytes]:
    """Return media type and bytes of a body with these members."""
    places = {str(operation.places.get(name)) for name in given}
    only = next(iter(given.values()), None)
    if "form" in places:
        pairs = {n: list(map(_plain, v)) if is_array(v) else _plain(v) for n, v in given.items()}
        return FORM, urlencode(pairs, doseq=True).encode()
    if TEXT in places:
        return operation.media or "text/plain", _plain(only).encode("utf-8", "replace")
    return "application/json", json.dumps(only if WHOLE in places else given).encode()


def _plain(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _joined(value: JsonValue, mark: str) -> str:
    rows: Sequence[JsonValue] = value if is_array(value) else [value]
    return mark.join(map(_plain, rows))
