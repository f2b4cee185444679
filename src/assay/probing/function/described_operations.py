"""Finds the read-only operations that an OpenAPI document, a page or a 402 describes. Pure.

Reads the arguments of a documented operation, and where each goes.

Sources: OpenAPI 3.1 (Parameter, Request Body and Media Type Objects); OpenAPI 2.0, "Parameter
Object".

Turns calls that a page or an index shows into operations.

Services without a document still show how to call them: by links, by `GET /rate?from=EUR`, by a
`curl` line.

Parses the operation that a 402 describes for paying callers.

Source: x402 version 2, extension `bazaar` (`info.input`, `schema`); x402 version 1,
`outputSchema.input`.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse
from assay.probing.function.acts import does_act, is_for_talk, message_in, only_asks, tells_of_act
from assay.probing.function.examples import (
    AddressTemplate,
    absolute,
    called,
    is_offered,
    schema_like,
    values_at,
    with_examples,
)
from assay.probing.function.identify import FORM, TEXT, WHOLE, Address, Operation
from assay.probing.function.shown_calls import BODY, ShownCall, calls_shown
from assay.probing.function.words import words_of
from assay.probing.probe_client import HEADER_CHARS_MAX, decode, same_site

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


def _taken_by(
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
            properties[key], places[key] = _declared_parameter(row), _place(row, where)
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


def _declared_parameter(row: JsonObject) -> JsonObject:
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


OPERATIONS_MAX = 200
SERVERS_MAX = 4
_METHOD_SUFFIX = re.compile(r"(?:_|(?<=[a-z]))(?:get|post|Get|Post)$")
"""FastAPI and others end an operation's name with its method."""


def operations_of(document: JsonObject, published: JsonValue = None) -> list[Operation]:
    """Return the documented operations without an act, those without arguments first.

    `published`: the owner's `testInputs`, for operations that do not describe themselves.
    """
    found: list[Operation] = []
    for path, item in list(paths_of(document).items())[:OPERATIONS_MAX]:
        for method in ("get", "post"):
            described = item.get(method) if is_object(item) else None
            if is_object(described) and is_object(item):
                operation = _documented(method, path, described, item, document, published)
                if operation is not None:
                    found.append(operation)
    found = _with_shared_examples(found)
    return sorted(found, key=lambda o: (len(o.places), o.method, o.path))


def _with_shared_examples(operations: list[Operation]) -> list[Operation]:
    """Give an argument without an example those of equally named arguments elsewhere."""
    shown: dict[str, list[JsonValue]] = {}
    for operation in operations:
        for name, declared in _properties(operation).items():
            if is_object(declared):
                examples = declared.get("examples")
                shown.setdefault(name, []).extend(examples if is_array(examples) else [])
                shown[name] += [declared["example"]] if "example" in declared else []
    return [
        replace(operation, schema={**operation.schema, "properties": {
            name: {**declared, "examples": shown[name][:EXAMPLES_MAX]}
            if is_object(declared) and shown.get(name) and not _DOCUMENTED & set(declared)
            else declared
            for name, declared in _properties(operation).items()
        }})
        for operation in operations
    ]  # fmt: skip


EXAMPLES_MAX = 8
_DOCUMENTED = frozenset({"example", "examples", "enum", "const"})


def _properties(operation: Operation) -> JsonObject:
    found = operation.schema.get("properties")
    return found if is_object(found) else {}


def paths_of(document: JsonObject) -> JsonObject:
    """Return the documented paths, as they are written."""
    paths = document.get("paths")
    return paths if is_object(paths) else {}


def _documented(
    method: str,
    path: str,
    described: JsonObject,
    item: JsonObject,
    document: JsonObject,
    published: JsonValue,
) -> Operation | None:
    texts = [str(described.get(member) or "").strip() for member in ("summary", "description")]
    name = _METHOD_SUFFIX.sub("", str(described.get("operationId") or path))
    said = _own_words(texts, name, document)
    is_act = does_act(name, said, says_it_reads=method == "get")
    may_talk = is_for_talk(path, said)
    is_unread = is_act and not may_talk and published is None
    taken = None if is_unread else _taken_by(method, described, item, document)
    if taken is None:
        return None
    is_act = is_act and not is_offered(taken.schema, published, name, f"{path} {' '.join(texts)}")
    is_json = set(taken.places.values()) <= {"body", "query", "path"}
    is_talk = may_talk and is_json and bool(message_in(taken.schema))
    if is_act and not is_talk:
        return None
    about = ". ".join(text.rstrip(".") for text in dict.fromkeys(texts) if text)
    answer = _answer_schema(described)
    return Operation(
        method.upper(), path, taken.schema, taken.places, answer, about, is_talk, taken.media
    )


def _own_words(texts: Sequence[str], name: str, document: JsonObject) -> str:
    """Return an operation's description beyond its name; of a single one, the document's.

    Frameworks make a summary of the name if its author wrote none.
    """
    plain = "".join(words_of(_SPLIT.sub(" ", name)))
    own = [text for text in texts if text and "".join(words_of(text)) not in plain]
    info = document.get("info")
    if not own and len(paths_of(document)) == 1 and is_object(info):
        own = [str(info.get("description") or "")]
    return own[0] if own else ""


_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./]")


def _answer_schema(described: JsonObject) -> JsonValue:
    responses = described.get("responses")
    ok = responses.get("200") if is_object(responses) else None
    content = ok.get("content") if is_object(ok) else None
    media = content.get("application/json") if is_object(content) else None
    if is_object(media):
        return media.get("schema")
    return ok.get("schema") if is_object(ok) else None  # As in version 2.


def base_of(document: JsonObject, address: Address) -> str:
    """Return the base of documented paths: the first server on the document's own site.

    Of a server elsewhere only the path counts: the document may be served by a copy.
    """
    servers = document.get("servers")
    rows = [s for s in servers if is_object(s)] if is_array(servers) else []
    urls = [absolute(address.document_url, _server(row)) for row in rows[:SERVERS_MAX]]
    plain = [url for url in urls if url and "{" not in url]
    for url in plain:
        if same_site(url, address.document_url):
            return url.rstrip("/")
    base = urlsplit(plain[0]).path if plain else str(document.get("basePath") or "/")
    return absolute(address.document_url, base or "/").rstrip("/")


def _server(row: JsonObject) -> str:
    """Return a server's address, with the defaults of its variables."""
    url = str(row.get("url") or "/")
    variables = row.get("variables")
    for name, one in list(variables.items())[:SERVERS_MAX] if is_object(variables) else ():
        default = one.get("default") if is_object(one) else None
        url = url.replace("{" + name + "}", str(default)) if default is not None else url
    return url


SHOWN_MAX = 8
"""Operations read of one page."""

_FIXED: Final = re.compile(
    r"(?:^|[_-])(?:format|fmt|output|callback|pretty|v|version|lang|language|locale|units?|key|api_?key"
    r"|token|sig|signature|secret|code_challenge|redirect|webhook)$",
    re.IGNORECASE,
)
"""Arguments of a call that are left as they are shown."""

_PREFIX: Final = re.compile(r"^(?:/(?:api|rest|rpc|v\d{1,3}))+(?=/)", re.IGNORECASE)
_HANDS_OVER: Final = re.compile(
    r"\b(?:send|post|submit|put|enter)\s+(?:in\s+)?(?:an?\s|the\s|your\s|some\s|two\s|three\s)?"
    r"(?:\w{1,12}\s)?(?:json|forms?|body|numbers?|values?|lists?|plain text|parameters|fields)\b",
    re.IGNORECASE,
)
"""Phrases that describe how a caller asks."""


def operations_shown(body: bytes, url: str) -> list[Operation]:
    """Return the same-origin operations shown by a text at `url`, without acts.

    Those with shown values come first. A `POST` must show its body.
    """
    by_key: dict[tuple[str, str], list[ShownCall]] = {}
    calls = calls_shown(body, url)
    marked = [one for one in calls if None in one.given.values() and "{" in one.path]
    for one in (_as_marked(call, marked) for call in calls):
        key = one.method, one.path
        if key in by_key or len(by_key) < SHOWN_MAX:
            by_key.setdefault(key, []).append(one)
    is_only = len({path for method, path in by_key if method == "POST"}) == 1
    made = [_shown_operation(rows, is_only=is_only) for rows in by_key.values()]
    found = [operation for operation in made if operation is not None]
    return sorted(found, key=lambda o: not _has_examples(o))


def declared_operation(url: str) -> tuple[Operation, JsonObject] | None:
    """Return the declared address as a call, and its values; None if it has none."""
    one = called(url)
    if one is None or not any(one.given.values()):
        return None
    given = {name: value for name, value in one.given.items() if value is not None}
    return _operation_of(one, [given], ""), given


def demanding(url: str, names: Sequence[str]) -> Operation | None:
    """Return the declared address with arguments of which only the names are known."""
    one = called(url)
    if one is None or not names:
        return None
    given = dict.fromkeys(names)
    return _operation_of(
        AddressTemplate(one.raw, given, dict.fromkeys(names, "query"), one.raw), [given], ""
    )


def _as_marked(call: ShownCall, marked: Sequence[ShownCall]) -> ShownCall:
    """Return the call with the path of another call that names its values."""
    for other in marked:
        values = values_at(other.path, call.raw) if other.method == call.method else None
        if values is not None and call.path != other.path:
            own = {n: v for n, v in call.given.items() if call.places[n] != "path"}
            places = {n: p for n, p in call.places.items() if p != "path"}
            return ShownCall(
                call.method,
                other.path,
                call.raw,
                {**values, **own},
                {**dict.fromkeys(values, "path"), **places},
                call.media,
                f"{other.about} {call.about}",
                call.beside,
                call.intro,
            )
    return call


def _has_examples(operation: Operation) -> bool:
    properties = operation.schema.get("properties")
    members: JsonObject = properties if is_object(properties) else {}
    return any(is_object(p) and p.get("examples") != [] for p in members.values())


def _shown_operation(rows: Sequence[ShownCall], *, is_only: bool) -> Operation | None:
    first = rows[0]
    if _may_act(first, is_only=is_only):
        return None
    one = AddressTemplate(first.path, first.given, first.places, first.raw)
    made = _operation_of(one, [row.given for row in rows], first.about, first.method)
    return replace(made, media=first.media)


def _operation_of(
    one: AddressTemplate, rows: Sequence[JsonObject], about: str, method: str = "GET"
) -> Operation:
    names = [name for name in one.given if all(name in row for row in rows)]
    properties: dict[str, JsonValue] = {}
    for name in names:
        values = [row[name] for row in rows]
        known = [value for value in values if value is not None]
        is_fixed = bool(known) and len(names) > 1 and bool(_FIXED.search(name))
        properties[name] = {"enum": known} if is_fixed else schema_like(values)
    places = {name: one.places[name] for name in names}
    schema: JsonObject = {"properties": properties, "required": [*names]}
    whole = tuple({n: row[n] for n in names} for row in rows if None not in row.values())
    return Operation(method, one.path, schema, places, None, about, shown=whole)


def _may_act(one: ShownCall, *, is_only: bool) -> bool:
    """Return whether a call may act, by its path and the text beside it.

    Preceding text describes a `POST` only if it is the only one.
    """
    if one.method == "GET":
        return does_act(one.path, "", says_it_reads=True)
    beside = [_HANDS_OVER.sub(" ", line) for line in one.beside]
    if any(map(tells_of_act, beside)):
        return True
    name = _PREFIX.sub("", one.path)
    return not only_asks(name, [*beside, *(one.intro if is_only else ())])


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
            properties[name] = _declared_argument(shown, shapes.get(name))
            places[name] = where
    required: list[JsonValue] = [*properties]
    return ({"properties": properties, "required": required}, places) if properties else None


def _declared_argument(shown: JsonValue, shape: JsonValue) -> JsonObject:
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
