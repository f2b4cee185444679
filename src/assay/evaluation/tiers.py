"""Maps a score to tier, risk level and route: one replaceable table, always monotone.

Source: conventions.md#tiers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast, get_args

from assay.common.json import JsonObject
from assay.evaluation.model import Grade, RiskLevel, SignalName, Tier, TierRoute
from assay.evaluation.policy import RULES, LadderPolicy

TierRow = tuple[float, str, str, str]

DEFAULT_ROWS: tuple[TierRow, ...] = (
    (95, "AAA", "GREEN", "prod"),
    (90, "AA", "GREEN", "prod"),
    (85, "A", "GREEN", "prod"),
    (75, "BAA", "YELLOW", "prod_throttled"),
    (65, "BA", "YELLOW", "prod_throttled"),
    (50, "B", "RED", "sandbox"),
    (35, "CAA", "RED", "sandbox_only"),
    (20, "CA", "RED", "sandbox_only"),
    (0, "C", "RED", "sandbox_only"),
)
"""Least score, tier, risk level, route; best first. Source: conventions.md#tiers."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """The table in use.

    Every score 0..100 has exactly one grade; a higher score never a lower one.
    """

    rows: tuple[tuple[float, Grade], ...]

    def grade(self, score: float) -> Grade:
        """Return the grade of a score 0..100."""
        return next(grade for minimum, grade in self.rows if score >= minimum)


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """The rules from evidence to grade: the weights, the tier table and the ladder in use."""

    weights: Mapping[SignalName, float]
    tiers: Tiers
    ladder: LadderPolicy = field(default_factory=LadderPolicy)

    def document(self) -> JsonObject:
        """Return every number, as it is stored with an evaluation; `rules_from` reads it."""
        return {
            "rules": RULES,
            "weights": {name.value: weight for name, weight in sorted(self.weights.items())},
            "tiers": [[minimum, g.tier, g.risk_level, g.route] for minimum, g in self.tiers.rows],
            "ladder": self.ladder.document(),
        }


def tiers_from(rows: Sequence[TierRow] | None = None) -> Tiers:
    """Return the table of `rows` (the default one if None).

    Raises `ValueError` with a plain sentence when a row has an unknown word, minima do not fall
    strictly from at most 100 to 0, or tier, risk level or route get better as the score falls.
    """
    listed = tuple(DEFAULT_ROWS if rows is None else rows)
    _check_minima([row[0] for row in listed])
    for column, words, what in (
        (1, get_args(Tier), "tier"),
        (2, get_args(RiskLevel), "risk level"),
        (3, get_args(TierRoute), "route"),
    ):
        _check_falling([str(row[column]) for row in listed], words, what)
    return Tiers(
        tuple(
            (minimum, Grade(cast("Tier", t), cast("RiskLevel", k), cast("TierRoute", r)))
            for minimum, t, k, r in listed  # The word checks above justify the casts.
        )
    )


def _check_minima(minima: Sequence[float]) -> None:
    if not minima or minima[-1] != 0:
        raise ValueError("the last row of the tier table must begin at score 0")
    falling = all(above > below for above, below in pairwise(minima))
    if not falling or minima[0] > 100:  # noqa: PLR2004 - the top of the scale
        raise ValueError("scores in the tier table must fall from row to row, from at most 100")


def _check_falling(column: Sequence[str], words: Sequence[str], what: str) -> None:
    unknown = [word for word in column if word not in words]
    if unknown:
        raise ValueError(f"the tier table has an unknown {what}: {unknown[0]!r}")
    ranks = [words.index(word) for word in column]
    if ranks != sorted(ranks):
        raise ValueError(f"the {what} in the tier table must not get better as the score falls")


MIN_SCORE_DEFAULT = 65.0
"""Default threshold. Source: interface.md#limits."""
