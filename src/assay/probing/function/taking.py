"""Reads the arguments of a documented operation, and where each goes. Pure.

Sources: OpenAPI 3.1 (Parameter, Request Body and Media Type Objects); OpenAPI 2.0, "Parameter
Object".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.examples import schema_like, with_examples
from assay.probing.function.request import FORM, TEXT, WHOLE
from assay.probing.function.shown_calls import BODY

REFERENCES_MAX = 6
ALTERNATIVES_MAX = 8
_STYLES: Final = {"spaceDelimited": "ssv", "pipeDelimited": "pipes"}
_FORMATS: Final = {"multi": "query", "ssv": "ssv", "tsv": "tsv", "pipes": "pipes"}
_SCALARS: Final = frozenset({"array", "string", "integer", "number", "boolean"})


@dataclass(frozen=True, slots=True)
class OperationInput:
    """The arguments of an operation."""

    schema: JsonObject
    """Its required parameters, by name, as one object."""
    places: JsonObject
    media: str = ""


@dataclass(frozen=True, slots=True)
class _Body:
    properties: Mapping[str, JsonValue]
    place: str
    media: str = ""


def taken_by(
    method: str, described: JsonObject, item: JsonObject, document: JsonObject
) -> OperationInput | None:
    """Return an operation's arguments; None if it cannot be sent."""
    properties: dict[str, JsonValue] = {}
    places: dict[str, JsonValue] = {}
    optional: list[str] = []
    rows = [resolved(row, document) for row in _parameters(item) + _parameters(described)]
    for row in rows:
        where, key = str(row.get("in")), str(row.get("name"))
        if where in {"header", "cookie"} and row.get("required"):
            return None
        if where in {"path", "query"}:
            properties[key], places[key] = _declared(row), _place(row, where)
            if not row.get("required") and where == "query":
                optional.append(key)
    body = _body(described, rows, document) if method == "post" else _Body({}, "")
    if body is None:
        return None
    for key, schema in body.properties.items():
        properties[key], places[key] = schema, body.place
    required = [key for key in properties if key not in optional] or optional[:1]
    kept = {key: places[key] for key in required}
    return OperationInput({"properties": properties, "required": [*required]}, kept, body.media)


def resolved(row: JsonObject, document: JsonObject) -> JsonObject:
    """Return the object behind a reference into the document."""
    reference = row.get("$ref")
    found: JsonValue = document
    if not isinstance(reference, str):
        return row
    for part in reference.removeprefix("#/").split("/")[:REFERENCES_MAX]:
        found = found.get(part) if is_object(found) else None
    return found if is_object(found) else {}


def _parameters(item: JsonObject) -> list[JsonObject]:
    rows = item.get("parameters")
    return [row for row in rows if is_object(row)] if is_array(rows) else []


def _declared(row: JsonObject) -> JsonObject:
    """Return the schema of a parameter, with its description."""
    schema = row.get("schema")
    extra = {k: row[k] for k in ("example", "description") if k in row}
    examples = _named(row.get("examples"))
    more: JsonObject = {"examples": examples} if examples else {}
    return {**(schema if is_object(schema) else row), **more, **extra}


def _named(examples: JsonValue) -> list[JsonValue]:
    """Return the values of named examples."""
    rows = [r for r in examples.values() if is_object(r)] if is_object(examples) else []
    return [row["value"] for row in rows if "value" in row]


def _place(row: JsonObject, where: str) -> str:
    """Return `query` if each member of a list is an argument, or how they are joined."""
    schema = row.get("schema")
    declared = schema if is_object(schema) else row
    if where == "path" or declared.get("type") != "array":
        return where
    if not is_object(schema):
        return _FORMATS.get(str(row.get("collectionFormat")), "csv")
    style = str(row.get("style") or "form")
    if row.get("explode", style == "form"):
        return "query"
    return _STYLES.get(style, "csv")


def _body(described: JsonObject, rows: list[JsonObject], document: JsonObject) -> _Body | None:
    """Return the body's arguments; None if we cannot send such a body."""
    body = described.get("requestBody")
    if is_object(body):
        return _by_media(resolved(body, document), document)
    fields = {str(row.get("name")): row for row in rows if row.get("in") == "formData"}
    if fields:
        is_sendable = not any(row.get("type") == "file" for row in fields.values())
        required = {name: row for name, row in fields.items() if row.get("required")}
        return _Body(required or dict([*fields.items()][:1]), "form") if is_sendable else None
    row = next((row for row in rows if row.get("in") == "body"), None)
    schema = row.get("schema") if row is not None else None
    if row is None or not is_object(schema):
        return None
    consumes = described.get("consumes") or document.get("consumes")
    media = [str(name) for name in consumes] if is_array(consumes) else []
    if media and not any("json" in name for name in media):
        is_text = media[0].startswith("text/")
        return _Body({BODY: schema}, TEXT, media[0]) if is_text else None
    return _json_body(schema, [], document)


def _by_media(body: JsonObject, document: JsonObject) -> _Body | None:
    content = body.get("content")
    offered = {k: v for k, v in content.items() if is_object(v)} if is_object(content) else {}
    for media, one in sorted(offered.items(), key=lambda entry: "json" not in entry[0]):
        declared = one.get("schema")
        schema: JsonObject = declared if is_object(declared) else {}
        examples = [*([one["example"]] if "example" in one else ()), *_named(one.get("examples"))]
        if "json" in media:
            return _json_body(schema, examples, document)
        if media == FORM:
            members = _members(_whole(schema, document), examples)
            return _Body(members, "form") if members else None
        if media.startswith("text/"):
            description = schema.get("description") or body.get("description")
            text: JsonObject = {"type": "string", **schema, "description": description}
            more: JsonObject = {"examples": examples} if examples else {}
            return _Body({BODY: {**text, **more}}, TEXT, media)
    return None


def _json_body(schema: JsonObject, examples: list[JsonValue], document: JsonObject) -> _Body | None:
    whole = _whole(schema, document)
    members = _members(whole, examples)
    if members:
        return _Body(members, "body")
    if whole.get("type") in _SCALARS:
        return _Body({BODY: {**whole, **({"examples": examples} if examples else {})}}, WHOLE)
    return None


def _whole(schema: JsonObject, document: JsonObject) -> JsonObject:
    """Return the schema behind its reference, with all of its parts merged."""
    found = resolved(schema, document)
    parts = found.get("allOf")
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    rows = [p for p in parts if is_object(p)][:ALTERNATIVES_MAX] if is_array(parts) else []
    for part in (*(resolved(row, document) for row in rows), found):
        own, needed = part.get("properties"), part.get("required")
        properties.update(own if is_object(own) else {})
        required += [*needed] if is_array(needed) else []
    more = {"properties": properties} if properties else {}
    return {**found, **more, **({"required": required} if required else {})}


def _members(schema: JsonObject, examples: list[JsonValue]) -> dict[str, JsonValue]:
    """Return an object's required members; without any, its example's, or the first."""
    given = [e for e in examples if is_object(e)]
    shown = schema_like(given).get("required") if given else None
    learned = with_examples({**schema, **({"examples": given} if given else {})})
    properties, needed = learned.get("properties"), schema.get("required")
    if not is_object(properties) or not properties:
        return {}
    description = next(
        (rows for rows in (needed, shown) if is_array(rows) and rows), [*properties][:1]
    )
    return {str(name): properties.get(str(name)) for name in description}
