"""JSON values: their types, for values that cross a boundary, and one text for one value.

The one text is canonical JSON (RFC 8785), of which the SHA-256 is taken.
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
"""From a quote on it always matches, so that no byte is looked at twice."""

_QUOTES_PER_VALUE = 4
"""Of a member of an object: those of its name and those of its text."""

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE = bytes.maketrans(b"{}", b"[]")
_OPENS = ord("[")

_USUAL_DEPTH = 8
"""Of nearly all answers: they are looked at without a loop over their brackets."""


def is_object(value: object) -> TypeGuard[Mapping[str, JsonValue]]:
    """Whether a decoded JSON value is an object (its keys are strings by construction)."""
    return type(value) is dict or isinstance(value, Mapping)  # the latter takes ten times as long


def is_array(value: object) -> TypeGuard[Sequence[JsonValue]]:
    """Whether a decoded JSON value is an array."""
    return isinstance(value, list | tuple)


def exact_number(text: bytes, name: str) -> Decimal | None:
    """The fraction that a JSON object has for `name`, to its last digit: parsers make it a double.

    Of text that another parser has found good. None where there is none; not a number where it has
    more digits or a larger exponent than a `Decimal` can hold.
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
    """Whether JSON text may hold more than so many values, counted without a parser.

    To be asked before text of strangers is parsed on the event loop: a mebibyte of empty arrays
    holds it for a tenth of a second. Commas, brackets and quotes inside strings count as well.
    """
    if len(text) <= values:
        return False
    separators = text.count(b",") + text.count(b"[") + text.count(b"{")
    return separators > values or text.count(b'"') > _QUOTES_PER_VALUE * values


def is_nested_beyond(text: bytes, depth: int) -> bool:
    """Whether JSON text opens more than `depth` arrays and objects within each other.

    To be asked before text of strangers is parsed: the standard parser recurses, and where a
    library has raised the recursion limit (py_ecc does, to 100,000) deep text ends the process.
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
    """The RFC 8785 form of `value`: the same value gives the same bytes on any machine.

    Raises `ValueError` for what has no such form (NaN, integers beyond 2^53, lone surrogates).
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise ValueError(str(error)) from error


def sha256_hex(data: bytes) -> str:
    """`0x` and 64 hex digits."""
    return "0x" + hashlib.sha256(data).hexdigest()
