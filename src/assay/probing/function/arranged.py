"""Detects answers that rearrange their input, which a template cannot do. Pure.

A reference, a name card or a date in another notation may contain only words of the request. Parts
of a value in another order, and initials in place of names, still cannot result from inserting
values into a text.
"""

from itertools import pairwise
from typing import Final

from assay.common.json import JsonObject, is_object
from assay.probing.function.rows import text
from assay.probing.function.words import leaves, words_of
from assay.probing.probe_client import decode

VALUE_WORDS_MAX: Final = 12


def initials_in(answer: str, given: str) -> frozenset[str]:
    """Return initials beside their original neighbour word, where names were left out.

    `Doe, J.` of `Jane Doe`; each is marked, because it is not literal.
    """
    had, said = words_of(given), words_of(answer)
    pairs = {frozenset(pair) for pair in pairwise(said)}
    return frozenset(
        f"~{first[0]} {last}"
        for first, last in pairwise(had)
        if len(first) > 1 < len(last)
        and first not in said
        and first[0].isalpha()
        and frozenset((first[0], last)) in pairs
    )


def rearranged(answer: str, value: str) -> frozenset[str]:
    """Return the words of one value as they occur together in an answer, if only reordered."""
    own, said = words_of(value), words_of(answer)
    count = len(own)
    if not 1 < count <= VALUE_WORDS_MAX or len(set(own)) < count:
        return frozenset()
    runs = [said[n : n + count] for n in range(len(said) - count + 1)]
    if own in runs:
        return frozenset()
    return frozenset("~" + " ".join(run) for run in runs if sorted(run) == sorted(own))


def given_of(row: JsonObject) -> str:
    """Return what a call was given, as it stands in a transcript after the call's name."""
    return str(row.get("asked")).partition(" ")[2]


def values_of(row: JsonObject) -> list[str]:
    """Return each argument of a call, with everything in it."""
    given = decode(given_of(row).encode())
    return [" ".join(leaves(v)) for v in given.values()] if is_object(given) else []


def arranged_in(row: JsonObject) -> frozenset[str]:
    """Return what an answer made of its arguments and does not say in other words."""
    found: set[str] = set()
    for value in values_of(row):
        found |= rearranged(text(row), value) | initials_in(text(row), value)
    return frozenset(found)
