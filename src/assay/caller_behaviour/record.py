"""The record of an agent's behaviour as a caller: the scenarios, and calls through wrappers."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from assay.caller_behaviour.observations import ObservationStore
from assay.caller_behaviour.scenario_run import COUNTS_FOR, Run, ScenarioRuns, ScenarioRunStore
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.clock import Clock
from assay.common.json import JsonObject, JsonValue, is_object
from assay.common.money import MICRO

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
    """Reads an agent's record; implements `evaluation.signal_sources.CallerBehaviourSource`."""

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
