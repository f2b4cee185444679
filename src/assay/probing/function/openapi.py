"""Operations that an OpenAPI document describes and that only read. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urljoin

from assay.kit.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.asking import same_site
from assay.probing.function.acts import does_act
from assay.probing.function.identify import Address
from assay.probing.function.messages import is_for_talk, message_in
from assay.probing.function.request import Operation
from assay.probing.function.words import words_of

OPERATIONS_MAX = 200
_METHOD_SUFFIX = re.compile(r"(?:_|(?<=[a-z]))(?:get|post|Get|Post)$")
"""FastAPI and others end an operation's name with its method."""


def operations_of(document: JsonObject) -> list[Operation]:
    """The documented operations without an act, those that take nothing first."""
    found: list[Operation] = []
    for path, item in list(paths_of(document).items())[:OPERATIONS_MAX]:
        for method in ("get", "post"):
            described = item.get(method) if is_object(item) else None
            if is_object(described) and is_object(item):
                operation = _operation(method, path, described, item, document)
                if operation is not None:
                    found.append(operation)
    found = _with_shared_examples(found)
    return sorted(found, key=lambda o: (len(o.places), o.method, o.path))


def _with_shared_examples(operations: list[Operation]) -> list[Operation]:
    """The same, where an argument without an example has those of its namesakes elsewhere."""
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
    """The documented paths, as they are written."""
    paths = document.get("paths")
    return paths if is_object(paths) else {}


def _operation(
    method: str, path: str, described: JsonObject, item: JsonObject, document: JsonObject
) -> Operation | None:
    told = [str(described.get(member) or "").strip() for member in ("summary", "description")]
    name = _METHOD_SUFFIX.sub("", str(described.get("operationId") or path))
    said = _own_words(told, name, document)
    is_act = does_act(name, said, says_it_reads=method == "get")
    may_talk = is_for_talk(path, said)
    taken = None if is_act and not may_talk else _taken(method, described, item, document)
    if taken is None:
        return None
    schema, places = taken
    is_talk = may_talk and bool(message_in(schema))
    if is_act and not is_talk:
        return None
    about = ". ".join(text.rstrip(".") for text in dict.fromkeys(told) if text)
    answer = _answer_schema(described)
    return Operation(method.upper(), path, schema, places, answer, about, is_talk)


def _taken(
    method: str, described: JsonObject, item: JsonObject, document: JsonObject
) -> tuple[JsonObject, JsonObject] | None:
    """The schema of what an operation takes, and where each goes; None where it cannot be sent."""
    properties: dict[str, JsonValue] = {}
    places: dict[str, JsonValue] = {}
    optional: list[str] = []
    for row in (_resolve(r, document) for r in _parameters(item) + _parameters(described)):
        where, key = str(row.get("in")), str(row.get("name"))
        if where in {"header", "cookie"} and row.get("required"):
            return None
        if where in {"path", "query"}:
            schema = row.get("schema")
            extra = {k: row[k] for k in ("example", "description") if k in row}
            properties[key] = {**(schema if is_object(schema) else row), **extra}
            places[key] = where
            if not row.get("required") and where == "query":
                optional.append(key)
    none: JsonObject = {}
    body = _body_schema(described, document) if method == "post" else none
    if body is None:
        return None
    for key, schema in body.items():
        properties[key], places[key] = schema, "body"
    required = [key for key in properties if key not in optional] or optional[:1]
    kept = {key: places[key] for key in required}
    return {"properties": properties, "required": [*required]}, kept


def _own_words(told: Sequence[str], name: str, document: JsonObject) -> str:
    """What is said of an operation beyond its name; of an only one, what is said of them all.

    Frameworks make a summary of the name where its author wrote none.
    """
    plain = "".join(words_of(_SPLIT.sub(" ", name)))
    own = [text for text in told if text and "".join(words_of(text)) not in plain]
    info = document.get("info")
    if not own and len(paths_of(document)) == 1 and is_object(info):
        own = [str(info.get("description") or "")]
    return own[0] if own else ""


_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./]")


def _parameters(item: JsonObject) -> list[JsonObject]:
    rows = item.get("parameters")
    return [row for row in rows if is_object(row)] if is_array(rows) else []


def _resolve(row: JsonObject, document: JsonObject) -> JsonObject:
    """A schema or parameter behind a reference into the document."""
    reference = row.get("$ref")
    found: JsonValue = document
    if not isinstance(reference, str):
        return row
    for part in reference.removeprefix("#/").split("/")[:6]:
        found = found.get(part) if is_object(found) else None
    return found if is_object(found) else {}


def _body_schema(described: JsonObject, document: JsonObject) -> JsonObject | None:
    """The required members of a JSON body; None where there is no JSON object to send."""
    body = described.get("requestBody")
    content = body.get("content") if is_object(body) else None
    media = content.get("application/json") if is_object(content) else None
    schema = media.get("schema") if is_object(media) else None
    if not is_object(schema):
        return None
    schema = _resolve(schema, document)
    properties, required = schema.get("properties"), schema.get("required")
    if not is_object(properties) or not properties:
        return None
    names = required if is_array(required) and required else list(properties)[:1]
    return {str(key): properties.get(str(key)) for key in names}


def _answer_schema(described: JsonObject) -> JsonValue:
    responses = described.get("responses")
    ok = responses.get("200") if is_object(responses) else None
    content = ok.get("content") if is_object(ok) else None
    media = content.get("application/json") if is_object(content) else None
    return media.get("schema") if is_object(media) else None


def base_of(document: JsonObject, address: Address) -> str:
    """Where documented paths begin: the first server on the document's own site."""
    servers = document.get("servers")
    rows = [s for s in servers if is_object(s)] if is_array(servers) else []
    for row in rows[:4]:
        url = urljoin(address.document_url, str(row.get("url") or "/"))
        if same_site(url, address.document_url) and "{" not in url:
            return url.rstrip("/")
    base = str(document.get("basePath") or "/")
    return urljoin(address.document_url, base).rstrip("/")
