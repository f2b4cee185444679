"""Combines visits inside the window into one verdict per check. Pure and deterministic.

Compares announced with unannounced visits to one agent, as rows of findings.

It compares fingerprints of deterministic facts, and critical checks, which have a right answer.
What a visit did not see (refusals, challenge pages, 403, 429, 5xx, time-outs) is left out.
Source: evidence.md#cloaking.

Combines visits to one check, one service, or all calls, with hysteresis.

Visits are read in order of time. Source: evidence.md#pooling-of-visits.

More evidence narrows a verdict, and no single visit turns it: a check has an outcome with
hysteresis. It falls when two of the last three scheduled visits failed, and rises only if it was
passed and the last three scheduled visits saw no failure. A visit timed by another party never
raises it; its failures of content count, one visit an hour; its failures of availability wait for
scheduled visits. Source: evidence.md#pooling-of-visits.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil, log
from typing import Final, Literal

from assay.common.json import JsonObject
from assay.evaluation.visits import SILENT_CHANGE_COUNTS, CheckOutcome, VisitRecord, compare
from assay.probing.cloaking import (
    CloakingSighting,
    Difference,
    differences,
)
from assay.probing.findings import SIGHTINGS_WITHIN_DAYS, confirmed
from assay.probing.unannounced import ANNOUNCED_MORE, ANNOUNCED_ONLY

CLOAKING: Final = "cloaking"
"""The finding's name among critical checks."""

FACTS: Final = frozenset({"tools", "schema", "price", "payee", "card"})
"""Facts of fingerprints that do not depend on the caller."""

FIX: Final = "Serve every caller the same tools, schemas, prices, payees and card."
_SURE, _WARNED = 0.9, 0.3


def compared(
    visits: Sequence[VisitRecord], critical_checks: frozenset[str] = frozenset()
) -> list[Difference]:
    """Return what always differs between both kinds of visit; `visits` in order of time."""
    names = critical_checks - ANNOUNCED_ONLY
    return differences(
        [one for order, visit in enumerate(visits) for one in _sightings(order, visit, names)]
    )


def row_of(found: Sequence[Difference]) -> JsonObject | None:
    """Return differences as one row of findings: critical if one is a finding, else a warning."""
    if not found:
        return None
    is_open = any(difference.is_finding for difference in found)
    shown = [d for d in found if d.is_finding == is_open]
    return {
        "check": CLOAKING,
        "severity": "critical" if is_open else "info",
        "confidence": _SURE if is_open else _WARNED,
        "sightings": max(d.pairs for d in shown),
        "open": is_open,
        "request": "announced and unannounced visits",
        "bytes": "; ".join(f"{d.check}: {d.pairs} pairs on {d.days} days" for d in shown)[:500],
        "fix": FIX,
    }


def _sightings(order: int, visit: VisitRecord, names: frozenset[str]) -> list[CloakingSighting]:
    is_announced = visit.label == "announced"
    source = visit.source or "home"
    day = visit.at.toordinal()
    found = [
        CloakingSighting(check, order, day, is_announced, value, source)
        for check, value in sorted(visit.fingerprints.items())
        if check.partition(" ")[0] in FACTS
    ]
    for check in sorted(names & visit.outcomes.keys()):
        seen = visit.outcomes[check]
        if seen != "blocked":
            value = "right" if seen == "passed" else "wrong"
            found.append(
                CloakingSighting(
                    check, order, day, is_announced, value, source, has_right_answer=True
                )
            )
    return found


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


TRIGGERED_EVERY: Final = timedelta(hours=1)
"""At most one triggered visit in this time adds evidence."""

CHANCE_LEFT, PASSES_MAX = 0.05, 10
"""A fault that occurs by chance is not repaired because the check passed a few times. The passes
that end a critical finding are as many as make chance this unlikely, at most `PASSES_MAX`."""


@dataclass(frozen=True, slots=True)
class History:
    """The combined result of the visits of the window."""

    visits: int = 0
    scheduled: int = 0
    days: int = 0
    """Days (UTC) with a scheduled visit."""
    span_days: int = 0
    """Whole days from the first scheduled visit to the last."""
    unannounced: int = 0
    """Scheduled visits that did not identify themselves."""
    critical_unannounced: bool = False
    """Whether every critical check that was made, and can be made unannounced, was made so."""
    silent_change: bool = False
    reached_rung: int = 0
    unconfirmed: bool = False
    """Whether a visit timed by others saw it unavailable, and no scheduled visit has checked
    yet."""
    pooled: Mapping[str, PooledCheck] = field(default_factory=dict[str, PooledCheck])
    functions: Mapping[str, str] = field(default_factory=dict[str, str])
    """State of function by declared endpoint."""
    open_critical: tuple[str, ...] = ()
    sighted: tuple[str, ...] = ()
    """Critical checks with one sighting that no scheduled visit has checked again."""

    @property
    def asks_for_a_look(self) -> bool:
        """Return whether scheduled visits should check soon what was seen."""
        return self.unconfirmed or self.silent_change or bool(self.sighted)

    def as_json(self) -> JsonObject:
        """Return the `history` member of the evidence."""
        return {
            "visits": self.visits,
            "scheduled": self.scheduled,
            "days": self.days,
            "spanDays": self.span_days,
            "unannounced": self.unannounced,
            "criticalUnannounced": self.critical_unannounced,
            "silentChange": self.silent_change,
            "heldRung": self.reached_rung,
            "unconfirmed": self.unconfirmed,
            "pooled": {
                name: {"passed": check.passed, "failed": check.failed, "outcome": check.outcome}
                for name, check in sorted(self.pooled.items())
            },
            "functions": dict(sorted(self.functions.items())),
            "openCritical": list(self.open_critical),
            "sighted": list(self.sighted),
        }


def pool(
    visits: Sequence[VisitRecord], now: datetime, critical_checks: frozenset[str] = frozenset()
) -> History:
    """Return the history of one agent; `visits` in order of time.

    Triggered visits within an hour of the last one that counted add only critical findings.
    `critical_checks` are the names of those that may fail critically.
    """
    pools = Pools()
    critical, turns, looks = _Critical(), TriggeredTurns(), FirstLooks()
    unconfirmed, counted = False, 0
    for visit in visits:
        is_scheduled = visit.timing == "scheduled"
        critical.see(visit)
        if is_scheduled:
            unconfirmed = False
        elif not turns.take(visit):
            continue
        else:
            unconfirmed = unconfirmed or _is_blocked(visit, pools.checks)
        counted += 1
        pools.see(visit, is_first=looks.take(visit))
    timed = [visit for visit in visits if visit.timing == "scheduled"]
    hidden = [visit for visit in timed if visit.label == "unannounced"]
    made = pools.checks.keys() & critical_checks - ANNOUNCED_ONLY
    return History(
        visits=counted,
        scheduled=len(timed),
        days=len({visit.at.date() for visit in timed}),
        span_days=(timed[-1].at - timed[0].at).days if timed else 0,
        unannounced=len(hidden),
        critical_unannounced=bool(hidden) and made <= {n for v in hidden for n in v.outcomes},
        silent_change=_has_silent_change(visits, now),
        reached_rung=0 if not visits or pools.has_ended else visits[-1].rung,
        unconfirmed=unconfirmed,
        pooled=pools.outcomes(),
        functions=pools.states(),
        open_critical=critical.open(),
        sighted=critical.sighted(),
    )


class TriggeredTurns:
    """Decides which triggered visits add evidence: one an hour, and one an hour of absence.

    The two are counted separately: an agent absent for a moment can be visited on its return.
    """

    def __init__(self, visits: Sequence[VisitRecord] = ()) -> None:
        self._last: dict[bool, datetime] = {}
        for visit in visits:
            if visit.timing == "triggered":
                self.take(visit)

    def take(self, visit: VisitRecord) -> bool:
        """Return whether a triggered visit adds evidence; if so, the next of its kind must wait."""
        is_absent = all(seen == "blocked" for seen in visit.outcomes.values())
        last = self._last.get(is_absent)
        if last is not None and visit.at - last < TRIGGERED_EVERY:
            return False
        self._last[is_absent] = visit.at
        return True


class FirstLooks:
    """Decides which visits may reveal something new; others only refute what is known.

    Visits timed by us may, and others until one has found the agent present, or changed.
    """

    def __init__(self, visits: Sequence[VisitRecord] = ()) -> None:
        self._known: JsonObject | None = None
        for visit in visits:
            self.take(visit)

    def take(self, visit: VisitRecord) -> bool:
        """Return whether the visit may; then the agent is known."""
        known, self._known = self._known, visit.facts if is_there(visit) else self._known
        if known is None or visit.timing == "scheduled":
            return True
        drift = compare(known, visit.facts)
        return bool(drift.changed or drift.material or drift.is_declared)


class _Critical:
    """Critical checks that failed, until the latest scheduled visits passed them.

    A check fails if a single visit saw the failure twice, or by sightings of two visits within 30
    days. If the agent is visited unannounced, and the check can be made so, one of the passes must
    be unannounced; what such a visit saw is closed only by such visits, because others may be shown
    a different behaviour.
    """

    def __init__(self) -> None:
        self._passes: dict[str, list[bool]] = {}
        """By open check: for every later scheduled pass, whether it was unannounced."""
        self._hidden: set[str] = set()
        """Checks that failed in a visit that did not identify itself."""
        self._visits_unannounced = False
        self._sightings: dict[str, list[tuple[datetime, JsonObject]]] = {}
        self._waiting: set[str] = set()
        self._seen: dict[str, list[int]] = {}
        """By check that failed or was sighted: visits that saw it fail, and passes before it was
        open."""

    def see(self, visit: VisitRecord) -> None:
        self._visits_unannounced = self._visits_unannounced or visit.label == "unannounced"
        opened = {*visit.critical, *self._confirmed(visit)}
        for name in {*opened, *(str(row["check"]) for row in visit.findings)}:
            self._seen.setdefault(name, [0, 0])[0] += 1
        for name in opened:
            self._passes[name] = []
            self._waiting.discard(name)
            if _is_hidden(visit, name):
                self._hidden.add(name)
        if visit.timing != "scheduled":
            return
        for name, seen in visit.outcomes.items():
            if seen == "passed":
                self._pass(name, visit)

    def open(self) -> tuple[str, ...]:
        return tuple(sorted(self._passes))

    def sighted(self) -> tuple[str, ...]:
        return tuple(sorted(self._waiting))

    def _confirmed(self, visit: VisitRecord) -> set[str]:
        """Return checks with enough sightings, including those of this visit."""
        since = visit.at - timedelta(days=SIGHTINGS_WITHIN_DAYS)
        found: set[str] = set()
        for row in visit.findings:
            name = str(row["check"])
            known = [one for one in self._sightings.get(name, ()) if one[0] >= since]
            self._sightings[name] = [*known, (visit.at, row)]
            self._waiting.add(name)
            if _is_hidden(visit, name):
                self._hidden.add(name)
            found |= confirmed([[one[1] for one in self._sightings[name]]])
        return found

    def _pass(self, name: str, visit: VisitRecord) -> None:
        if name in self._hidden and not _is_hidden(visit, name):
            return
        self._waiting.discard(name)
        if name in self._seen and name not in self._passes:
            self._seen[name][1] += 1
        if name in self._passes:
            self._passes[name].append(visit.label == "unannounced")
            if not self._is_closed(name):
                return
            del self._passes[name]
            self._sightings.pop(name, None)
            self._seen.pop(name, None)
        self._hidden.discard(name)

    def _is_closed(self, name: str) -> bool:
        passes = self._passes[name]
        is_asked = self._visits_unannounced and name not in ANNOUNCED_ONLY
        is_asked_all = name not in ANNOUNCED_MORE or name in self._hidden or not all(passes)
        return len(passes) >= self._needed(name) and (any(passes) or not is_asked) and is_asked_all

    def _needed(self, name: str) -> int:
        """Return how many passes an agent that still fails as often reaches in one case of 20."""
        failed, passed = self._seen.get(name, (1, 0))
        if not passed:
            return RISES_AT
        needed = ceil(log(CHANCE_LEFT) / log(passed / (failed + passed)))
        return max(RISES_AT, min(PASSES_MAX, needed))


def _is_hidden(visit: VisitRecord, name: str) -> bool:
    """Return whether a visit made the check that looks like a customer's.

    A comparison of visits of both kinds counts as neither.
    """
    return visit.label == "unannounced" and name not in {*ANNOUNCED_ONLY, CLOAKING}


def _is_blocked(visit: VisitRecord, checks: Mapping[str, CheckPool]) -> bool:
    """Return whether a triggered visit was kept from a check that counts as passed."""
    return any(
        seen == "blocked" and name in checks and checks[name].outcome == "pass"
        for name, seen in visit.outcomes.items()
    )


def _has_silent_change(visits: Sequence[VisitRecord], now: datetime) -> bool:
    """Return whether a silent change is at most a day old, without a completed visit since."""
    newest = next(
        (v for v in reversed(visits) if v.silent_changes or v.outcomes.get(FINISHED) == "passed"),
        None,
    )
    if newest is None or not newest.silent_changes:
        return False
    return now - newest.at < SILENT_CHANGE_COUNTS
