"""Calls that a page or an index shows. Pure.

Services without a document still say how they are called: by links, by `GET /rate?from=EUR`, by a
`curl` line. Source: RFC 6570 (`{name}` in an address).
"""

import html
import json
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from assay.kit.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.asking import decode
from assay.probing.function.acts import does_act
from assay.probing.function.linked import absolute
from assay.probing.function.markup import visible_text
from assay.probing.function.openapi import EXAMPLES_MAX, Operation
from assay.probing.function.words import leaves

TEXT_CHARS_MAX = 32 * 1024
SHOWN_MAX = 8
"""Operations read of one page."""

CALLS_READ_MAX = 80
BODY_CHARS_MAX = 800
ABOUT_CHARS = 160
"""Of the text before and after a call: what it is for."""

_ATTRIBUTE: Final = re.compile(
    r"""\b(?:href|src|action|url|data-url|spec-url)\s*[=:]\s*(?:"([^"]{1,500})"|'([^']{1,500})')""",
    re.IGNORECASE,
)
_CALL: Final = re.compile(
    r"(?:\b(GET|POST)\s+)?(?<![\w.:/<-])((?:https?://[\w.:\[\]-]{1,200})?"
    r"/[\w~.%{}<>:@,/-]{0,200}(?:\?[^\s\"'`<>\\]{1,400}(?:<\w{1,40}>[^\s\"'`<>\\]{0,200}){0,4})?)"
)
_POSTS: Final = re.compile(r"\bPOST\b|\bcurl\b[^\n]{0,400}?\s(?:-d|--data(?:-raw)?|--json)\s")
_PLACEHOLDER: Final = re.compile(r"[{<\[:](\w{1,40})[}>\]]?$|^$|^\.{2,3}$|^…$")
_SEGMENT: Final = re.compile(r"^(?:\{(\w{1,40})\}|<(?:\w{1,20}:)?(\w{1,40})>|:(\w{1,40}))$")
_SUFFIXES: Final = re.compile(r"\.(?:js|css|png|svg|ico|html?|jpe?g|gif|woff2?|webp|txt|xml)$")


def operations_shown(body: bytes, url: str) -> list[Operation]:
    """The operations on its own origin that a text at `url` shows calls of, without an act.

    Those of which it shows values come first. A `POST` needs the JSON that it takes.
    """
    examples: dict[tuple[str, str], list[JsonObject]] = {}
    about: dict[tuple[str, str], str] = {}
    for method, path, given, told in _calls(body, url):
        key = method, path
        if key in examples or len(examples) < SHOWN_MAX:
            examples.setdefault(key, []).append(given)
            about.setdefault(key, told)
    made = [_operation(key, rows, about[key]) for key, rows in examples.items()]
    found = [operation for operation in made if operation is not None]
    return sorted(found, key=lambda o: not _has_examples(o))


def _has_examples(operation: Operation) -> bool:
    return any(is_object(p) and p.get("examples") for p in _members(operation.schema).values())


def _members(schema: JsonObject) -> JsonObject:
    found = schema.get("properties")
    return found if is_object(found) else {}


def _calls(body: bytes, url: str) -> list[tuple[str, str, JsonObject, str]]:
    """(method, path, values by name, what is said of it) of each call shown."""
    document = decode(body)
    text = body[:TEXT_CHARS_MAX].decode("utf-8", "replace")
    linked: list[str] = []
    if document is not None:
        text = "\n".join(_lines(document))
    elif "<" in text:
        linked = [html.unescape(a or b) for a, b in _ATTRIBUTE.findall(text)]
        text = visible_text(text)
    found: list[tuple[str, str, JsonObject, str]] = []
    for match in list(_CALL.finditer(text))[:CALLS_READ_MAX]:
        told = text[max(0, match.start() - ABOUT_CHARS) : match.end() + ABOUT_CHARS]
        first = max(0, match.start() - BODY_CHARS_MAX)
        line = text[
            max(first, text.rfind("\n", first, match.start())) : match.end() + BODY_CHARS_MAX
        ]
        method = match[1] or ("POST" if _POSTS.search(line) else "GET")
        given = _json_after(text, match.end(), line) if method == "POST" else None
        found += _call(method, match[2].rstrip(".,;:)"), given, url, told)
    for link in linked[:CALLS_READ_MAX]:
        found += _call("GET", link, None, url, "") if "?" in link or "{" in link else []
    return found


def _lines(document: JsonValue) -> list[str]:
    """The texts of an index, each with the name that it stands under."""
    if not is_object(document):
        return leaves(document)
    rows: list[str] = []
    for name, value in document.items():
        said = json.dumps(value, ensure_ascii=False) if is_object(value) else ""
        rows += [f"{name} {said}"] if said else [f"{name} {leaf}" for leaf in leaves(value)]
    return [row.replace('"', " ") if "/" in row and "{" not in row else row for row in rows]


def _json_after(text: str, end: int, line: str) -> JsonObject | None:
    """The JSON object beside a call: after it, or before it in a `curl` line."""
    for part in (text[end : end + BODY_CHARS_MAX], line):
        place = part.find("{")
        while 0 <= place < BODY_CHARS_MAX:
            try:
                value, _ = json.JSONDecoder().raw_decode(part[place:])
            except (ValueError, RecursionError):
                place = part.find("{", place + 1)
                continue
            return value if is_object(value) else None
    return None


def _call(
    method: str, shown: str, body: JsonObject | None, url: str, told: str
) -> list[tuple[str, str, JsonObject, str]]:
    joined = absolute(url, shown)
    try:
        parts, own = urlsplit(joined), urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return []
    if (parts.scheme, parts.netloc) != (own.scheme, own.netloc) or _SUFFIXES.search(parts.path):
        return []
    path = unquote(parts.path)
    segments = [_SEGMENT.match(segment) for segment in path.split("/")]
    names = [next(g for g in segment.groups() if g) for segment in segments if segment]
    for place, segment in enumerate(segments):
        if segment:
            parted = path.split("/")
            parted[place] = "{" + next(g for g in segment.groups() if g) + "}"
            path = "/".join(parted)
    shown_values = {n: None if _PLACEHOLDER.search(value) else value for n, value in pairs[:8]}
    given: JsonObject = {**dict.fromkeys(names), **shown_values, **(body or {})}
    if not given or (method == "POST" and body is None):
        return []
    return [(method, path, given, " ".join(told.split()))]


def _operation(key: tuple[str, str], rows: Sequence[JsonObject], about: str) -> Operation | None:
    method, path = key
    if does_act(path, "", says_it_reads=method == "GET"):
        return None
    required = [name for name in rows[0] if all(name in row for row in rows)]
    properties: dict[str, JsonValue] = {}
    places: dict[str, JsonValue] = {}
    for name in required:
        values = [row[name] for row in rows if row[name] is not None]
        properties[name] = _declared(values)
        where = "body" if method == "POST" else "query"
        places[name] = "path" if "{" + name + "}" in path else where
    schema: JsonObject = {"properties": properties, "required": [*required]}
    return Operation(method, path, schema, places, None, about) if required else None


def _declared(values: Sequence[JsonValue]) -> JsonObject:
    """A value's schema, by those that were shown."""
    first = values[0] if values else ""
    if is_object(first) or is_array(first):
        return {"enum": [*values[:EXAMPLES_MAX]]}
    kind = "boolean" if isinstance(first, bool) else "string"
    if isinstance(first, int | float) and not isinstance(first, bool):
        kind = "integer" if isinstance(first, int) else "number"
    return {"type": kind, "examples": [*dict.fromkeys(map(_scalar, values))][:EXAMPLES_MAX]}


def _scalar(value: JsonValue) -> str | int | float | bool | None:
    return value if isinstance(value, str | int | float) else None
