"""JSON values: their types across boundaries, and one canonical text for each value.

The canonical text is RFC 8785; hashes are its SHA-256.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TypeAlias, TypeGuard

import rfc8785

JsonValue: TypeAlias = (
    "str | int | float | bool | Mapping[str, JsonValue] | Sequence[JsonValue] | None"
)
JsonObject: TypeAlias = Mapping[str, JsonValue]

_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""Matches at every quote, so that no byte is read twice."""

_QUOTES_PER_VALUE = 4
"""Quotes of one member of an object: those of its name and those of its text."""

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE = bytes.maketrans(b"{}", b"[]")
_OPENS = ord("[")

_USUAL_DEPTH = 8
"""The depth of nearly all answers: they are checked without a loop over their brackets."""


def is_object(value: object) -> TypeGuard[Mapping[str, JsonValue]]:
    """Return whether a decoded JSON value is an object (its keys are strings by construction)."""
    return type(value) is dict or isinstance(value, Mapping)  # the latter takes ten times as long


def is_array(value: object) -> TypeGuard[Sequence[JsonValue]]:
    """Return whether a decoded JSON value is an array."""
    return isinstance(value, list | tuple)


def exact_number(text: bytes, name: str) -> Decimal | None:
    """Return the number of member `name` in a JSON text to its last digit; parsers return a double.

    The text must have been accepted by another parser. Returns None if there is no such number, and
    NaN if it has more digits or a larger exponent than a `Decimal` can hold.
    """
    found: object = json.loads(text, parse_float=_exact, parse_int=len)
    number = found.get(name) if is_object(found) else None
    return number if isinstance(number, Decimal) else None


def _exact(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def has_values_beyond(text: bytes, values: int) -> bool:
    """Return whether JSON text may hold more than `values` values, counted without a parser.

    Call it before parsing text of strangers on the event loop: a mebibyte of empty arrays blocks it
    for a tenth of a second. Commas, brackets and quotes inside strings count as well.
    """
    if len(text) <= values:
        return False
    separators = text.count(b",") + text.count(b"[") + text.count(b"{")
    return separators > values or text.count(b'"') > _QUOTES_PER_VALUE * values


def is_nested_beyond(text: bytes, depth: int) -> bool:
    """Return whether JSON text opens more than `depth` arrays and objects within each other.

    Call it before parsing text of strangers. The standard parser recurses, and if a library has
    raised the recursion limit (py_ecc does, to 100,000), deep text ends the process.
    """
    if text.count(b"[") + text.count(b"{") <= depth:
        return False
    outside = _STRINGS.sub(b"", text) if b"\\" in text else b"".join(text.split(b'"')[::2])
    brackets = outside.translate(_SQUARE, _NOT_BRACKETS)
    peeled = brackets
    for _ in range(min(depth, _USUAL_DEPTH)):  # each time, the innermost of all that are closed
        peeled = peeled.replace(b"[]", b"")
    if not peeled:
        return False
    level = 0
    for bracket in brackets:
        level += 1 if bracket == _OPENS else -1
        if level > depth:
            return True
    return False


def canonical_bytes(value: JsonValue) -> bytes:
    """Return the RFC 8785 form of `value`: equal values give equal bytes on any machine.

    Raises `ValueError` for values without such a form (NaN, integers beyond 2^53, lone surrogates).
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise ValueError(str(error)) from error


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 as `0x` and 64 hex digits."""
    return "0x" + hashlib.sha256(data).hexdigest()
