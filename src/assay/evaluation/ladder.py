"""Determines the highest rung whose evidence is complete: the bound on an agent's grade. Pure.

Every rung is a list of demands. A demand is `met`, `missing`, or `unknown` if lack of our time,
budget or chain data prevented an answer. An unknown demand never earns a rung and never takes a
held one away. Source: docs/grades.md#the-ladder; ADR 0024.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject
from assay.evaluation.caller_demands import caller
from assay.evaluation.demands import Demand, Evidences, steady, used, vouched
from assay.evaluation.policy import RUNGS, LadderPolicy
from assay.evaluation.proofs import functional

__all__ = ["Demand", "LadderPlace", "place"]


@dataclass(frozen=True, slots=True)
class LadderPlace:
    """An agent's rung, and the reasons."""

    rung: int
    """0 to 4; its name is `policy.RUNGS[rung]`."""
    ceiling: float
    """Highest score on this rung."""
    is_unconfirmed: bool
    """Whether the rung was held before, and the current evidence about it is unknown."""
    demands: tuple[Demand, ...]
    """The demands of every rung, in order."""

    @property
    def name(self) -> str:
        """Return the rung's name."""
        return RUNGS[self.rung]

    @property
    def next_demands(self) -> tuple[Demand, ...]:
        """Return the missing demands of the next rung; empty on the highest."""
        return tuple(d for d in self.demands if d.rung == self.rung + 1 and d.state != "met")

    @property
    def faults(self) -> tuple[Demand, ...]:
        """Return demands that are unmet because of known faults of the agent."""
        return tuple(d for d in self.demands if d.is_fault)


HIGHEST: Final = len(RUNGS) - 1


def place(
    evidence: Mapping[str, JsonObject],
    unavailable: frozenset[str],
    policy: LadderPolicy,
    *,
    is_key_agent: bool,
) -> LadderPlace:
    """Return the rung that `evidence` (by signal) proves, whatever signals a caller selected.

    `unavailable` are the signals that could not be collected: they prove nothing, and take nothing
    away.
    """
    seen = Evidences(evidence, unavailable)
    first = caller(seen, policy) if is_key_agent else functional(seen, policy)
    demands = (*first, *steady(seen, policy), *used(seen, policy), *vouched(seen, policy))
    rung = 0
    while rung < HIGHEST and _is_complete(demands, rung + 1, seen.reached_rung):
        rung += 1
    unconfirmed = any(d.state == "unknown" for d in demands if d.rung <= rung)
    return LadderPlace(rung, policy.ceilings[rung], unconfirmed, demands)


def _is_complete(demands: Sequence[Demand], rung: int, reached: int) -> bool:
    states = {d.state for d in demands if d.rung == rung}
    return "missing" not in states and ("unknown" not in states or reached >= rung)
