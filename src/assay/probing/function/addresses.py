"""Parses addresses as calls: which parts of their paths and queries are values. Pure.

Sources: RFC 6570 (`{name}` in an address); RFC 2606 (names for examples).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from assay.common.json import JsonObject, JsonValue
from assay.probing.function.examples import can_vary, is_placeholder
from assay.probing.function.linked import absolute

PAIRS_MAX = 8
SEGMENTS_MAX = 12
VALUES_MAX = 6
"""Values of a path that are varied."""

_SEGMENT: Final = re.compile(r"^(?:\{(\w{1,40})\}|<(?:\w{1,20}:)?(\w{1,40})>|:(\w{1,40}))$")
_SUFFIXES: Final = re.compile(r"\.(?:js|css|png|svg|ico|html?|jpe?g|gif|woff2?|webp|txt|xml)$")
_VERSION: Final = re.compile(r"v\d{1,2}(?:[.]\d{1,2})?", re.IGNORECASE)
_HOLDERS_TEXT: Final = (
    "agent agents bot bots user users u account accounts tenant tenants t org orgs app apps"
    " service services profile profiles project workspace"
)
_HOLDERS: Final = frozenset(_HOLDERS_TEXT.split())
"""Path segments whose next segment belongs to a person: another value belongs to another person."""

_ANY_HOST: Final = re.compile(
    r"(?:https?://)?(?:\$\{?\w{1,40}\}?|\{\w{1,40}\}|<[\w .-]{1,40}>|localhost"
    r"|127\.0\.0\.1|0\.0\.0\.0|(?:[\w-]{1,40}\.){0,3}example(?:\.(?:com|org|net))?|your[\w.-]{0,60}|(?=:\d{0,5}(?:/|$)))"
    r"(?::\d{1,5}|:)?(?=[/?]|$)",
    re.IGNORECASE,
)
"""Hosts that stand for the reader's own."""


@dataclass(frozen=True, slots=True)
class AddressTemplate:
    """An address in its parts."""

    path: str
    """The path with `{name}` for each value."""
    given: JsonObject
    """The values by name; None if none is shown."""
    places: JsonObject
    raw: str
    """The original path."""


def own_address(shown: str, url: str) -> str:
    """Return the address of an example shown at `url`: a placeholder host means its own."""
    place = _ANY_HOST.match(shown)
    if place is not None:
        return absolute(url, shown[place.end() :] or "/")
    own = urlsplit(url)
    is_bare = shown.startswith(own.netloc) and shown[len(own.netloc) :][:1] in {"/", "?"}
    return absolute(url, f"{own.scheme}://{shown}" if is_bare else shown)


def called(address: str) -> AddressTemplate | None:
    """Return the call that an address makes; None if it is not a call of a service."""
    try:
        parts = urlsplit(address)
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=64)
    except ValueError:
        return None
    if _SUFFIXES.search(parts.path):
        return None
    raw = unquote(parts.path)
    path, given = _template(raw)
    places: dict[str, JsonValue] = dict.fromkeys(given, "path")
    for name, value in by_name(pairs[:PAIRS_MAX]).items():
        given.setdefault(name, value)
        places.setdefault(name, "query")
    return AddressTemplate(path, given, places, raw)


def by_name(pairs: Sequence[tuple[str, str]]) -> dict[str, JsonValue]:
    """Return values by name: for a name that occurs more than once, a list."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    shown = {name: [v for v in rows if not is_placeholder(v)] for name, rows in found.items()}
    return {
        name: None if not shown[name] else shown[name] if len(rows) > 1 else rows[0]
        for name, rows in found.items()
    }


def _template(path: str) -> tuple[str, dict[str, JsonValue]]:
    """Return the path with a name for each value in it, and the values."""
    made: list[str] = []
    given: dict[str, JsonValue] = {}
    before = ""
    for segment in path.split("/"):
        marked = _SEGMENT.match(segment)
        name = next(g for g in marked.groups() if g) if marked else ""
        if not marked and len(given) < VALUES_MAX and _is_value(segment, before):
            name = f"{before or 'path'} {chr(97 + len(given))}"
        if name:
            given[name] = None if marked else segment
            made.append("{" + name + "}")
        else:
            made.append(segment)
            before = segment
    return "/".join(made), given


def _is_value(segment: str, before: str) -> bool:
    """Return whether a segment is a number, a date, a code or another value of a known kind.

    `before` is the last segment that was not a value.
    """
    if before.casefold() in _HOLDERS or _VERSION.fullmatch(segment):
        return False
    return (bool(before) or any(map(str.isdigit, segment))) and can_vary(segment)


def values_at(template: str, path: str) -> JsonObject | None:
    """Return a path's values for the names of a template; None if it does not match."""
    wanted, had = template.strip("/").split("/"), path.strip("/").split("/")
    if len(wanted) != len(had) or len(wanted) > SEGMENTS_MAX:
        return None
    given: dict[str, JsonValue] = {}
    for one, other in zip(wanted, had, strict=True):
        if one.startswith("{") and one.endswith("}"):
            if not other or is_placeholder(other):
                return None
            given[one[1:-1]] = other
        elif one != other:
            return None
    return given


def fixed_part(address: str) -> str:
    """Return the path of an address before its first value, where another call may begin."""
    one = called(address)
    return "" if one is None else one.path.partition("/{")[0].rstrip("/")
