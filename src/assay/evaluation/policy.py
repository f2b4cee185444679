"""The ladder's numbers as data: settings change them, and every evaluation stores its own.

Source of the defaults: docs/grades.md#the-ladder; ADR 0024.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise

from assay.common.json import JsonObject, JsonValue, is_array

RUNGS = ("unproven", "functional", "steady", "used", "vouched")
"""The names of the rungs, from 0."""

RULES = 1
"""Increased when code changes what the same evidence proves; part of the policy's version."""

_MAX = 1_000_000_000
"""Upper bound of every number of the ladder: any bound that excludes infinity."""


@dataclass(frozen=True, slots=True)
class LadderPolicy:
    """The demands of each rung, and the ceiling on the score of agents on it."""

    ceilings: tuple[float, ...] = (64.0, 74.0, 84.0, 89.0, 100.0)
    """Highest score on rung 0 to 4; they never fall."""
    sold_clusters: int = 3
    """Independent clusters of payers charged within 30 days, which prove the function of a service
    that only sells."""
    sold_days: int = 2
    """Different days on which they paid."""
    sold_usd: float = 1.0
    """The net sum of their payments, USD."""
    steady_visits: int = 5
    """Visits timed by the scheduler."""
    steady_days: int = 3
    """Different days those visits were on."""
    steady_span_days: int = 7
    """Days from the first of them to the last."""
    steady_unannounced_share: float = 0.5
    """Share of those visits that did not identify themselves."""
    used_days: int = 30
    """Days since the first paying customer."""
    used_clusters: int = 20
    """Independent clusters of payers."""
    used_payment_days: int = 10
    """Different days on which they paid."""
    used_largest_share: float = 0.2
    """Largest share of the money that one cluster may have paid."""
    used_usd: float = 20.0
    """Net revenue, USD."""
    vouched_days: int = 60
    vouched_proofs: int = 2
    """How many of the four kinds of voucher are needed."""
    vouched_stake_usd: float = 500.0
    """A stake that can be lost on chain, USD."""
    vouched_agents_per_human: int = 3
    """Agents that one proof of a human may back."""
    vouched_usd: float = 1000.0
    vouched_clusters: int = 100
    """Net revenue, USD, and clusters that together vouch for an agent."""
    vouched_response: int = 80
    """Lowest answer of a trusted validator, 0 to 100, that vouches for an agent."""
    vouched_by: tuple[str, ...] = ()
    """Addresses of validators and attesters the operator trusts, lower case."""
    caller_days: int = 2
    """Different days on which a key agent passed all caller scenarios."""
    caller_usd: float = 5.0
    """Payments of a key agent to unrelated wrappers, USD."""

    def document(self) -> JsonObject:
        """Return every number by name, as it is stored with an evaluation."""
        numbers: dict[str, JsonValue] = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**numbers, "ceilings": [*self.ceilings], "vouched_by": [*self.vouched_by]}


def ladder_from(overrides: Mapping[str, JsonValue]) -> LadderPolicy:
    """Return the default policy with `overrides` by name.

    Raises `ValueError` with a plain sentence for an unknown name, a value of the wrong kind or out
    of range, and for ceilings that fall or are not one per rung.
    """
    known = {f.name: getattr(LadderPolicy, f.name, f.default) for f in fields(LadderPolicy)}
    given: dict[str, object] = {}
    for name, value in overrides.items():
        if name not in known:
            raise ValueError(f"the ladder has no number {name!r}; it has: {', '.join(known)}")
        given[name] = _read(name, value)
    policy = LadderPolicy(**given)  # pyright: ignore[reportArgumentType] - read by name above
    _check(policy)
    return policy


def _read(name: str, value: JsonValue) -> object:
    if name == "ceilings":
        if not is_array(value) or not all(_is_number(one) for one in value):
            raise ValueError("the ladder's ceilings must be a list of numbers")
        return tuple(float(str(one)) for one in value)
    if name == "vouched_by":
        if not is_array(value) or not all(isinstance(one, str) for one in value):
            raise ValueError("the ladder's vouched_by must be a list of addresses")
        return tuple(str(one).lower() for one in value)
    if not _is_number(value):
        raise ValueError(f"the ladder's {name} must be a number")
    number = float(str(value))
    if isinstance(LadderPolicy.__dataclass_fields__[name].default, int):
        if not number.is_integer():
            raise ValueError(f"the ladder's {name} must be a whole number")
        return int(number)
    return number


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX


def _check(policy: LadderPolicy) -> None:
    ceilings = policy.ceilings
    if len(ceilings) != len(RUNGS):
        raise ValueError(f"the ladder has {len(RUNGS)} rungs and needs as many ceilings")
    if any(below > above for below, above in pairwise(ceilings)) or ceilings[-1] > 100:  # noqa: PLR2004
        raise ValueError("the ladder's ceilings must never fall from rung to rung, at most to 100")
    for name in ("steady_unannounced_share", "used_largest_share"):
        if getattr(policy, name) > 1:
            raise ValueError(f"the ladder's {name} must be from 0 to 1")
