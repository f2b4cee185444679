"""What a wrapper's terms are for one agent: its price and rate limit by tier, its free calls. Pure.

A better tier never pays more than a worse one, and nobody pays more than `pricePerCall`. So an
agent that does not prove who it is, or whose tier is unknown, is asked for the dearest price.
Source: interface.md#prices-by-tier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from assay.evaluation.model import Tier

TIERS: Final[tuple[Tier, ...]] = get_args(Tier)
"""Best first. Source: conventions.md#tiers."""

Enforce = Literal["enforce", "observe"]
"""`observe`: callers whom the trust check would refuse pass, and the log says so."""

QuotaPeriod = Literal["day", "month"]
"""A UTC day or month."""

FREE_RUNG_MIN: Final = 1
"""Least rung of an agent that has free calls of its own: agents of rung 0 cost nothing to make."""


@dataclass(frozen=True, slots=True)
class TierTerms:
    """The terms of agents of at least a tier. `price` is in micro-dollars."""

    min_tier: Tier
    price: int
    rate_limit: int | None = None
    """Calls a minute for each agent; None: the wrapper's own limit."""


@dataclass(frozen=True, slots=True)
class FreeQuota:
    """The calls that each agent has for nothing."""

    calls: int
    per: QuotaPeriod


def terms_for(pricing: Sequence[TierTerms], tier: str | None) -> TierTerms | None:
    """Return the terms of the best entry that the tier reaches; None: the wrapper's own hold."""
    if tier not in TIERS:
        return None
    place = TIERS.index(tier)
    reached = [one for one in pricing if TIERS.index(one.min_tier) >= place]
    return min(reached, key=lambda one: TIERS.index(one.min_tier), default=None)


def period_of(per: QuotaPeriod, at: datetime) -> str:
    """Return the name of the UTC period, which sorts by time: `2026-11-27` or `2026-11`."""
    return at.strftime("%Y-%m-%d" if per == "day" else "%Y-%m")
