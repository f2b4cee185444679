"""Checks whether a repeated call gets the same answer: invented answers change. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.probing.function.talking import KEPT_SHARE
from assay.probing.function.words import TEXT_CHARS_MAX

LONG_WORDS = 12
"""Number of words unique to an answer from which fewer need to be repeated: a model rewords."""

LONG_KEPT_SHARE = 0.2
NEAR_SHARE = 0.1
"""How far a figure may move, relative to its distance from other calls' answers."""

_FIGURE: Final = re.compile(r"(?<![\w.])-?\d{1,15}(?:[.,]\d{1,15})?(?!\w)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SteadyAnswer:
    """An answer of a tool or operation."""

    asked: str
    said: str
    substance: frozenset[str]
    """Its content beyond the words of all requests."""


def comes_again(first: SteadyAnswer, again: SteadyAnswer, others: Sequence[SteadyAnswer]) -> bool:
    """Return whether `again` repeats what only `first` had among the answers.

    Words are repeated; figures are repeated or close, as prices and clocks move.
    """
    if not first.substance:
        return True
    own = first.substance.difference(*(other.substance for other in others))
    if not own:
        return bool(first.substance & again.substance)
    if all(word.isdigit() for word in own):
        return _are_near(first, again, others)  # Parts of figures are equal by chance.
    kept = len(own & again.substance) / len(own)
    if kept >= KEPT_SHARE:
        return True
    theirs = [other.substance - first.substance for other in others]
    strayed = max((len(t & again.substance) / len(t) for t in theirs if t), default=0.0)
    if len(own) >= LONG_WORDS and kept >= max(LONG_KEPT_SHARE, 2 * strayed):
        return True
    return _are_near(first, again, others)


def _are_near(first: SteadyAnswer, again: SteadyAnswer, others: Sequence[SteadyAnswer]) -> bool:
    """Return whether most figures that differ between calls stayed close."""
    given = frozenset(_figures(first.asked)).union(*(_figures(other.said) for other in others))
    here, there = _figures(first.said), _figures(again.said)
    apart = [f for o in others if len(f := _figures(o.said)) == len(here)]
    if first.said == again.said:
        return True
    if len(here) != len(there) or not apart:
        return bool(set(here) & set(there) - given)
    moved: list[bool] = []
    for place, figure in enumerate(here):
        distances = [abs(figure - other[place]) for other in apart if other[place] != figure]
        if distances and figure not in given:
            moved.append(abs(there[place] - figure) <= NEAR_SHARE * min(distances))
    if not moved:
        return bool(first.substance & again.substance)
    return sum(moved) >= KEPT_SHARE * len(moved)


def _figures(text: str) -> list[float]:
    return [float(f.replace(",", ".")) for f in _FIGURE.findall(text[:TEXT_CHARS_MAX])]
