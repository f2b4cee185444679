"""The types of JSON values, for values that cross a boundary as JSON."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

JsonValue: TypeAlias = (
    "str | int | float | bool | Mapping[str, JsonValue] | Sequence[JsonValue] | None"
)
JsonObject: TypeAlias = Mapping[str, JsonValue]


def is_object(value: object) -> TypeGuard[Mapping[str, JsonValue]]:
    """Whether a decoded JSON value is an object (its keys are strings by construction)."""
    return isinstance(value, Mapping)


def is_array(value: object) -> TypeGuard[Sequence[JsonValue]]:
    """Whether a decoded JSON value is an array."""
    return isinstance(value, list | tuple)
