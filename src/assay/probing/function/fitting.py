"""Makes arguments of one call consistent: what one names occurs in another. Pure.

A way leads between points of the network, a key is one of the record's, a word is searched in the
given text: independent values for each argument find nothing.
"""

import re
from random import Random
from typing import Final, Literal

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.words import leaves

WORDS_MIN = 4
"""A word is taken only from texts with at least this many words; shorter ones are values
themselves."""

_PARTS: Final = re.compile(r"[^\W_]+")
_FIXED: Final = frozenset({"enum", "const", "format", "pattern"})


Way = Literal["whole", "parts", "apart"]
"""How short texts are taken from the call's other arguments; `apart`: they are not."""


def tied(given: JsonObject, declared: JsonObject, random: Random, *, way: Way) -> JsonObject:
    """Return the same call with its short texts taken from its other arguments.

    They are members of a list whole or in part, keys of an object, words of a text. Texts that may
    be one of a few stay.
    """
    whole, parts = _atoms(given)
    if not whole or way == "apart":
        return given
    of = (way == "parts" and parts) or whole
    return {
        name: random.choice(of) if _is_free(name, value, declared) else value
        for name, value in given.items()
    }


def way_of(given: JsonObject) -> Way:
    """Return how the short texts of a call were taken from its other arguments."""
    whole, parts = _atoms(given)
    short = [value for name, value in given.items() if _is_free(name, value, {})]
    if not short or not any(value in whole or value in parts for value in short):
        return "apart"
    return "whole" if all(value in whole for value in short) else "parts"


def part_of(given: JsonObject, random: Random) -> str | None:
    """Return a key of an object or a member of a list in the input; None without one."""
    named = [value for value in given.values() if not isinstance(value, str)]
    whole, _ = _atoms({str(n): value for n, value in enumerate(named)})
    return random.choice(whole) if whole else None


NAMES_PART: Final = re.compile(r"^(?:key|path|field|member)(?:_?name)?$", re.IGNORECASE)
"""Arguments that name a part of another one, if there is one with parts."""


def _atoms(given: JsonObject) -> tuple[list[str], list[str]]:
    """Return the contents of lists, objects and texts, and those parts that are words."""
    whole: list[str] = []
    for value in given.values():
        if is_object(value):
            whole += list(value)
        elif is_array(value) and not isinstance(value, str):
            whole += leaves(value)
        elif isinstance(value, str) and len(value.split()) >= WORDS_MIN:
            whole += [word for word in _PARTS.findall(value) if len(word) >= WORDS_MIN]
    parts = [part for one in whole for part in _PARTS.findall(one)]
    return whole, [part for part in parts if not part.isdigit()]


def _is_free(name: str, value: JsonValue, declared: JsonObject) -> bool:
    schema = declared.get(name)
    is_fixed = is_object(schema) and bool(_FIXED & schema.keys())
    return isinstance(value, str) and len(value.split()) < WORDS_MIN and not is_fixed
