"""Decides whether the answers of one tool or operation vary with its inputs. Pure.

Source: evidence.md#operations.
"""

from collections.abc import Mapping, Sequence

from assay.common.json import JsonObject
from assay.probing.function.arranged import arranged_in, given_of, values_of
from assay.probing.function.rows import text, texts
from assay.probing.function.steadiness import SteadyAnswer, comes_again
from assay.probing.function.words import (
    COUNTING,
    counts_in,
    identifiers,
    leaves,
    reorders,
    substance,
    words_of,
)
from assay.probing.probe_client import decode


def one_tool(calls: Sequence[JsonObject], known: frozenset[str]) -> str:
    """Return `varies`, `same`, `no_input`, `unsteady` or, if undecidable, `unknown`.

    Identifiers and the order of the input count if the same call was answered identically twice:
    then they were not invented.
    """
    sent = known | frozenset(word for row in calls for word in words_of(str(row.get("asked"))))
    if not known & COUNTING:
        sent |= frozenset(count for row in calls for count in _counts_of(row))
    results = [substance(text(row), sent) - _numbered(calls) | arranged_in(row) for row in calls]
    if all(not row.get("input") for row in calls):
        return "no_input" if any(substance(text(row), known) for row in calls) else "same"
    by_input: dict[str, list[int]] = {}
    for place, row in enumerate(calls):
        by_input.setdefault(str(row.get("asked")), []).append(place)
    again = [places for places in by_input.values() if len(places) > 1]
    said = [
        SteadyAnswer(str(row.get("asked")), text(row), result)
        for row, result in zip(calls, results, strict=True)
    ]
    if any(_is_unsteady(places, said) for places in again):
        return "unsteady"
    if len(by_input) == 1:
        return "unknown"
    if len(set(results)) > 1 and any(results):
        return "varies"
    is_steady = any(len({text(calls[place]) for place in places}) == 1 for places in again)
    return "varies" if is_steady and _is_worked_out(calls, by_input) else "same"


def one_operation(calls: Sequence[JsonObject], known: frozenset[str], *, refuses: bool) -> str:
    """Like `one_tool`; `unknown` if only the owner's shown inputs have answers of their own.

    If other values are refused, as by a service that knows few things, the shown ones count.
    """
    found = one_tool(calls, known)
    own = [row for row in calls if row["role"] != "shown"]
    if found != "varies" or len(own) == len(calls):
        return found
    if len({str(row.get("asked")) for row in own}) > 1:
        varies = one_tool(own, known)
        return "unknown" if varies == "same" else varies
    return found if refuses else "unknown"


def _numbered(calls: Sequence[JsonObject]) -> frozenset[str]:
    """Return numbers as long as identifiers of the tool: a hexadecimal one may be all digits."""
    said = [frozenset(words_of(text(row))) for row in calls]
    lengths = {len(name) for row in calls for name in identifiers(text(row))}
    long = [word for words in said for word in words if len(word) >= IDENTIFIER_MIN]
    return frozenset(word for word in long if word.isdigit() and len(word) in lengths)


IDENTIFIER_MIN = 6


def _counts_of(row: JsonObject) -> frozenset[str]:
    """Return counts of each text of a call, of all of them together, and of its request."""
    sizes = frozenset(texts(row.get("sizes")))
    given = given_of(row)
    found = counts_in(given).union(*(counts_in(text) for text in leaves(decode(given.encode()))))
    return found | sizes | {str(len(given)), str(len(given.encode("utf-8", "replace")))}


def _is_unsteady(places: Sequence[int], said: Sequence[SteadyAnswer]) -> bool:
    """Return whether an answer that was requested again was different."""
    first, *again = [said[place] for place in places]
    others = [one for one in said if one.asked != first.asked]
    return any(not comes_again(first, one, others) for one in again)


def _is_worked_out(calls: Sequence[JsonObject], by_input: Mapping[str, Sequence[int]]) -> bool:
    """Return whether answers have other identifiers, or reordered words, for each input."""
    asked_once = [calls[places[0]] for places in by_input.values()]
    made = {identifiers(text(row)) - identifiers(str(row.get("asked"))) for row in asked_once}
    if len(made) > 1 and all(made):
        return True
    return sum(any(reorders(text(r), v) for v in values_of(r)) for r in asked_once) > 1
