"""Explains a grade, and what would improve it. Pure.

Every cause is something that counts against the agent, or that is not known about it, with the
score without it. So praise can never be the reason of a denial.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from assay.common.json import JsonObject

IMPROVE_MAX = 12
REASONS_MAX = 6


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that lowers the score, and the score without it."""

    slug: str
    finding: str
    """What was found, or what evidence is missing; one sentence."""
    action: str
    """What to do about it; one sentence."""
    docs: str
    """Where it is documented: a page of this repository with an anchor."""
    score_after: float
    is_cap: bool = False
    """Whether it bounds the whole score, whatever the rest is."""
    is_upper_bound: bool = False
    """Whether the gain is an upper bound: the actual gain depends on later evidence."""


@dataclass(frozen=True, slots=True)
class RungAsk:
    """A missing demand of the next rung of the ladder."""

    slug: str
    sentence: str
    docs: str
    ceiling_after: float
    """The ceiling once all demands of the rung are met."""
    action: str = ""
    """What to do about it, if that is more than the demand itself says."""


@dataclass(frozen=True, slots=True)
class Improvement:
    """A cause, and the score points that removing it gains."""

    cause: Cause
    points: float

    def document(self) -> JsonObject:
        """Return the response object."""
        return {
            "slug": self.cause.slug,
            "finding": self.cause.finding,
            "action": self.cause.action,
            "points": self.points,
            "scoreAfter": self.cause.score_after,
            "atMost": self.cause.is_upper_bound,
            "docs": self.cause.docs,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """The causes of a grade as sentences, and what to do about them; the weightiest first."""

    reasons: tuple[str, ...] = ()
    improve: tuple[Improvement, ...] = ()


def explained(
    causes: Sequence[Cause], now: float, asks: Sequence[RungAsk] = (), before_ceiling: float = 0.0
) -> Explanation:
    """Order causes: caps first, then by gain; omit those without gain.

    A file or record that a rung demands stays, whatever it gains now: it is shown nowhere else.

    `now` is the score; `before_ceiling` is the score without the ceiling of its rung, which bounds
    what the next rung gains.
    """
    asked = {ask.slug for ask in asks if ask.action}
    all_causes = [*causes, *(_of_rung(ask, max(now, before_ceiling)) for ask in asks)]
    found = [Improvement(one, round(max(0.0, one.score_after - now), 2)) for one in all_causes]
    ranked = sorted(
        (one for one in found if one.points > 0 or one.cause.is_cap or one.cause.slug in asked),
        key=lambda one: (
            not one.cause.is_cap,
            -one.points,
            one.cause.is_upper_bound,
            one.cause.slug,
        ),
    )
    reasons = dict.fromkeys(one.cause.finding for one in ranked)
    return Explanation(tuple(reasons)[:REASONS_MAX], tuple(ranked[:IMPROVE_MAX]))


def _of_rung(ask: RungAsk, before_ceiling: float) -> Cause:
    after = round(min(before_ceiling, ask.ceiling_after), 2)
    what = ask.action or ask.sentence
    action = f"{what} The ceiling is {ask.ceiling_after:g} when all of this rung is there."
    return Cause(
        ask.slug,
        ask.sentence,
        action,
        ask.docs,
        after,
        is_cap=before_ceiling > after,
        is_upper_bound=True,
    )
