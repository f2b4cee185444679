"""Interprets a registry's feedback as the EIP defines it. Pure and exact.

The registry's own `getSummary` is not used: it mixes scales, rounds to the commonest number of
decimals and wraps around on large values. Source: EIP-8004, "Reputation Registry".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

from assay.registries.model import Feedback

SCALE_TAGS = frozenset({"", "starred"})
"""`tag1` of feedback on the 0 to 100 scale; every other tag is a scale of its own.
Source: EIP-8004, the table of example tags (`starred`: quality rating, 0 to 100)."""

_LOW, _HIGH = Decimal(0), Decimal(100)
_CENT = Decimal("0.01")
_EXACT = Context(prec=60)
"""Digits for sums: 3 before the point, 18 after it (the registry's most), and 39 for the number of
entries. A separate context, so that a changed global context cannot alter a reputation."""


@dataclass(frozen=True, slots=True)
class FeedbackEntry:
    """A feedback entry; `score` is its value on the 0 to 100 scale, None if it is off the scale."""

    feedback: Feedback
    score: Decimal | None


@dataclass(frozen=True, slots=True)
class FeedbackSummary:
    """The registry's view of an agent. `average_score` is the plain mean, 2 decimals."""

    feedback_count: int
    counted: int
    discarded: int
    reviewers: int
    average_score: float | None
    entries: tuple[FeedbackEntry, ...]


def summarise(feedback: Sequence[Feedback]) -> FeedbackSummary:
    """Summarise feedback; only the order of `entries` depends on the order of the input."""
    entries = tuple(FeedbackEntry(one, score_of(one)) for one in feedback)
    scores = [entry.score for entry in entries if entry.score is not None]
    return FeedbackSummary(
        feedback_count=len(entries),
        counted=len(scores),
        discarded=len(entries) - len(scores),
        reviewers=len({one.client for one in feedback}),
        average_score=_average(scores),
        entries=entries,
    )


def _average(scores: Sequence[Decimal]) -> float | None:
    if not scores:
        return None
    total = Decimal(0)
    for score in scores:
        total = _EXACT.add(total, score)
    mean = _EXACT.divide(total, Decimal(len(scores)))
    return float(mean.quantize(_CENT, context=_EXACT))


def score_of(feedback: Feedback) -> Decimal | None:
    """Return an entry's value on the 0 to 100 scale, or None if it is on another or off it."""
    if feedback.is_scored:
        return None if feedback.score is None else Decimal(feedback.score)
    if feedback.tag1.strip().lower() not in SCALE_TAGS:
        return None
    return feedback.value if _LOW <= feedback.value <= _HIGH else None
