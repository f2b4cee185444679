"""Finds the read-only operations of an OpenAPI document. Pure."""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.acts import does_act
from assay.probing.function.identify import Address
from assay.probing.function.linked import absolute
from assay.probing.function.messages import is_for_talk, message_in
from assay.probing.function.published import is_offered
from assay.probing.function.request import Operation
from assay.probing.function.taking import taken_by
from assay.probing.function.words import words_of
from assay.probing.probe_client import same_site

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
                operation = _operation(method, path, described, item, document, published)
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


def _operation(
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
    taken = None if is_unread else taken_by(method, described, item, document)
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
