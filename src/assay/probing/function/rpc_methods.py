"""Reads the methods of a JSON-RPC service from its descriptions or from a text. Pure.

Sources: OpenRPC 1.3; the XML-RPC introspection methods (`system.listMethods`), which JSON-RPC
libraries adopted.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.acts import only_asks, tells_of_act
from assay.probing.function.examples import schema_like

METHODS_MAX = 60
SHOWN_MAX = 10
ABOUT_CHARS = 160
BODY_CHARS_MAX = 1_000
ARGUMENTS_MAX = 8
BY_NAME: Final = "by-name"
BY_POSITION: Final = "by-position"

_SIGNATURE: Final = re.compile(r"(?<![\w.])([A-Za-z][\w.]{2,60})\(([\w\s,:\[\]]{0,120})\)")
_ENDPOINT: Final = re.compile(
    r"(?<![\w.:/<-])/(?:[\w-]{1,40}/){0,3}(?:json-?)?rpc(?![\w-]|[.]\w)", re.IGNORECASE
)
_TYPES: Final = {
    **dict.fromkeys(("int", "i4", "integer", "long"), "integer"),
    **dict.fromkeys(("double", "float", "number", "decimal"), "number"),
    **dict.fromkeys(("str", "string", "text"), "string"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
}


@dataclass(frozen=True, slots=True)
class Method:
    """A read-only method, according to its name and its owner's words."""

    name: str
    about: str
    schema: JsonObject
    """Its parameters in their order, as one object."""
    styles: tuple[str, ...] = (BY_POSITION, BY_NAME)
    """How it may expect its parameters."""


def is_envelope(document: JsonValue) -> bool:
    """Return whether an answer is one of JSON-RPC 2.0."""
    is_answer = is_object(document) and bool(document.keys() & {"result", "error"})
    return is_answer and is_object(document) and document.get("jsonrpc") == "2.0"


def may_call(name: str, about: str) -> bool:
    """Return whether name or description say that a method only informs, and neither an act."""
    last = re.split(r"[./:]", name)[-1]
    return not tells_of_act(about) and only_asks(last, (about,))


def methods_described(document: JsonValue) -> list[Method]:
    """Return the read-only methods of an OpenRPC document that take parameters."""
    rows = document.get("methods") if is_object(document) else None
    found: list[Method] = []
    for row in rows[:METHODS_MAX] if is_array(rows) else ():
        if not is_object(row) or not isinstance(row.get("name"), str):
            continue
        texts = [str(row.get(member) or "").strip() for member in ("summary", "description")]
        about = next((text for text in texts if text), "")
        schema = _parameters(row, document)
        structure = str(row.get("paramStructure"))
        styles = (structure,) if structure in {BY_NAME, BY_POSITION} else (BY_POSITION, BY_NAME)
        if schema is not None and may_call(str(row["name"]), about):
            found.append(Method(str(row["name"]), about, schema, styles))
    return found


def schemas_in(document: JsonValue) -> JsonValue:
    """Return the targets of references in an OpenRPC document."""
    components = document.get("components") if is_object(document) else None
    return components.get("schemas") if is_object(components) else None


def _parameters(row: JsonObject, document: JsonValue) -> JsonObject | None:
    """Return the schema of a method's parameters, as one object; None without parameters."""
    listed = row.get("params")
    rows = [_resolved(p, document) for p in listed if is_object(p)] if is_array(listed) else []
    wanted = [p for p in rows if p.get("required")] or rows[:1]
    shown = _shown_arguments(row)
    properties: dict[str, JsonValue] = {}
    for one in wanted[:ARGUMENTS_MAX]:
        name, declared = str(one.get("name")), one.get("schema")
        schema: JsonObject = declared if is_object(declared) else {}
        examples = [value for given in shown if (value := given.get(name)) is not None]
        more: JsonObject = {"examples": examples} if examples and "enum" not in schema else {}
        texts = schema.get("description") or one.get("description") or one.get("summary")
        properties[name] = {**schema, **more, "description": texts}
    return {"properties": properties, "required": [*properties]} if properties else None


def _shown_arguments(row: JsonObject) -> list[dict[str, JsonValue]]:
    """Return the arguments by name of each example of a method."""
    listed = row.get("examples")
    examples = [e for e in listed[:SHOWN_MAX] if is_object(e)] if is_array(listed) else []
    found: list[dict[str, JsonValue]] = []
    for one in examples:
        params = one.get("params")
        given = [p for p in params if is_object(p)] if is_array(params) else []
        found.append({str(p.get("name")): p.get("value") for p in given})
    return found


def _resolved(row: JsonObject, document: JsonValue) -> JsonObject:
    reference = row.get("$ref")
    components = document.get("components") if is_object(document) else None
    kept = components.get("contentDescriptors") if is_object(components) else None
    if not isinstance(reference, str) or not is_object(kept):
        return row
    found = kept.get(reference.rpartition("/")[2])
    return found if is_object(found) else {}


def method_signed(name: str, signature: JsonValue, about: str) -> Method | None:
    """Return a method from `system.methodSignature`: its result's type, then its arguments'."""
    first = signature[0] if is_array(signature) and signature else signature
    types = first.split(",") if isinstance(first, str) else first
    rows = [str(kind).strip() for kind in types[1 : ARGUMENTS_MAX + 1]] if is_array(types) else []
    if not rows or not may_call(name, about):
        return None
    named = {f"argument {chr(97 + n)}": _typed(kind) for n, kind in enumerate(rows)}
    return Method(name, about, {"properties": named, "required": [*named]}, (BY_POSITION,))


def _typed(kind: str) -> JsonObject:
    found = _TYPES.get(kind.casefold())
    return {} if found is None else {"type": found}


def methods_shown(text: str) -> list[Method]:
    """Return the methods that a text calls, or names with their arguments: `name(a, b)`."""
    found: dict[str, Method] = {}
    for place, call in _calls(text):
        name, params = call.get("method"), call.get("params")
        about = _before(text, place)
        if not isinstance(name, str) or not may_call(name, about) or not params:
            continue
        is_named = is_object(params)
        given = dict(params) if is_object(params) else _by_position(params)
        properties = {str(n): schema_like([value]) for n, value in given.items()}
        schema: JsonObject = {"properties": properties, "required": [*properties]}
        styles = (BY_NAME,) if is_named else (BY_POSITION,)
        found.setdefault(name, Method(name, about, schema, styles))
    for match in list(_SIGNATURE.finditer(text))[:METHODS_MAX]:
        names = [part.strip().partition(":") for part in match[2].split(",")]
        arguments = {n.strip(): _typed(kind.strip()) for n, _, kind in names if n.strip()}
        about = (
            text[match.end() : match.end() + ABOUT_CHARS].split("\n", maxsplit=1)[0].strip(" -:,;)")
        )
        is_known = match[1] in found or not arguments or len(arguments) > ARGUMENTS_MAX
        if not is_known and may_call(match[1], about):
            schema = {"properties": arguments, "required": [*arguments]}
            found[match[1]] = Method(match[1], about, schema)
    return list(found.values())[:SHOWN_MAX]


def _by_position(params: JsonValue) -> dict[str, JsonValue]:
    rows: Sequence[JsonValue] = params if is_array(params) else ()
    return {f"argument {chr(97 + n)}": value for n, value in enumerate(rows[:ARGUMENTS_MAX])}


def _before(text: str, place: int) -> str:
    """Return the description in the line before a call, unless that is another call."""
    lines = text[max(0, place - ABOUT_CHARS) : place].split("\n")
    said = [line.strip(" $:") for line in lines[-2:] if line.strip()]
    plain = [line for line in said if not re.search(r"[/{}\"]", line)]
    return plain[-1] if plain else ""


def _calls(text: str) -> list[tuple[int, JsonObject]]:
    """Return the JSON-RPC requests in a text, and where each begins."""
    found: list[tuple[int, JsonObject]] = []
    place = text.find('"jsonrpc"')
    for _ in range(SHOWN_MAX):
        if place < 0:
            break
        start = text.rfind("{", max(0, place - BODY_CHARS_MAX), place)
        try:
            value, _ = json.JSONDecoder().raw_decode(text[start : start + 2 * BODY_CHARS_MAX])
        except (ValueError, RecursionError):
            value = None
        if start >= 0 and is_object(value):
            found.append((start, value))
        place = text.find('"jsonrpc"', place + 1)
    return found


def endpoint_in(text: str) -> str:
    """Return the path that a text names for JSON-RPC; empty if it names none."""
    found = _ENDPOINT.search(text)
    return "" if found is None else found[0]
