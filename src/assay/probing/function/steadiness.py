"""Whether an answer came again when the same was asked again: what is made up does not. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.probing.function.talking import KEPT_SHARE
from assay.probing.function.words import TEXT_CHARS_MAX

LONG_WORDS = 12
"""Words that only one answer has, of which fewer have to come again: a model says it otherwise."""

LONG_KEPT_SHARE = 0.2
NEAR_SHARE = 0.1
"""How far a figure may have moved, of its distance to the answers to other questions."""

_FIGURE: Final = re.compile(r"(?<![\w.])-?\d{1,15}(?:[.,]\d{1,15})?(?!\w)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SteadyAnswer:
    """One answer of a tool or operation."""

    asked: str
    said: str
    substance: frozenset[str]
    """What it says beyond the words of all questions."""


def comes_again(first: SteadyAnswer, again: SteadyAnswer, others: Sequence[SteadyAnswer]) -> bool:
    """Whether `again` has what only `first` had among the answers to other questions.

    Words come again; figures come again or near, as prices and clocks move.
    """
    if not first.substance:
        return True
    own = first.substance.difference(*(other.substance for other in others))
    if not own:
        return bool(first.substance & again.substance)
    if all(word.isdigit() for word in own):
        return _are_near(first, again, others)  # parts of figures are alike by chance
    kept = len(own & again.substance) / len(own)
    if kept >= KEPT_SHARE:
        return True
    theirs = [other.substance - first.substance for other in others]
    strayed = max((len(t & again.substance) / len(t) for t in theirs if t), default=0.0)
    if len(own) >= LONG_WORDS and kept >= max(LONG_KEPT_SHARE, 2 * strayed):
        return True
    return _are_near(first, again, others)


def _are_near(first: SteadyAnswer, again: SteadyAnswer, others: Sequence[SteadyAnswer]) -> bool:
    """Whether most figures that differ from question to question stayed near where they were."""
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
