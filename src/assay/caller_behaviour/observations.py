"""How callers behave at wrappers, and the record of an agent as a caller.

Counts how callers behave at wrappers (conventions.md#behavioural-evidence).

Counts are kept in memory and stored with the log: an index over the rows would cost more than the
whole call (measurements.md#writing-logs).

The record of an agent's behaviour as a caller: the scenarios, and calls through wrappers.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from assay.analytics.model import CallLogEntry
from assay.caller_behaviour.scenario_run import COUNTS_FOR, Run, ScenarioRuns, ScenarioRunStore
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger, address_bearer
from assay.common.json import JsonObject, JsonValue, is_object
from assay.common.numbers import MICRO
from assay.common.tasks import finish

EARLY_S = 1.0
"""A call to the same wrapper this soon after a 429 ignored it: none of our limits ends sooner."""

WRAPPERS_MAX = 16
"""Wrappers remembered per address whose limit it has just reached."""

WAITING_MAX = 100_000
"""Addresses counted between two flushes; while the store is down, others are not counted."""

REMEMBERED_MAX = 50_000
_LIMITED = 429
_ERRORS = frozenset({400, 401, 403, 404, 405, 409, 413, 422})
"""Statuses that a repeated request does not change."""


@dataclass(slots=True)
class DailyTally:
    """Counts of one address on one day. `error_run` is the longest run of equal errors."""

    calls: int = 0
    limited: int = 0
    early: int = 0
    error_run: int = 0

    def add(self, other: "DailyTally") -> None:
        """Add the other's counts."""
        self.calls += other.calls
        self.limited += other.limited
        self.early += other.early
        self.error_run = max(self.error_run, other.error_run)


@dataclass(slots=True)
class _Recent:
    """What is remembered of an address between two calls."""

    limited_at: dict[str, datetime] = field(default_factory=dict[str, datetime])
    error: tuple[str, str, int] | None = None
    run: int = 0
    day: str = ""
    """The last day its calls were counted on: each day is a row."""


class ObservationStore(Protocol):
    """Stores counts by address and day."""

    async def add(self, counts: Sequence[tuple[str, str, DailyTally]]) -> None:
        """Add to the counts of (address, day as `2026-11-21`)."""
        ...

    async def total(self, addresses: Sequence[str], since_day: str) -> DailyTally:
        """Return the sum over the addresses since a day."""
        ...


class ObservationLog:
    """Counts calls of addresses that proved themselves."""

    def __init__(self, store: ObservationStore, costs: CostLedger | None = None) -> None:
        self._store = store
        self._costs = costs
        self._recent: OrderedDict[str, _Recent] = OrderedDict()
        self._waiting: dict[tuple[str, str], DailyTally] = {}

    def note(self, call: CallLogEntry) -> None:
        """Count a call. No I/O.

        An address and day is a row charged to the caller's network; beyond its quota, unpaid calls
        begin no new row.
        """
        kind = call.kind
        address = kind.agent_address if kind.identity_proven else kind.payer
        if address is None:
            return
        recent = self._of(address)
        tally = DailyTally(calls=1)
        at = recent.limited_at.pop(kind.wrapper_id, None)
        tally.early = int(at is not None and (call.at - at).total_seconds() < EARLY_S)
        if call.status == _LIMITED:
            tally.limited = 1
            if len(recent.limited_at) >= WRAPPERS_MAX:
                recent.limited_at.clear()
            recent.limited_at[kind.wrapper_id] = call.at
        error = (kind.wrapper_id, kind.path, call.status) if call.status in _ERRORS else None
        recent.run = (
            recent.run + 1 if error is not None and error == recent.error else int(bool(error))
        )
        recent.error = error
        tally.error_run = recent.run
        key = (address, call.at.date().isoformat())
        if not self._has_row(recent, key[1], call):
            return
        if key in self._waiting or len(self._waiting) < WAITING_MAX:
            self._waiting.setdefault(key, DailyTally()).add(tally)

    async def flush(self) -> None:
        """Store the counts; on failure, keep counting."""
        waiting, self._waiting = self._waiting, {}
        if waiting:
            await finish(self._write(waiting))

    async def _write(self, waiting: dict[tuple[str, str], DailyTally]) -> None:
        try:
            await self._store.add([(a, day, tally) for (a, day), tally in waiting.items()])
        except BaseException:
            for key, tally in waiting.items():
                self._waiting.setdefault(key, DailyTally()).add(tally)
            raise

    def _has_row(self, recent: _Recent, day: str, call: CallLogEntry) -> bool:
        """Return whether the caller has paid for this day's row; a new row is charged."""
        if self._costs is None or recent.day == day:
            return True
        bearer = address_bearer(call.client)
        if not call.is_sale and not self._costs.has_left(Cost.ROWS, bearer):
            return False
        self._costs.charge(Cost.ROWS, 1, bearer)
        recent.day = day
        return True

    def _of(self, address: str) -> _Recent:
        recent = self._recent.get(address)
        if recent is None:
            recent = self._recent[address] = _Recent()
            if len(self._recent) > REMEMBERED_MAX:
                self._recent.popitem(last=False)
        return recent


WRAPPERS_FOR = timedelta(days=30)

RUNS_LOOKED_AT = 100
"""Finished runs examined to count days: more than any agent needs."""


class Purchases(Protocol):
    """Payments of agents through this service."""

    async def spent(self, addresses: Sequence[str]) -> int:
        """Return payments of the addresses to unrelated wrappers, in millionths of a dollar.

        In listed assets on main networks, less known refunds.
        """
        ...


class ConductRecord:
    """Reads an agent's record; implements `evaluation.ports.CallerBehaviourSource`."""

    def __init__(
        self,
        course: ScenarioRuns,
        runs: ScenarioRunStore,
        store: ObservationStore,
        clock: Clock,
        purchases: Purchases | None = None,
    ) -> None:
        self._course = course
        self._runs = runs
        self._store = store
        self._clock = clock
        self._purchases = purchases

    async def observed(self, addresses: Sequence[str]) -> JsonObject:
        """Return the newest run, days of passed ones, and counts, of 30 days each."""
        now = self._clock.now()
        since = (now - WRAPPERS_FOR).date().isoformat()
        course = await self._course.observed(addresses)
        tally = await self._store.total(addresses, since)
        seen: dict[str, JsonValue] = {}
        if course is not None:
            seen["course"] = course
            runs = await self._runs.finished(addresses, now - COUNTS_FOR, RUNS_LOOKED_AT)
            seen["passedDays"] = len(
                {run.begun_at.date() for run, what in runs if _passed(run, what)}
            )
        paid = await self._purchases.spent(addresses) if self._purchases is not None else 0
        if paid:
            seen["paidUsd"] = f"{paid // MICRO}.{paid % MICRO:06d}"
        if tally.calls:
            seen["wrappers"] = {
                "calls": tally.calls,
                "limited": tally.limited,
                "early": tally.early,
                "errorRun": tally.error_run,
            }
        return seen


def _passed(run: Run, seen: JsonObject) -> bool:
    """Return whether every step of a run was called, none failed, and some passed."""
    outcomes = [
        SCENARIOS[name].weigh(what).outcome
        for name in run.steps
        if name in SCENARIOS and is_object(what := seen.get(name))
    ]
    return len(outcomes) == len(run.steps) and "fail" not in outcomes and "pass" in outcomes
