"""What is counted of calls and payments, so that no question has to read the calls themselves.

Every roll-up is a sum over events, an event being a call that was logged, a payment that settled or
one that failed. Pure: the stores write what is tallied here in the transaction of the event itself;
`infra/sql/derivations.py` says the same once more in SQL, over everything, to prove it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from assay.calls.model import Call

DAY_US: Final = 86_400_000_000
"""A UTC day. Days are numbered from 1970-01-01."""

ERROR_FROM: Final = 400
NO_ERRORS: Final = frozenset({401, 402})
"""How an agent learns that it has to say who it is, and to pay: the beginning, not a failure."""

MEASURES: Final = (
    *("calls", "errors", "latency_us", "revenue"),
    *("asked", "paid", "denied", "limited", "settled", "failed", "agents"),
)
"""What is counted. `revenue` is settled money in micro-dollars; `asked` are 402 answers, `paid`
calls with a payment that was held, `denied` and `limited` refusals by trust and by rate limit,
`settled` and `failed` payments, `agents` those seen for the first time."""


@dataclass(frozen=True, slots=True)
class Rollup:
    """A table of sums: what it is keyed by and which measures it has."""

    table: str
    key: tuple[str, ...]
    measures: tuple[str, ...]


_PLAIN: Final = MEASURES[:4]
_FUNNEL: Final = MEASURES[:10]

TOTALS: Final = Rollup("call_totals", ("operator_id",), MEASURES)
DAYS: Final = Rollup("call_days", ("operator_id", "day"), _FUNNEL)
ENDPOINTS: Final = Rollup("endpoint_totals", ("operator_id", "wrapper_id"), _PLAIN)
ENDPOINT_DAYS: Final = Rollup("endpoint_days", ("operator_id", "wrapper_id", "day"), _PLAIN)
AGENTS: Final = Rollup("agent_totals", ("operator_id", "agent_id"), _PLAIN)
AGENT_DAYS: Final = Rollup("agent_days", ("operator_id", "agent_id", "wrapper_id", "day"), _PLAIN)

ROLLUPS: Final = (TOTALS, DAYS, ENDPOINTS, ENDPOINT_DAYS, AGENTS, AGENT_DAYS)
"""In the order in which they are written: two writers never wait for each other crosswise."""

Key: TypeAlias = tuple[str | int, ...]
AgentKey: TypeAlias = tuple[str, str]
"""Operator id and agent id."""


@dataclass(slots=True)
class Seen:
    """When an agent was seen, and the newest grade of it. Times in microseconds since 1970."""

    first_us: int
    last_us: int
    tier: str | None = None
    tier_us: int | None = None


@dataclass(slots=True)
class Tally:
    """Sums to be added to the tables: per roll-up, key and measure."""

    sums: dict[str, dict[Key, list[int]]] = field(
        default_factory=lambda: {rollup.table: {} for rollup in ROLLUPS}
    )
    seen: dict[AgentKey, Seen] = field(default_factory=dict[AgentKey, Seen])
    chains: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    """Operator, agent and chain."""

    def add(self, rollup: Rollup, key: Key, counted: Sequence[int]) -> None:
        """Add as many measures as the roll-up has."""
        sums = self.sums[rollup.table]
        known = sums.get(key)
        if known is None:
            sums[key] = list(counted[: len(rollup.measures)])
        else:
            for index in range(len(known)):
                known[index] += counted[index]

    def see(self, who: AgentKey, at_us: int, tier: str | None) -> None:
        """Note that an agent was there; of two grades the later one holds."""
        seen = self.seen.get(who)
        if seen is None:
            self.seen[who] = Seen(at_us, at_us, tier, at_us if tier else None)
            return
        seen.first_us = min(seen.first_us, at_us)
        seen.last_us = max(seen.last_us, at_us)
        if tier is not None and (seen.tier_us is None or at_us >= seen.tier_us):
            seen.tier, seen.tier_us = tier, at_us


def tally_calls(batch: Iterable[tuple[int, Call]]) -> Tally:
    """What calls add; each with its time in microseconds since 1970."""
    tally = Tally()
    alike: dict[tuple[str, str, str | None, int], list[int]] = {}
    for at_us, call in batch:
        agent = call.agent
        key = call.operator_id, call.wrapper_id, agent, at_us // DAY_US
        sums = alike.get(key)
        if sums is None:
            sums = alike[key] = [0] * len(MEASURES)
        _count(sums, call)
        if agent is not None:
            tally.see((call.operator_id, agent), at_us, call.tier)
            if call.chain is not None:
                tally.chains.add((call.operator_id, agent, call.chain))
    # Calls of a batch are much alike: six tables for each kind of them, not for each of them.
    for (operator_id, wrapper_id, agent, day), sums in alike.items():
        _add_everywhere(tally, operator_id, wrapper_id, agent, day * DAY_US, sums)
    return tally


def _count(sums: list[int], call: Call) -> None:
    """Add one call, in the order of `MEASURES`."""
    status, outcome = call.status, call.outcome
    sums[0] += 1
    sums[2] += call.latency_us
    if status >= ERROR_FROM:
        sums[1] += status not in NO_ERRORS
        sums[4] += status == 402  # noqa: PLR2004 - spec 7.3
    if call.payment_id is not None:
        sums[5] += outcome != "replayed"
    if outcome != "forwarded":
        sums[6] += outcome == "trust_denied"
        sums[7] += outcome == "rate_limit_exceeded"


def tally_settled(
    operator_id: str, wrapper_id: str, agent_id: str, at_us: int, amount: int
) -> Tally:
    """What a payment adds whose money has arrived; `amount` in micro-dollars."""
    tally = Tally()
    counted = (0, 0, 0, amount, 0, 0, 0, 0, 1, 0, 0)
    _add_everywhere(tally, operator_id, wrapper_id, agent_id, at_us, counted)
    tally.see((operator_id, agent_id), at_us, None)
    return tally


def tally_failed(operator_id: str, at_us: int) -> Tally:
    """What a payment adds that failed for good."""
    tally = Tally()
    counted = (0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0)
    tally.add(TOTALS, (operator_id,), counted)
    tally.add(DAYS, (operator_id, at_us // DAY_US), counted)
    return tally


def _add_everywhere(
    tally: Tally,
    operator_id: str,
    wrapper_id: str,
    agent: str | None,
    at_us: int,
    counted: Sequence[int],
) -> None:
    day = at_us // DAY_US
    tally.add(TOTALS, (operator_id,), counted)
    tally.add(DAYS, (operator_id, day), counted)
    tally.add(ENDPOINTS, (operator_id, wrapper_id), counted)
    tally.add(ENDPOINT_DAYS, (operator_id, wrapper_id, day), counted)
    if agent is not None:
        tally.add(AGENTS, (operator_id, agent), counted)
        tally.add(AGENT_DAYS, (operator_id, agent, wrapper_id, day), counted)
