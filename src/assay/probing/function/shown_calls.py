"""Finds calls in a text: links, lines like `GET /rate?from=EUR`, command lines. Pure.

Splits a command line in a text into words. Pure; linear in its characters.

Source: POSIX.1-2024, Shell Command Language, section 2.2 (quoting), as far as pages use it.

Parses calls in command lines of `curl` and of HTTPie.

Sources: curl(1); HTTPie's documentation, "Request items".
"""

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from assay.common.json import JsonObject, JsonValue, is_object
from assay.probing.function.examples import by_name, called, own_address
from assay.probing.function.identify import FORM, TEXT, WHOLE
from assay.probing.function.words import leaves, visible_text
from assay.probing.probe_client import decode

LINE_CHARS_MAX: Final = 2_000
_ENDS: Final = ("\n", "|", ";", "`", "&&", "<<", "$(", " >", " #")
_ESCAPED: Final = {"n": "\n", "t": "\t"}


def words_of_line(text: str, start: int) -> tuple[list[str], int]:
    """Return the words from here to the end of the line, and the position of that end.

    None for a line with an unterminated quotation. A backslash at its end continues it.
    """
    words: list[str] = []
    parts: list[str] = []
    is_word = False
    place, end = start, min(len(text), start + LINE_CHARS_MAX)
    while place < end and not text.startswith(_ENDS, place):
        char = text[place]
        if char == "\\" and text[place + 1 : place + 3].lstrip(" \r").startswith("\n"):
            place, char = text.index("\n", place), " "
        if char.isspace():
            words += ["".join(parts)] if is_word else []
            parts, is_word = [], False
            place += 1
            continue
        is_word = True
        if char in "'\"" or text.startswith("$'", place):
            said, place = _quotation(text, place, end)
            if place < 0:
                return [], start
            parts.append(said)
        elif char == "\\":
            parts.append(text[place + 1 : place + 2])
            place += 2
        else:
            parts.append(char)
            place += 1
    return words + (["".join(parts)] if is_word else []), place


def _quotation(text: str, start: int, end: int) -> tuple[str, int]:
    """Return the quoted text, and the position after it; -1 if the quotation is unterminated."""
    is_escaped = text[start] != "'"
    mark = '"' if text[start] == '"' else "'"
    place = start + 1 + (text[start] == "$")
    parts: list[str] = []
    while place < end:
        char, following = text[place], text[place + 1 : place + 2]
        if char == mark:
            return "".join(parts), place + 1
        if char == "\\" and is_escaped:
            kept = following if mark == "'" or following in '"\\$`' else char + following
            is_line = following == "\n"
            parts.append("" if is_line else _ESCAPED.get(following, kept) if mark == "'" else kept)
            place += 2
        else:
            parts.append(char)
            place += 1
    return "", -1


LINES_MAX = 20
PIPE_CHARS_MAX = 400

_COMMAND: Final = re.compile(r"(?<![\w./:-])(curl|https?|xh)[ \t]+(?=[^\s,;)])")
_PIPED: Final = re.compile(
    r"(?:echo|printf)(?: -\w{1,4})? (?:'([^'\n]{1,300})'|\"([^\"\n]{1,300})\")"
)
_METHOD: Final = re.compile(r"[A-Z]{3,7}")
_METHODS: Final = frozenset({"GET", "POST"})
_DATA: Final = frozenset(
    {
        "data",
        "data-ascii",
        "data-raw",
        "data-binary",
        "data-urlencode",
        "json",
        "form",
        "form-string",
    }
)
_VALUED_TEXT: Final = (
    "request header output user-agent user cookie max-time connect-timeout retry write-out proxy"
    " url upload-file referer cacert cert key config"
)
_VALUED: Final = _DATA | frozenset(_VALUED_TEXT.split())
"""Options that are followed by a value."""
_SHORT: Final = {
    "d": "data",
    "X": "request",
    "H": "header",
    "F": "form",
    "T": "upload-file",
    **dict.fromkeys("oAeubcmwxKErCyYztUDQP", "output"),
}
_NAMED: Final = re.compile(r"[\w.\[\]-]{1,60}=")
_ITEM: Final = re.compile(r"([\w.\[\]-]{1,60})(:=|==|=|:)(.{0,1000})", re.DOTALL)

_Pairs = list[tuple[str, str]]


@dataclass(slots=True)
class CommandLine:
    """A call of a command line, and its position in the text."""

    start: int
    end: int
    method: str = ""
    url: str = ""
    query: _Pairs = field(default_factory=list[tuple[str, str]])
    place: str = ""
    """The kind of body: `body`, `form`, `whole` or `text` as in `Operation.places`; or empty."""
    body: JsonValue = None
    media: str = ""


def lines_in(text: str) -> list[CommandLine]:
    """Return the GET and POST calls of command lines in a text that need no file."""
    found: list[CommandLine] = []
    place = 0
    for _ in range(LINES_MAX):
        command = _COMMAND.search(text, place)
        if command is None:
            break
        words, place = words_of_line(text, command.end())
        line = CommandLine(command.start(), place)
        read = _curl if command[1] == "curl" else _httpie
        if read(words, _piped(text, command.start()), line) and line.method in _METHODS:
            found.append(line)
    return found


def _piped(text: str, start: int) -> str | None:
    """Return what is printed into a command that begins here."""
    before = text[max(0, start - PIPE_CHARS_MAX) : start].rstrip(" ")
    line = before.rpartition("\n")[2]
    printed = _PIPED.search(line) if line.endswith("|") else None
    return None if printed is None else printed[1] or printed[2]


def _curl(words: Sequence[str], piped: str | None, line: CommandLine) -> bool:
    """Parse the words after `curl`; return whether they are a call."""
    options, urls = _options(words)
    headers = [value.casefold() for name, value in options if name == "header"]
    line.media = next(
        (h.partition(":")[2].strip() for h in headers if h.startswith("content-type:")), ""
    )
    given = [(name, value) for name, value in options if name in _DATA]
    names = {name for name, _ in options}
    is_query = bool(names & {"get", "G"})
    line.method = next(
        (v.upper() for n, v in options if n == "request"),
        "POST" if given and not is_query else "GET",
    )
    line.url = next((v for n, v in options if n == "url"), urls[0] if urls else "")
    texts = [_content(name, value, piped) for name, value in given]
    if not line.url or None in texts or names & {"upload-file", "config", "I", "head"}:
        return False
    joined = "&".join(filter(None, texts))
    if is_query:
        line.query = _pairs(joined)
    elif given:
        is_json = "json" in names or "json" in line.media
        is_form = bool(names & {"form", "form-string", "data-urlencode"})
        return _take(line, joined, is_json=is_json, is_form=is_form)
    return True


def _options(words: Sequence[str]) -> tuple[_Pairs, list[str]]:
    """Return (name, value) of each option, and the rest of the words."""
    options: _Pairs = []
    others: list[str] = []
    left = list(reversed(words))
    while left:
        word = left.pop()
        if word.startswith("--"):
            name = word[2:]
            options.append((name, left.pop() if name in _VALUED and left else ""))
        elif word.startswith("-") and len(word) > 1:
            options += _short_options(word[1:], left)
        elif word == "curl":
            break
        elif "/" in word or "$" in word or "." in word or ":" in word:
            others.append(word)
    return options, others


def _short_options(letters: str, left: list[str]) -> _Pairs:
    """Parse the short options of one word.

    The first with a value takes the rest or the next word.
    """
    found: _Pairs = []
    for place, letter in enumerate(letters):
        if letter in _SHORT:
            rest = letters[place + 1 :]
            return [*found, (_SHORT[letter], rest or (left.pop() if left else ""))]
        found.append((letter, ""))
    return found


def _content(name: str, value: str, piped: str | None) -> str | None:
    """Return what an option sends; None if that is in a file."""
    if name in {"data-raw", "form-string"}:
        return value
    if value == "@-":
        return piped
    head, mark, rest = value.partition("=")
    if value.startswith("@") or (name == "form" and rest.startswith(("@", "<"))):
        return None
    if name == "data-urlencode":
        is_file = not mark and "@" in value
        return None if is_file else _encoded(rest if mark else value, head if mark else "")
    return value


def _encoded(value: str, name: str) -> str:
    plain = value.replace("%", "%25").replace("&", "%26").replace("+", "%2B")
    return f"{name}={plain}" if name else plain


def _take(line: CommandLine, text: str, *, is_json: bool, is_form: bool) -> bool:
    """Set a text as the body of a call; return whether it matches its declared type."""
    if is_json or text[:1] in {"{", "["}:
        value = decode(text.encode("utf-8", "replace"))
        line.place, line.body = "body" if is_object(value) else WHOLE, value
        return value is not None
    may_be_form = not line.media or FORM in line.media
    if is_form or (may_be_form and all(map(_NAMED.match, text.split("&")))):
        line.place, line.body = "form", _members(_pairs(text))
        return bool(line.body)
    line.place, line.body, line.media = TEXT, text, line.media or FORM  # As curl itself declares.
    return bool(text.strip())


def _pairs(text: str) -> _Pairs:
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=40)
    except ValueError:
        return []


def _members(pairs: _Pairs) -> dict[str, JsonValue]:
    """Return values by name; a list for a name that occurs more than once."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: rows if len(rows) > 1 else rows[0] for name, rows in found.items()}


def _httpie(words: Sequence[str], piped: str | None, line: CommandLine) -> bool:
    """Parse the words after `http`; return whether they are a call."""
    plain = [word for word in words if not word.startswith("-")]
    if plain and _METHOD.fullmatch(plain[0]):
        line.method = plain.pop(0)
    if not plain or not (plain[0].startswith(":") or "/" in plain[0]):
        return False
    line.url = plain.pop(0)
    items = [item for item in map(_ITEM.fullmatch, plain) if item is not None]
    line.query = [(item[1], item[3]) for item in items if item[2] == "=="]
    given = {
        i[1]: decode(i[3].encode()) if i[2] == ":=" else i[3] for i in items if i[2] in {"=", ":="}
    }
    raw = next((word.partition("=")[2] for word in words if word.startswith("--raw=")), piped)
    line.method = line.method or ("POST" if given or raw else "GET")
    if given:
        line.place = "form" if {"-f", "--form"} & {*words} else "body"
        line.body = given
    elif raw and line.method == "POST":
        return _take(line, raw, is_json=False, is_form=False)
    return True


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
