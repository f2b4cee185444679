"""Combines visits to one check, one service, or all calls, with hysteresis.

Visits are read in order of time. Source: evidence.md#pooling-of-visits.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from assay.evaluation.visits import CheckOutcome, VisitRecord

PooledOutcome = Literal["pass", "fail"]

FALLS_AT, RISES_AT = 2, 3
"""Number of failures among the last `RISES_AT` scheduled observations that turn a passed check. A
failed check turns when it was passed, and not failed in the last `RISES_AT` scheduled visits."""

TRIGGERED_LOOKED_AT, TRIGGERED_FALLS_AT = 8, 5
"""Number of failures of content among the last triggered observations that turn a passed check. A
trigger can be repeated without limit: a check that fails one call in fifty must not fall because it
is triggered often. At 6 % of visits this happens in four of 100,000."""


FINISHED: Final = "finished"
"""The outcome that records whether all requests of a visit were answered. It is `blocked` if the
last try of a visit was not finished; if we timed the visit, that ends a rung."""

ANSWERS: Final = "calls_answered"
"""The check of how many calls were left without an answer."""

UNANSWERED_MIN, UNANSWERED_FALLS, UNANSWERED_RISES = 3, 0.15, 0.05
"""Thresholds for the calls of the last `RISES_AT` scheduled visits: at least this many, and this
part of them, without an answer turn a passed check; at most the lower part turns a failed one. A
decision: an agent that leaves one call in fifty falls in one of 1,000 such rows of 30 calls, one in
three in 98 of 100."""

_STATES: Final[Mapping[str, CheckOutcome]] = {
    "functional": "passed",
    "not_functional": "failed",
    "refuses": "blocked",
    "unreachable": "blocked",
    "unfinished": "blocked",
}
"""The outcome that a service's state in one visit means; other states say nothing of its
function."""


@dataclass(slots=True)
class CheckPool:
    """One check while visits are read in order."""

    passed: int = 0
    failed: int = 0
    outcome: PooledOutcome | None = None
    is_provisional: bool = False
    """Whether it rests on a failure of availability at a time chosen by another party."""
    scheduled: deque[bool] = field(default_factory=lambda: deque(maxlen=RISES_AT))
    clean: int = 0
    """Scheduled visits since the last that saw it fail."""
    triggered: deque[bool] = field(default_factory=lambda: deque(maxlen=TRIGGERED_LOOKED_AT))

    def observe(self, seen: CheckOutcome, *, scheduled: bool, is_first: bool) -> None:
        """Process a visit that made it.

        `is_first`: it may reveal something new, not only refute.
        """
        has_passed = seen == "passed"
        if not scheduled and seen == "blocked" and self.outcome is not None:
            return
        self.passed += has_passed
        self.failed += not has_passed
        (self.scheduled if scheduled else self.triggered).append(has_passed)
        if self.outcome is None and is_first:
            self.outcome = "pass" if has_passed else "fail"
            self.is_provisional = not scheduled and seen == "blocked"
        elif scheduled:
            self._turn_scheduled(has_passed=has_passed)
        elif self.triggered.count(False) >= TRIGGERED_FALLS_AT:
            self.outcome = "fail"

    def fall(self) -> None:
        """Count it as failed from now on; it rises like every check."""
        self.outcome, self.is_provisional = "fail", False
        self.scheduled.clear()

    def skip(self) -> None:
        """Process a scheduled visit that found the agent but skipped the check.

        No visit makes all.
        """
        self.clean += 1
        self._rise()

    def _turn_scheduled(self, *, has_passed: bool) -> None:
        self.clean = self.clean + 1 if has_passed else 0
        if self.is_provisional and has_passed:
            self.outcome = "pass"
        elif self.scheduled.count(False) >= FALLS_AT:
            self.outcome = "fail"
        self._rise()
        self.is_provisional = False

    def _rise(self) -> None:
        """Turn it back if it was passed, and not failed in enough visits."""
        if self.clean >= RISES_AT and self.scheduled and self.scheduled[-1]:
            self.outcome = "pass"
            self.triggered.clear()


@dataclass(slots=True)
class AnswerPool:
    """The share of answered calls, while visits are read in order.

    Only visits timed by us count, except the very first.
    """

    seen: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=RISES_AT))
    outcome: PooledOutcome | None = None
    has_scheduled: bool = False

    def observe(self, calls: tuple[int, int], *, scheduled: bool, is_first: bool) -> None:
        """Process the calls of a visit: made, and failed."""
        if not calls[0] or not is_first or (self.outcome is not None and not scheduled):
            return
        if scheduled and not self.has_scheduled:
            self.has_scheduled, self.outcome = True, None
            self.seen.clear()
        self.seen.append(calls)
        made, failed = self.sums
        if failed >= UNANSWERED_MIN and failed >= UNANSWERED_FALLS * made:
            self.outcome = "fail"
        elif self.outcome is None or failed <= UNANSWERED_RISES * made:
            self.outcome = "pass"

    @property
    def sums(self) -> tuple[int, int]:
        """Return calls made, and calls failed."""
        return sum(made for made, _ in self.seen), sum(failed for _, failed in self.seen)


@dataclass(slots=True)
class ServicePool:
    """The function of one service, while visits are read in order."""

    check: CheckPool = field(default_factory=CheckPool)
    fault: str = ""
    """Its newest non-functional state; once that is established, from a visit timed by us."""

    def observe(self, state: str, *, scheduled: bool, is_first: bool) -> None:
        """Process a visit that found it in this state."""
        seen = _STATES.get(state)
        if seen is None:
            self.check = CheckPool()
            return
        stands = self.check.outcome == "fail" and not scheduled
        self.check.observe(seen, scheduled=scheduled, is_first=is_first)
        if seen != "passed" and not stands:
            self.fault = state

    @property
    def state(self) -> str | None:
        """Return its state by all visits together; None if they say nothing."""
        if self.check.outcome is None:
            return None
        return "functional" if self.check.outcome == "pass" else self.fault


@dataclass(frozen=True, slots=True)
class PooledCheck:
    """How often a check passed and failed in the window, and its outcome."""

    passed: int
    failed: int
    outcome: PooledOutcome


def is_there(visit: VisitRecord) -> bool:
    """Return whether the visit found the agent: some check of it was made."""
    return any(seen != "blocked" for name, seen in visit.outcomes.items() if name != FINISHED)


@dataclass(slots=True)
class Pools:
    """All pooled results of one agent, while its visits are read in order."""

    checks: dict[str, CheckPool] = field(default_factory=dict[str, CheckPool])
    services: dict[str, ServicePool] = field(default_factory=dict[str, ServicePool])
    answers: AnswerPool = field(default_factory=AnswerPool)

    def see(self, visit: VisitRecord, *, is_first: bool) -> None:
        """Process the next visit. `is_first`: it may reveal something new, not only refute."""
        scheduled = visit.timing == "scheduled"
        for name, seen in visit.outcomes.items():
            check = self.checks.setdefault(name, CheckPool())
            check.observe(seen, scheduled=scheduled, is_first=is_first)
        for service, state in visit.states.items():
            known = self.services.setdefault(service, ServicePool())
            known.observe(state, scheduled=scheduled, is_first=is_first)
        self.answers.observe(visit.calls, scheduled=scheduled, is_first=is_first)
        if scheduled:
            self._settle(visit)

    def _settle(self, visit: VisitRecord) -> None:
        if visit.outcomes.get(FINISHED) == "blocked":
            self.checks[FINISHED].fall()
        if is_there(visit):
            for name in self.checks.keys() - visit.outcomes.keys():
                self.checks[name].skip()

    @property
    def has_ended(self) -> bool:
        """Return whether unfinished visits ended the rung."""
        return FINISHED in self.checks and self.checks[FINISHED].outcome == "fail"

    def outcomes(self) -> dict[str, PooledCheck]:
        """Return the combined result of the visits, by check."""
        found = {
            name: PooledCheck(check.passed, check.failed, check.outcome)
            for name, check in self.checks.items()
            if check.outcome is not None
        }
        if self.answers.outcome is not None:
            made, failed = self.answers.sums
            found[ANSWERS] = PooledCheck(made - failed, failed, self.answers.outcome)
        return found

    def states(self) -> dict[str, str]:
        """Return the combined state of function, by service."""
        return {name: one.state for name, one in self.services.items() if one.state is not None}
