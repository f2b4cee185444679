"""What all visits say of one check, one service, or of all calls: outcomes with hysteresis.

Visits are read in the order of their times. Source: evidence.md#pooling-of-visits.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from assay.evaluation.visits import CheckOutcome, VisitRecord

PooledOutcome = Literal["pass", "fail"]

FALLS_AT, RISES_AT = 2, 3
"""So many failures among the last `RISES_AT` scheduled observations turn a passed check. A failed
one turns when it was passed, and not failed in the last `RISES_AT` scheduled visits."""

TRIGGERED_LOOKED_AT, TRIGGERED_FALLS_AT = 8, 5
"""Of the last triggered observations, so many failures of content turn a passed check. A trigger
can be repeated for as long as anybody likes: a check that fails one call in fifty must not fall by
being asked often. At 6 % of visits this happens in four of 100,000."""


FINISHED: Final = "finished"
"""Names what is kept of visits among their outcomes: whether all that was asked was answered. It
is `blocked` where the last try of a visit was not; if we timed the visit, that ends a rung."""

ANSWERS: Final = "calls_answered"
"""Names the check of how many calls were left without an answer."""

UNANSWERED_MIN, UNANSWERED_FALLS, UNANSWERED_RISES = 3, 0.15, 0.05
"""Of the calls of the last `RISES_AT` scheduled visits: so many, and this part, without an answer
turn a passed check; no more than the lower part turns a failed one. A decision: an agent that
leaves one call in fifty falls in one of 1,000 such rows of 30 calls, one in three in 98 of 100."""

_STATES: Final[Mapping[str, CheckOutcome]] = {
    "functional": "passed",
    "not_functional": "failed",
    "refuses": "blocked",
    "unreachable": "blocked",
    "unfinished": "blocked",
}
"""What a service's state in one visit says of it; other states say nothing of its function."""


@dataclass(slots=True)
class CheckPool:
    """One check while visits are read in order."""

    passed: int = 0
    failed: int = 0
    outcome: PooledOutcome | None = None
    is_provisional: bool = False
    """It rests on a failure of availability at a time that somebody else chose."""
    scheduled: deque[bool] = field(default_factory=lambda: deque(maxlen=RISES_AT))
    clean: int = 0
    """Scheduled visits since the last that saw it fail."""
    triggered: deque[bool] = field(default_factory=lambda: deque(maxlen=TRIGGERED_LOOKED_AT))

    def observe(self, seen: CheckOutcome, *, scheduled: bool, is_first: bool) -> None:
        """One visit made it. `is_first`: it may show what was not known, and not only refute."""
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
        """It counts as failed from now on, and rises as every check does."""
        self.outcome, self.is_provisional = "fail", False
        self.scheduled.clear()

    def skip(self) -> None:
        """A scheduled visit found the agent there, and did not make it: none makes all."""
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
        """Once it was passed, and not failed in so many visits."""
        if self.clean >= RISES_AT and self.scheduled and self.scheduled[-1]:
            self.outcome = "pass"
            self.triggered.clear()


@dataclass(slots=True)
class AnswerPool:
    """How many calls were answered, while visits are read in order.

    Only visits that we time count, but for the very first.
    """

    seen: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=RISES_AT))
    outcome: PooledOutcome | None = None
    has_scheduled: bool = False

    def observe(self, calls: tuple[int, int], *, scheduled: bool, is_first: bool) -> None:
        """One visit made so many, and so many of them failed."""
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
        """Calls made, and those that failed."""
        return sum(made for made, _ in self.seen), sum(failed for _, failed in self.seen)


@dataclass(slots=True)
class ServicePool:
    """The function of one service, while visits are read in order."""

    check: CheckPool = field(default_factory=CheckPool)
    fault: str = ""
    """Its newest state that was not functional; once it stands, by a visit that we timed."""

    def observe(self, state: str, *, scheduled: bool, is_first: bool) -> None:
        """One visit found it in this state."""
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
        """By all visits together; None where they say nothing."""
        if self.check.outcome is None:
            return None
        return "functional" if self.check.outcome == "pass" else self.fault


@dataclass(frozen=True, slots=True)
class PooledCheck:
    """How often a check passed and failed in the window, and what it counts as."""

    passed: int
    failed: int
    outcome: PooledOutcome


def is_there(visit: VisitRecord) -> bool:
    """Whether the visit found the agent there: some check of it was made."""
    return any(seen != "blocked" for name, seen in visit.outcomes.items() if name != FINISHED)


@dataclass(slots=True)
class Pools:
    """Everything that is pooled of one agent, while its visits are read in order."""

    checks: dict[str, CheckPool] = field(default_factory=dict[str, CheckPool])
    services: dict[str, ServicePool] = field(default_factory=dict[str, ServicePool])
    answers: AnswerPool = field(default_factory=AnswerPool)

    def see(self, visit: VisitRecord, *, is_first: bool) -> None:
        """The next visit. `is_first`: it may show what was not known, and not only refute."""
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
        """Whether visits that could not be finished ended the rung."""
        return FINISHED in self.checks and self.checks[FINISHED].outcome == "fail"

    def outcomes(self) -> dict[str, PooledCheck]:
        """What the visits say together, by check."""
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
        """The same of function, by service."""
        return {name: one.state for name, one in self.services.items() if one.state is not None}
