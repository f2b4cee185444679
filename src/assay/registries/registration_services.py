"""Reads the services of a registration file, in every known shape. Pure.

No service is dropped because of its name: probes find out which protocol it speaks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.file_members import Members
from assay.registries.file_problems import Note, described
from assay.registries.model import Service
from assay.registries.registration_json import load_inner
from assay.registries.registration_text import is_placeholder, text_of, url_of

SERVICES_MAX = 64

UNNAMED = "unnamed"
"""The name of a service without one."""

NAMES = ("name", "type", "protocol", "kind", "title", "label", "protocolBinding", "id")
ENDPOINTS = (
    "endpoint",
    "url",
    "uri",
    "serviceEndpoint",
    "value",
    "href",
    "address",
    "baseUrl",
    "link",
    "location",
)
_EXPECTED = "a list of objects, each with name and endpoint"
_ONE = "an object with name and endpoint"
_ADDRESS = "one URL"
_NESTED_MAX = 2
_ADDRESSES_MAX = 8
_HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:.+", re.IGNORECASE | re.DOTALL)
_NO_URL = re.compile(r"0x[0-9a-f]{40}|[^/@]+@[^/@]+|[^/]+\.(?:eth|sol|crypto|box)", re.IGNORECASE)
"""Addresses of wallets, e-mail addresses and names: none of them has a scheme."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A candidate service: its path in the file, and the name that a map gives it."""

    where: str
    name: str
    value: JsonValue
    is_bare: bool = False
    """Whether it is only an address, if that is recorded already or normal for a map of names."""


def read_services(listed: JsonValue, note: Note, where: str = "services") -> tuple[Service, ...]:
    """Return every service with an address, in the order of the file.

    Maps in order of their keys.
    """
    rows = list(islice(_rows(listed, where, note), SERVICES_MAX + 1))
    if len(rows) > SERVICES_MAX:
        count = len(listed) if is_array(listed) or is_object(listed) else len(rows)
        note(where, f"{count} services", f"at most {SERVICES_MAX}; the others are not read")
    found: dict[Service, None] = {}
    for row in rows[:SERVICES_MAX]:
        for service in _services(row, note):
            if service in found:
                note(row.where, "the same service again", "every service once")
            elif len(found) < SERVICES_MAX:
                found[service] = None
    return tuple(found)


def _rows(listed: JsonValue, where: str, note: Note, depth: int = 0) -> Iterator[_Row]:
    if is_array(listed):
        for number, item in enumerate(listed):
            place = f"{where}[{number}]"
            if not is_array(item):
                yield _Row(place, "", item)
                continue
            note(place, described(item), _ONE)
            if depth < _NESTED_MAX:
                yield from _rows(item, place, note, depth + 1)
    elif is_object(listed):
        note(where, described(listed), _EXPECTED)
        yield from _of_map(listed, where)
    elif isinstance(listed, str) and (inner := _within(listed, note)) is not None:
        note(where, "a text with JSON in it", _EXPECTED)
        yield from _rows(inner, where, note, depth + 1)
    else:
        note(where, described(listed), _EXPECTED)
        if isinstance(listed, str):
            yield _Row(where, "", listed, is_bare=True)


def _of_map(listed: JsonObject, where: str) -> Iterator[_Row]:
    members = Members(listed, where, _silent)
    if members.key(*ENDPOINTS) and members.key(*NAMES):
        yield _Row(where, "", listed)
        return
    for name, value in sorted(listed.items()):
        yield _Row(f"{where}.{name}", name, value, is_bare=True)


def _within(text: str, note: Note) -> JsonValue:
    """Return the list or object that a text contains, if it does."""
    return load_inner(text, note) if text.lstrip()[:1] in {"[", "{"} else None


def _services(row: _Row, note: Note) -> Iterator[Service]:
    if is_object(row.value):
        yield from _of_object(row, row.value, note)
        return
    values = list(row.value)[:_ADDRESSES_MAX] if is_array(row.value) else [row.value]
    if is_array(row.value) or not row.is_bare:
        note(row.where, described(row.value), _ONE)
    elif not isinstance(row.value, str):
        note(row.where, described(row.value), _ADDRESS)
    for value in values:
        if isinstance(value, str) and (endpoint := _endpoint(value, row.where, note)):
            yield Service(text_of(row.name) or UNNAMED, endpoint)


def _of_object(row: _Row, raw: JsonObject, note: Note) -> Iterator[Service]:
    members = Members(raw, row.where, note)
    name, place = _name(row, raw, members, note), members.at("endpoint")
    if _is_solana(raw):
        value: JsonValue = raw["value"]
    else:
        value = members.get(*ENDPOINTS)
    if value is None:
        note(place, members.lacking("endpoint"), _ADDRESS)
        return
    version = _version(members, note)
    if not isinstance(value, str):
        note(place, described(value), _ADDRESS)
    for text in _addresses(value):
        if endpoint := _endpoint(text, place, note):
            yield Service(name, endpoint, version)


def _name(row: _Row, raw: JsonObject, members: Members, note: Note) -> str:
    if row.name:
        return text_of(row.name) or UNNAMED
    value = raw["type"] if _is_solana(raw) else members.get(*NAMES)
    name = text_of(value)
    if not name:
        found = members.lacking("name") if value is None else described(value)
        note(members.at("name"), found, "the name of what is spoken there, such as A2A or MCP")
    return name or UNNAMED


def _is_solana(raw: JsonObject) -> bool:
    """Return whether it uses `type` and `value`, as the Solana registry's own files do."""
    names = isinstance(raw.get("type"), str) and isinstance(raw.get("value"), str)
    return names and "name" not in raw and "endpoint" not in raw


def _version(members: Members, note: Note) -> str | None:
    value = members.get("version")
    if isinstance(value, int | float) and not isinstance(value, bool):
        note(members.at("version"), described(value), "a text")
        return str(value)[:32]
    return text_of(value) or None


def _addresses(value: JsonValue) -> Iterator[str]:
    """Yield the texts of an address, which may be a list or an object of one or several."""
    if isinstance(value, str):
        yield value
    elif is_array(value):
        for one in value[:_ADDRESSES_MAX]:
            if isinstance(one, str):
                yield one
    elif is_object(value):
        key = Members(value, "", _silent).key(*ENDPOINTS)
        chosen = [value[key]] if key else [one for _, one in sorted(value.items())]
        for one in chosen[:_ADDRESSES_MAX]:
            if isinstance(one, str):
                yield one


def _endpoint(value: str, where: str, note: Note) -> str:
    """Return the address if it may be one, else an empty text."""
    endpoint = url_of(value)
    if not endpoint or is_placeholder(endpoint):
        note(where, described(value), "a URL: visible characters, at most 2048, no placeholder")
        return ""
    if endpoint != value:
        note(where, f"white space around {described(value)}", "the URL alone")
    elif not _HAS_SCHEME.fullmatch(endpoint) and not _NO_URL.fullmatch(endpoint):
        note(where, described(value), "a URL with its scheme, such as https://")
    return endpoint


def _silent(where: str, found: str, expected: str) -> None:
    """Record nothing."""
    del where, found, expected
