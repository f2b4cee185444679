"""Sums of calls and payments, so that no question has to read the calls themselves.

Every roll-up is a sum over events: a call that was logged, or a payment that settled or failed.
Pure: the stores write what is tallied here in the transaction of the event itself.
`analytics/store_rollups.py` computes the same in SQL over everything, to prove it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Final, TypeAlias

from assay.analytics.model import CallKind, CallLogEntry
from assay.common.clock import DAY_US
from assay.db.schema.analytics import (
    AGENT_DAYS,
    AGENTS,
    DAYS,
    ENDPOINT_DAYS,
    ENDPOINTS,
    MEASURES,
    ROLLUPS,
    TOTALS,
    Rollup,
)

ERROR_FROM: Final = 400
NO_ERRORS: Final = frozenset({401, 402})
"""Refusals that only ask an agent to identify itself or to pay: the beginning, not a failure."""


_CALLS, _ERRORS, _LATENCY = map(MEASURES.index, ("calls", "errors", "latency_us"))
_ASKED, _DENIED, _LIMITED = map(MEASURES.index, ("asked", "denied", "limited"))

_Alike: TypeAlias = tuple[int, int, int, str]
"""The very object of a kind, a day, status and outcome."""

_Cell: TypeAlias = tuple[str, str, str | None, int]
"""Operator, wrapper, agent, day."""

Key: TypeAlias = tuple[str | int, ...]
AgentKey: TypeAlias = tuple[str, str]
"""Operator id and agent id."""


@dataclass(slots=True)
class AgentSeen:
    """When an agent was seen, and its newest grade. Times in microseconds since 1970."""

    first_us: int
    last_us: int
    tier: str | None = None
    tier_us: int | None = None


@dataclass(slots=True)
class RollupTally:
    """Sums to add to the tables: by roll-up, key and measure."""

    sums: dict[str, dict[Key, list[int]]] = field(
        default_factory=lambda: {rollup.table: {} for rollup in ROLLUPS}
    )
    seen: dict[AgentKey, AgentSeen] = field(default_factory=dict[AgentKey, AgentSeen])
    chains: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    """Operator, agent and chain."""
    would_deny: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """Calls that trust would have refused, by operator and wrapper."""

    def add(self, rollup: Rollup, key: Key, counted: Sequence[int]) -> None:
        """Add as many measures as the roll-up has."""
        sums = self.sums[rollup.table]
        known = sums.get(key)
        if known is None:
            sums[key] = list(counted[: len(rollup.measures)])
        else:
            known[:] = map(add, known, counted)

    def see(self, who: AgentKey, at_us: int, tier: str | None) -> None:
        """Record that an agent was seen; of two grades, keep the later one."""
        seen = self.seen.get(who)
        if seen is None:
            self.seen[who] = AgentSeen(at_us, at_us, tier, at_us if tier else None)
            return
        seen.first_us = min(seen.first_us, at_us)
        seen.last_us = max(seen.last_us, at_us)
        if tier is not None and (seen.tier_us is None or at_us >= seen.tier_us):
            seen.tier, seen.tier_us = tier, at_us


def tally_calls(batch: Iterable[tuple[int, CallLogEntry]]) -> RollupTally:
    """Add calls, each with its time in microseconds since 1970.

    It groups them first by what is alike in everything that counts, and then by the other keys.
    Calls of one batch are much alike, and this is work of the loop that answers requests.
    """
    tally = RollupTally()
    kinds: dict[int, CallKind] = {}
    alike: dict[_Alike, list[int]] = {}
    for number, (at_us, call) in enumerate(batch):
        key = (id(call.kind), at_us // DAY_US, call.status, call.outcome)
        sums = alike.get(key)
        if sums is None:
            kinds[key[0]] = call.kind
            alike[key] = [1, call.latency_us, at_us, at_us, number]
        else:
            sums[0] += 1
            sums[1] += call.latency_us
            if at_us >= sums[3]:
                sums[3], sums[4] = at_us, number
            elif at_us < sums[2]:
                sums[2] = at_us
    cells: dict[_Cell, list[int]] = {}
    # Of two grades the later one counts, so what ended first comes first.
    in_order = sorted(alike.items(), key=lambda of: of[1][3:])
    for key, (calls, latency_us, first_us, last_us, _) in in_order:
        kind, day = kinds[key[0]], key[1]
        counted = cells.setdefault(
            (kind.operator_id, kind.wrapper_id, kind.agent, day), [0] * len(MEASURES)
        )
        _count(key, calls, latency_us, counted)
        if kind.would_deny is not None:
            where = kind.operator_id, kind.wrapper_id
            tally.would_deny[where] = tally.would_deny.get(where, 0) + calls
        _see(tally, kind, first_us, last_us)
    for cell, counted in cells.items():
        _add_everywhere(tally, cell, counted)
    return tally


def _count(key: _Alike, calls: int, latency_us: int, counted: list[int]) -> None:
    """Add similar calls to their cell."""
    _, _, status, outcome = key
    counted[_CALLS] += calls
    counted[_LATENCY] += latency_us
    if status >= ERROR_FROM and status not in NO_ERRORS:
        counted[_ERRORS] += calls
    if status == 402:  # noqa: PLR2004 - interface.md#wrapper-errors
        counted[_ASKED] += calls
    if outcome == "trust_denied":
        counted[_DENIED] += calls
    if outcome == "rate_limit_exceeded":
        counted[_LIMITED] += calls


def _see(tally: RollupTally, kind: CallKind, first_us: int, last_us: int) -> None:
    """Record the agent of a kind, if it has one, from the first time to the last."""
    agent = kind.agent
    if agent is None:
        return
    who = (kind.operator_id, agent)
    tally.see(who, first_us, kind.tier)
    tally.see(who, last_us, kind.tier)
    if kind.chain is not None:
        tally.chains.add((*who, kind.chain))


def tally_settled(
    operator_id: str,
    wrapper_id: str,
    agent_id: str,
    at_us: int,
    amount: int,
    *,
    failed_us: int | None = None,
) -> RollupTally:
    """Add a payment whose money has arrived; `amount` in micro-dollars.

    `failed_us` is when it was counted as failed, if it was.
    """
    tally = RollupTally()
    _count_settled(tally, (operator_id, wrapper_id, agent_id, at_us // DAY_US), amount, 1)
    tally.see((operator_id, agent_id), at_us, None)
    if failed_us is not None:
        _count_failed(tally, operator_id, failed_us, -1)
    return tally


def tally_reversed(
    operator_id: str, wrapper_id: str, agent_id: str, settled_us: int, amount: int
) -> RollupTally:
    """Subtract a payment whose money has gone, on the day on which it had settled."""
    tally = RollupTally()
    _count_settled(tally, (operator_id, wrapper_id, agent_id, settled_us // DAY_US), -amount, -1)
    tally.see((operator_id, agent_id), settled_us, None)
    return tally


def tally_failed(operator_id: str, at_us: int) -> RollupTally:
    """Add a payment that failed for good."""
    tally = RollupTally()
    _count_failed(tally, operator_id, at_us, 1)
    return tally


def _count_settled(tally: RollupTally, cell: _Cell, revenue: int, payments: int) -> None:
    _add_everywhere(tally, cell, (0, 0, 0, revenue, 0, payments, 0, 0, payments, 0, 0))


def _count_failed(tally: RollupTally, operator_id: str, at_us: int, payments: int) -> None:
    counted = (0, 0, 0, 0, 0, payments, 0, 0, 0, payments, 0)
    tally.add(TOTALS, (operator_id,), counted)
    tally.add(DAYS, (operator_id, at_us // DAY_US), counted)


def _add_everywhere(tally: RollupTally, cell: _Cell, counted: Sequence[int]) -> None:
    operator_id, wrapper_id, agent, day = cell
    tally.add(TOTALS, (operator_id,), counted)
    tally.add(DAYS, (operator_id, day), counted)
    tally.add(ENDPOINTS, (operator_id, wrapper_id), counted)
    tally.add(ENDPOINT_DAYS, (operator_id, wrapper_id, day), counted)
    if agent is not None:
        tally.add(AGENTS, (operator_id, agent), counted)
        tally.add(AGENT_DAYS, (operator_id, agent, wrapper_id, day), counted)
