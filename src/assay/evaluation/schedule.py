"""When an agent is visited next, and who comes first. Pure but for the `Chance` it is given.

Ranks: 1 for agents whose proven owner enrolled them, 2 for those that operators asked for, 3 for
the rest, which are visited as capacity allows. Where control is proven, robots.txt is read by
announced requests at a random time of the day before each visit: so the visit may go unannounced,
and the reading does not say whether it will. Source: evidence.md#announced-and-unannounced-visits,
#scheduled-visits; ADR 0025.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol, TypeAlias

from assay.evaluation.visits import EvaluationRequest
from assay.registries.subject import Subject

Rank: TypeAlias = int
ENROLLED, ASKED_FOR, REST = 1, 2, 3

VisitReason = Literal[
    "routine", "confirm", "robots", "again", "unfinished", "waiting_for_budget", "indexing"
]
"""Why the next visit is made; the last four are those of evaluations that were not finished, and
`again` is what a visit of ours began. `robots` is no visit: what sites close to us is read for the
next one."""

PENDING: Final = frozenset({"again", "unfinished", "waiting_for_budget", "indexing"})

Chance: TypeAlias = Callable[[], float]
"""A number from 0 to below 1 that nobody can foresee."""

QUIET: Final = timedelta(minutes=10), timedelta(hours=24)
"""No unannounced visit is made within a random time of these after a visible event.
Source: evidence.md#announced-and-unannounced-visits."""

ROBOTS_BEFORE: Final = timedelta(minutes=10), timedelta(hours=23)
"""How long before a visit robots.txt is read: it binds for a day."""

CONFIRM: Final = timedelta(hours=1), timedelta(hours=24)
"""When a visit looks again at what somebody else's visit saw.
Source: evidence.md#pooling-of-visits."""

CONFIRMS: Final = 2
"""Visits that look again."""

PUT_OFF_MAX: Final = timedelta(hours=24)
"""How long visible events can put a visit off, however many there are: no trigger keeps an agent
from being evaluated. After that only the shortest quiet time is kept, so that nobody avoids
unannounced visits by making announced ones all the time."""

LATEST: Final = timedelta(hours=25)
"""The same for events within every `QUIET[0]`: then the visit is made, and is announced."""

ROUTINE: Final = timedelta(hours=12), timedelta(hours=24)
"""Between visits of ranks 1 and 2: seven days of visits are over within eight, or ten where the
last ones have to be unannounced or were put off."""

ROUTINE_REST: Final = timedelta(days=4), timedelta(days=10)
"""Between visits of the rest: services beyond a visit's budget are judged within 7 days or so."""

RETRY: Final = (
    (timedelta(minutes=2), timedelta(minutes=10)),
    (timedelta(minutes=30), timedelta(hours=2)),
    (timedelta(hours=2), timedelta(hours=6)),
)
"""When an evaluation that was not finished is tried again, by tries before."""

UNPROVEN_PART: Final = 10
"""Of a host's visits a day, one in so many is for all agents together that prove no control."""


@dataclass(frozen=True, slots=True)
class ScheduleEvidence:
    """What an evaluation means for the next visit."""

    host: str
    """The registrable domain of the first service; empty where there is none."""
    has_control: bool
    asked: EvaluationRequest
    pending: VisitReason | None = None
    """Why it could not be finished."""
    has_failed: bool = False
    """Whether it saw a failure or a change that is to be looked at again."""


@dataclass(frozen=True, slots=True)
class VisitPlan:
    """One agent in the schedule."""

    rank: Rank
    host: str
    has_control: bool
    reason: VisitReason
    due: datetime
    planned: datetime
    """When it would be due had no visible event put it off."""
    confirms: int
    tries: int
    visited: datetime
    """When the scheduler last visited it; its first day in the schedule before that."""
    asked: datetime
    """When anybody last asked about it."""
    quiet: datetime
    """Before then no visit goes unannounced: a visible event was shortly before."""


class PlansVisits(Protocol):
    """Keeps the schedule."""

    async def plan(self, subject: Subject, seen: ScheduleEvidence) -> datetime:
        """Plan the next visit after an evaluation; when it is due. Raises `Unavailable`."""
        ...


def between(bounds: tuple[timedelta, timedelta], chance: Chance) -> timedelta:
    """A random time within bounds."""
    return bounds[0] + (bounds[1] - bounds[0]) * chance()


def replan(
    old: VisitPlan | None, seen: ScheduleEvidence, now: datetime, chance: Chance
) -> VisitPlan:
    """The plan after an evaluation."""
    is_visit = seen.asked.timing == "scheduled"
    plan = old or _first(seen, now, chance)
    plan = replace(
        plan,
        host=seen.host or plan.host,
        has_control=seen.has_control or (seen.pending is not None and plan.has_control),
        visited=now if is_visit else plan.visited,
        asked=plan.asked if seen.asked.is_background else now,
    )
    if seen.pending is not None:
        return _unfinished(plan, seen, seen.pending, now, chance)
    if is_visit:
        confirms = max(plan.confirms - 1, int(seen.has_failed))
        return _at(plan, _next(confirms, plan.rank, now, chance), confirms, now, chance)
    if plan.reason in PENDING:  # somebody's visit has finished it
        at = max(now, min(plan.planned, _next(0, plan.rank, now, chance)))
        plan = _at(plan, at, plan.confirms, now, chance)
    if seen.has_failed and not plan.confirms:
        at = min(plan.planned, now + between(CONFIRM, chance))
        plan = _at(plan, at, CONFIRMS, now, chance)
    return put_off(plan, now, chance)


def put_off(plan: VisitPlan, now: datetime, chance: Chance) -> VisitPlan:
    """The plan after an event the agent could see: no unannounced visit follows it closely."""
    wanted = min(now + between(QUIET, chance), plan.planned + PUT_OFF_MAX)
    plan = replace(plan, quiet=max(plan.quiet, wanted, now + QUIET[0]))
    if plan.reason in PENDING or plan.reason == "robots":
        return plan
    return replace(plan, due=_after_quiet(plan, plan.due))


def prepared(plan: VisitPlan, now: datetime, chance: Chance) -> VisitPlan:
    """The plan after sites were asked what they close to us: the visit itself comes next."""
    is_late = plan.planned < now + QUIET[0]
    planned = now + between(QUIET, chance) if is_late else plan.planned
    reason: VisitReason = "confirm" if plan.confirms else "routine"
    plan = replace(plan, reason=reason, planned=planned, quiet=max(plan.quiet, now + QUIET[0]))
    return replace(plan, due=_after_quiet(plan, planned))


def _after_quiet(plan: VisitPlan, due: datetime) -> datetime:
    return max(due, min(plan.quiet, plan.planned + LATEST))


def _first(seen: ScheduleEvidence, now: datetime, chance: Chance) -> VisitPlan:
    plan = VisitPlan(REST, seen.host, seen.has_control, "routine", now, now, 0, 0, now, now, now)
    return _at(plan, _next(0, REST, now, chance), 0, now, chance)


def _next(confirms: int, rank: Rank, now: datetime, chance: Chance) -> datetime:
    if confirms:
        return now + between(CONFIRM, chance)
    return now + between(ROUTINE_REST if rank == REST else ROUTINE, chance)


def _at(plan: VisitPlan, at: datetime, confirms: int, now: datetime, chance: Chance) -> VisitPlan:
    """The visit is made at that time, and what it needs at a random time before."""
    reason: VisitReason = "confirm" if confirms else "routine"
    due = at
    if plan.has_control:
        longest = max(ROBOTS_BEFORE[0], min(ROBOTS_BEFORE[1], at - now))
        reason, due = "robots", max(now, at - between((ROBOTS_BEFORE[0], longest), chance))
    return replace(plan, reason=reason, due=due, planned=at, confirms=confirms, tries=0)


def _unfinished(
    plan: VisitPlan, seen: ScheduleEvidence, reason: VisitReason, now: datetime, chance: Chance
) -> VisitPlan:
    """Tried again soon; one that is tried already is not put off by those who ask meanwhile."""
    if plan.reason in PENDING and not seen.asked.is_background:
        return plan
    tries = plan.tries + 1 if seen.asked.is_background else 0
    if reason == "unfinished" and seen.asked.timing == "scheduled":
        reason = "again"
    due = now + between(RETRY[min(tries, len(RETRY) - 1)], chance)
    return replace(plan, reason=reason, due=due, planned=due, tries=tries)


@dataclass(frozen=True, slots=True)
class DueVisit:
    """A visit that is due."""

    subject_key: str
    chain: str
    agent_id: str
    host: str
    has_control: bool
    rank: Rank
    reason: VisitReason
    tries: int
    visited: datetime
    due: datetime
    quiet: datetime
    announced: int = 0
    """Scheduled visits of the window that said who they were, less those that did not."""

    @property
    def is_visit(self) -> bool:
        """Whether the agent is visited, and not only its sites asked what they close to us."""
        return self.reason != "robots"

    def may_hide(self, now: datetime) -> bool:
        """Whether it may go unannounced: nobody else chose its time, and nobody can expect it."""
        return self.reason not in PENDING and self.quiet <= now

    @property
    def asked(self) -> EvaluationRequest:
        """Why its evaluation is made: what finishes somebody's evaluation is timed by them."""
        is_theirs = self.reason in PENDING and self.reason != "again"
        timing = "triggered" if is_theirs else "scheduled"
        return EvaluationRequest(timing, is_background=True, tries=self.tries)


def choose(
    due: Sequence[DueVisit], used: Mapping[tuple[str, bool], int], per_host: int, at_most: int
) -> tuple[list[DueVisit], list[DueVisit]]:
    """The visits to make now, and those whose hosts have had theirs of today.

    By rank, then agents that proved control, then the one whose last turn is longest ago: so those
    of one host share what it has equally. `used` counts the host's visits of the day by host and
    control; all unproven agents together have one in `UNPROVEN_PART`.
    """
    counts = Counter(used)
    chosen: list[DueVisit] = []
    full: list[DueVisit] = []
    for visit in sorted(due, key=lambda v: (v.rank, not v.has_control, v.visited, v.subject_key)):
        if visit.is_visit and visit.host and not _has_room(visit, counts, per_host):
            full.append(visit)
        elif len(chosen) < at_most:
            chosen.append(visit)
            counts[visit.host, visit.has_control] += visit.is_visit
    return chosen, full


def _has_room(visit: DueVisit, counts: Mapping[tuple[str, bool], int], per_host: int) -> bool:
    unproven = counts.get((visit.host, False), 0)
    if not visit.has_control:
        return unproven < max(1, per_host // UNPROVEN_PART)
    return unproven + counts.get((visit.host, True), 0) < per_host
