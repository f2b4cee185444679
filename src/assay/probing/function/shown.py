"""Turns calls that a page or an index shows into operations. Pure.

Services without a document still show how to call them: by links, by `GET /rate?from=EUR`, by a
`curl` line.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_object
from assay.probing.function.acts import does_act, only_asks, tells_of_act
from assay.probing.function.addresses import AddressTemplate, called, values_at
from assay.probing.function.examples import schema_like
from assay.probing.function.request import Operation
from assay.probing.function.shown_calls import ShownCall, calls_shown

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
    made = [_operation(rows, is_only=is_only) for rows in by_key.values()]
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


def _operation(rows: Sequence[ShownCall], *, is_only: bool) -> Operation | None:
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
