"""Finds calls in a text: links, lines like `GET /rate?from=EUR`, command lines. Pure."""

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from assay.common.json import JsonObject, JsonValue, is_object
from assay.probing.function.addresses import by_name, called, own_address
from assay.probing.function.command_lines import CommandLine, lines_in
from assay.probing.function.markup import visible_text
from assay.probing.function.words import leaves
from assay.probing.probe_client import decode

TEXT_CHARS_MAX = 32 * 1024
CALLS_READ_MAX = 80
BODY_CHARS_MAX = 800
ABOUT_CHARS = 160
"""Characters of the text before and after a call that describe it."""

INTRO_CHARS = 600
BODY: Final = "body"
"""The name of a body without members."""

_ATTRIBUTE: Final = re.compile(
    r"""\b(?:href|src|action|url|data-url|spec-url)\s*[=:]\s*(?:"([^"]{1,500})"|'([^']{1,500})')""",
    re.IGNORECASE,
)
_CALL: Final = re.compile(
    r"(?:\b(GET|POST)\s+)?(?<![\w.:/<-])((?:https?://[\w.:\[\]-]{1,200})?"
    r"/[\w~.%{}<>:@,/-]{0,200}(?:\?[^\s\"'`<>\\]{1,400}(?:<\w{1,40}>[^\s\"'`<>\\]{0,200}){0,4})?)"
)
_QUERY: Final = re.compile(r"(?<![\w/?)}>])\?[A-Za-z_]\w{0,30}=[^\s\"'`<>\\]{1,200}")
_POSTS: Final = re.compile(
    r"\bPOST\b|\.post\(|\bcurl\b[^\n]{0,400}?\s(?:-d|--data(?:-raw)?|--json)\s"
)
_PARAMS: Final = re.compile(r"[\"']?\s{0,4},\s{0,4}params\s{0,4}[=:]\s{0,4}(?=\{)")
_NO_WORDS: Final = re.compile(r"\b(?:GET|POST|curl|https?)\b|[$`]|://\S{0,200}")


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call that a text shows."""

    method: str
    path: str
    """The path with `{name}` for each value."""
    raw: str
    """The original path."""
    given: JsonObject
    """The values by name; None if none is shown."""
    places: JsonObject
    """Places, as in `Operation.places`."""
    media: str
    about: str
    """The text around it."""
    beside: tuple[str, ...] = ()
    """The description on its line and on the one before."""
    intro: tuple[str, ...] = ()
    """Earlier lines that belong to no other call."""


@dataclass(frozen=True, slots=True)
class _Body:
    place: str = ""
    value: JsonValue = None
    media: str = ""
    query: JsonObject | None = None


def calls_shown(body: bytes, url: str) -> list[ShownCall]:
    """Return the same-origin calls that a text at `url` shows."""
    document = decode(body)
    text = body[:TEXT_CHARS_MAX].decode("utf-8", "replace")
    linked: list[str] = []
    spoken = ""
    if document is not None:
        spoken = "\n".join(leaves(document))[:TEXT_CHARS_MAX]
        text = "\n".join(_lines(document))[:TEXT_CHARS_MAX]
    elif "<" in text:
        linked = [html.unescape(a or b) for a, b in _ATTRIBUTE.findall(text)]
        text = visible_text(text)
    commands = lines_in(spoken or text)
    found = [_of_line(spoken or text, line, url) for line in commands]
    if spoken and commands:
        text = "\n".join(row for row in text.split("\n") if not lines_in(row))
    found += _written(text if spoken else _without(text, commands), url)
    links = (link for link in linked[:CALLS_READ_MAX] if not link.startswith("#"))
    found += [_shown("GET", link, _Body(), url, ()) for link in links]
    return [one for one in found if one is not None]


def _without(text: str, commands: Sequence[CommandLine]) -> str:
    """Return the text with blanks in place of command lines."""
    for line in commands:
        text = text[: line.start] + " " * (line.end - line.start) + text[line.end :]
    return text


def _of_line(text: str, line: CommandLine, url: str) -> ShownCall | None:
    place = line.place if line.method == "POST" else ""
    body = _Body(place, line.body, line.media, by_name(line.query))
    is_call = line.method == "GET" or bool(place)
    return (
        _shown(line.method, line.url, body, url, (text, line.start, line.end)) if is_call else None
    )


def _written(text: str, url: str) -> list[ShownCall | None]:
    """Return calls that are written out in a text."""
    found: list[ShownCall | None] = []
    for match in list(_CALL.finditer(text))[:CALLS_READ_MAX]:
        first = max(0, match.start() - BODY_CHARS_MAX)
        begins = max(first, text.rfind("\n", first, match.start()))
        line = text[begins : match.end() + BODY_CHARS_MAX]
        method = match[1] or ("POST" if _POSTS.search(line) else "GET")
        given = _json_after(text, match.end(), line) if method == "POST" else None
        if method == "POST" and given is None:
            continue
        params = _PARAMS.match(text, match.end()) if method == "GET" else None
        query = None if params is None else _json_after(text, params.end(), "")
        body = _Body("", None, "", query) if given is None else _Body("body", given)
        place = text, match.start(), match.end()
        found.append(_shown(method, match[2].rstrip(".,;:)"), body, url, place))
    for match in list(_QUERY.finditer(text))[:CALLS_READ_MAX]:
        place = text, match.start(), match.end()
        found.append(_shown("GET", match[0].rstrip(".,;:)"), _Body(), url, place))
    return found


def _lines(document: JsonValue) -> list[str]:
    """Return the texts of an index, each with its name."""
    if not is_object(document):
        return leaves(document)
    rows: list[str] = []
    for name, value in document.items():
        said = json.dumps(value, ensure_ascii=False) if is_object(value) else ""
        rows += [f"{name} {said}"] if said else [f"{name} {leaf}" for leaf in leaves(value)]
    return [row.replace('"', " ") if "/" in row and "{" not in row else row for row in rows]


def _json_after(text: str, end: int, line: str) -> JsonObject | None:
    """Return the JSON object after a call, or before it in its line."""
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


def _shown(
    method: str,
    shown: str,
    body: _Body,
    url: str,
    place: tuple[()] | tuple[str, int, int],
) -> ShownCall | None:
    """Return the call of a method and an address; None if it is not of its own origin."""
    address = own_address(shown, url)
    one = called(address)
    if one is None or urlsplit(address)[:2] != urlsplit(url)[:2]:
        return None
    query = {**one.given, **(body.query or {})}
    value = body.value
    members: JsonObject = value if is_object(value) and body.place in {"body", "form"} else {}
    if body.place and not members:
        members = {BODY: value}
    given = {**query, **members}
    places: dict[str, JsonValue] = {**dict.fromkeys(query, "query"), **one.places}
    places |= dict.fromkeys(members, body.place)
    if not given:
        return None
    beside, intro = _around(*place) if place else ((), ())
    about = _about(*place) if place else ""
    return ShownCall(method, one.path, one.raw, given, places, body.media, about, beside, intro)


def _about(text: str, start: int, end: int) -> str:
    return " ".join(text[max(0, start - ABOUT_CHARS) : end + ABOUT_CHARS].split())


def _around(text: str, start: int, end: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the text beside a call, and before that.

    Lines with an address belong to another call.
    """
    *above, own = text[max(0, start - INTRO_CHARS) : start].split("\n")
    said = [line for line in map(_words, above) if line and "/" not in line]
    after, *below = text[end : end + ABOUT_CHARS].split("\n")
    under = [line for line in map(_words, below[:1]) if "/" not in line]
    beside = (*map(_words, (own, after)), *said[-1:], *under)
    return tuple(line for line in beside if line), tuple(said[:-1])


def _words(line: str) -> str:
    return " ".join(_NO_WORDS.sub(" ", line).split())
