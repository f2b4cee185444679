"""Parses calls in command lines of `curl` and of HTTPie. Pure.

Sources: curl(1); HTTPie's documentation, "Request items".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from assay.common.json import JsonValue, is_object
from assay.probing.function.request import FORM, TEXT, WHOLE
from assay.probing.function.shell_words import words_of_line
from assay.probing.probe_client import decode

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
