"""Combines visits inside the window into one verdict per check. Pure and deterministic.

More evidence narrows a verdict, and no single visit turns it: a check has an outcome with
hysteresis. It falls when two of the last three scheduled visits failed, and rises only if it was
passed and the last three scheduled visits saw no failure. A visit timed by another party never
raises it; its failures of content count, one visit an hour; its failures of availability wait for
scheduled visits. Source: evidence.md#pooling-of-visits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil, log
from typing import Final

from assay.common.json import JsonObject
from assay.evaluation.comparison import CLOAKING
from assay.evaluation.drift import compare
from assay.evaluation.pooling import (
    FINISHED,
    RISES_AT,
    CheckPool,
    PooledCheck,
    Pools,
    is_there,
)
from assay.evaluation.visits import SILENT_CHANGE_COUNTS, VisitRecord
from assay.probing.findings import SIGHTINGS_WITHIN_DAYS, confirmed
from assay.probing.unannounced import ANNOUNCED_MORE, ANNOUNCED_ONLY

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
