"""Who asks for regular visits to an agent, and when the next is due.

Pure except for `Chance`.

Plans an agent's next visit, and the order of visits. Pure except for `Chance`.

Ranks: 1 for agents whose proven owner enrolled them, 2 for those that operators requested, 3 for
the rest, which are visited as capacity allows. For agents with proven control, announced requests
read robots.txt at a random time of the day before each visit: so the visit may go unannounced, and
the reading does not reveal whether it will.
Source: evidence.md#announced-and-unannounced-visits, #scheduled-visits; ADR 0025.

Prioritises first evaluations among all the ids that point at one host.

Who requests regular visits to an agent: its owner, operators, and sellers it pays.

An operator requests by name, or by a gate call; the latter counts for 30 days.
Source: evidence.md#scheduled-visits: three agents of an owner, free; those that paying wrappers
check or two unrelated operators request, at most 1,000 of one operator.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol, TypeAlias

from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.errors import Conflict, NotFound
from assay.control.proofs import HostFiles
from assay.evaluation.visits import EvaluationRequest
from assay.registries.model import Subject

Rank: TypeAlias = int
ENROLLED, ASKED_FOR, REST = 1, 2, 3

VisitReason = Literal[
    "routine", "confirm", "robots", "again", "unfinished", "waiting_for_budget", "indexing"
]
"""Why the next visit is made. The last four are those of unfinished evaluations, and `again` is one
that our own visit began. `robots` is not a visit: it reads what sites close to us, for the next
visit."""

PENDING: Final = frozenset({"again", "unfinished", "waiting_for_budget", "indexing"})

Chance: TypeAlias = Callable[[], float]
"""Returns an unpredictable number from 0 to below 1."""

QUIET: Final = timedelta(minutes=10), timedelta(hours=24)
"""No unannounced visit is made within a random time in this range after a visible event.
Source: evidence.md#announced-and-unannounced-visits."""

ROBOTS_BEFORE: Final = timedelta(minutes=10), timedelta(hours=23)
"""How long before a visit robots.txt is read: it is valid for a day."""

CONFIRM: Final = timedelta(hours=1), timedelta(hours=24)
"""When a visit checks again what another party's visit saw.
Source: evidence.md#pooling-of-visits."""

CONFIRMS: Final = 2
"""Number of visits that check again."""

PUT_OFF_MAX: Final = timedelta(hours=24)
"""How long visible events can postpone a visit, however many there are: no trigger keeps an agent
from being evaluated. After that only the shortest quiet time applies, so that continuous announced
visits cannot prevent unannounced ones."""

LATEST: Final = timedelta(hours=25)
"""The same for events within every `QUIET[0]`: then the visit is made announced."""

ROUTINE: Final = timedelta(hours=12), timedelta(hours=24)
"""Time between visits of ranks 1 and 2: seven days of visits are complete within eight, or ten if
the last ones have to be unannounced or were postponed."""

ROUTINE_REST: Final = timedelta(days=4), timedelta(days=10)
"""Time between visits of the rest: services beyond a visit's budget are judged within about 7
days."""

RETRY: Final = (
    (timedelta(minutes=2), timedelta(minutes=10)),
    (timedelta(minutes=30), timedelta(hours=2)),
    (timedelta(hours=2), timedelta(hours=6)),
)
"""When an unfinished evaluation is retried, by number of earlier tries."""

UNPROVEN_PART: Final = 10
"""Of a host's daily visits, one in this many is for all agents without proven control together."""


@dataclass(frozen=True, slots=True)
class ScheduleEvidence:
    """What an evaluation means for the next visit."""

    host: str
    """The registrable domain of the first service; empty if there is none."""
    has_control: bool
    asked: EvaluationRequest
    pending: VisitReason | None = None
    """Why it could not be finished."""
    has_failed: bool = False
    """Whether it saw a failure or a change that must be checked again."""


@dataclass(frozen=True, slots=True)
class VisitPlan:
    """An agent in the schedule."""

    rank: Rank
    host: str
    has_control: bool
    reason: VisitReason
    due: datetime
    planned: datetime
    """When it would be due without postponements by visible events."""
    confirms: int
    tries: int
    visited: datetime
    """The scheduler's last visit; before that, its first day in the schedule."""
    asked: datetime
    """The last time any caller requested it."""
    quiet: datetime
    """No unannounced visit happens before then: a visible event occurred shortly before."""


class PlansVisits(Protocol):
    """Stores the schedule."""

    async def plan(self, subject: Subject, seen: ScheduleEvidence) -> datetime:
        """Plan the next visit after an evaluation; return when it is due. Raises `Unavailable`."""
        ...


def between(bounds: tuple[timedelta, timedelta], chance: Chance) -> timedelta:
    """Return a random time within bounds."""
    return bounds[0] + (bounds[1] - bounds[0]) * chance()


def replan(
    old: VisitPlan | None, seen: ScheduleEvidence, now: datetime, chance: Chance
) -> VisitPlan:
    """Return the plan after an evaluation."""
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
    if plan.reason in PENDING:  # Another party's visit has finished it.
        at = max(now, min(plan.planned, _next(0, plan.rank, now, chance)))
        plan = _at(plan, at, plan.confirms, now, chance)
    if seen.has_failed and not plan.confirms:
        at = min(plan.planned, now + between(CONFIRM, chance))
        plan = _at(plan, at, CONFIRMS, now, chance)
    return _put_off(plan, now, chance)


def _put_off(plan: VisitPlan, now: datetime, chance: Chance) -> VisitPlan:
    """Return the plan after an event visible to the agent: no unannounced visit soon after it."""
    wanted = min(now + between(QUIET, chance), plan.planned + PUT_OFF_MAX)
    plan = replace(plan, quiet=max(plan.quiet, wanted, now + QUIET[0]))
    if plan.reason in PENDING or plan.reason == "robots":
        return plan
    return replace(plan, due=_after_quiet(plan, plan.due))


def prepared(plan: VisitPlan, now: datetime, chance: Chance) -> VisitPlan:
    """Return the plan after robots.txt was read: the visit itself comes next."""
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
    """Plan the visit at that time, and its preparation at a random time before."""
    reason: VisitReason = "confirm" if confirms else "routine"
    due = at
    if plan.has_control:
        longest = max(ROBOTS_BEFORE[0], min(ROBOTS_BEFORE[1], at - now))
        reason, due = "robots", max(now, at - between((ROBOTS_BEFORE[0], longest), chance))
    return replace(plan, reason=reason, due=due, planned=at, confirms=confirms, tries=0)


def _unfinished(
    plan: VisitPlan, seen: ScheduleEvidence, reason: VisitReason, now: datetime, chance: Chance
) -> VisitPlan:
    """Plan a retry soon; callers that ask meanwhile do not postpone a running retry."""
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
    """Scheduled visits of the window that were announced, less those that were not."""

    @property
    def is_visit(self) -> bool:
        """Return whether it visits the agent, and does not only read robots.txt."""
        return self.reason != "robots"

    def may_hide(self, now: datetime) -> bool:
        """Return whether it may go unannounced: its time is ours and unpredictable."""
        return self.reason not in PENDING and self.quiet <= now

    @property
    def asked(self) -> EvaluationRequest:
        """Return why its evaluation is made.

        A requester times a visit that finishes their evaluation.
        """
        is_theirs = self.reason in PENDING and self.reason != "again"
        timing = "triggered" if is_theirs else "scheduled"
        return EvaluationRequest(timing, is_background=True, tries=self.tries)


def choose(
    due: Sequence[DueVisit], used: Mapping[tuple[str, bool], int], per_host: int, limit: int
) -> tuple[list[DueVisit], list[DueVisit]]:
    """Return the visits to make now, and those whose hosts had their visits of today.

    By rank, then agents with proven control, then the one whose last turn is longest ago, so that
    agents of one host share equally. `used` counts the host's visits of the day by host and
    control; all unproven agents together get one in `UNPROVEN_PART`.
    """
    counts = Counter(used)
    chosen: list[DueVisit] = []
    full: list[DueVisit] = []
    for visit in sorted(due, key=lambda v: (v.rank, not v.has_control, v.visited, v.subject_key)):
        if visit.is_visit and visit.host and not _has_room(visit, counts, per_host):
            full.append(visit)
        elif len(chosen) < limit:
            chosen.append(visit)
            counts[visit.host, visit.has_control] += visit.is_visit
    return chosen, full


def _has_room(visit: DueVisit, counts: Mapping[tuple[str, bool], int], per_host: int) -> bool:
    unproven = counts.get((visit.host, False), 0)
    if not visit.has_control:
        return unproven < max(1, per_host // UNPROVEN_PART)
    return unproven + counts.get((visit.host, True), 0) < per_host


@dataclass(frozen=True, slots=True)
class NamedFirst:
    """Wraps another `schedule.PlansVisits` and moves up agents that their host names.

    If no visit could read an agent's control yet, its unfinished evaluation gets a turn among those
    of proven control if the host's own file names the agent: then other ids that point at the host
    no longer delay it. The file proves nothing else.
    """

    plans: PlansVisits
    files: HostFiles

    async def plan(self, subject: Subject, seen: ScheduleEvidence) -> datetime:
        """Implement `schedule.PlansVisits.plan`."""
        was_unread = seen.pending == "waiting_for_budget" or seen.asked.is_background
        if seen.pending is not None and was_unread and not seen.has_control:
            seen = replace(seen, has_control=await self.files.name(subject))
        return await self.plans.plan(subject, seen)


HolderKind = Literal["owner", "operator", "seller", "gate"]

AGENTS_MAX: Final[Mapping[HolderKind, int]] = {
    "owner": 3,
    "operator": 1000,
    "seller": 1000,
    "gate": 1000,
}
"""Agents one holder may have in the schedule; those of one account count together."""

DENIED_MAX: Final = 500
"""Of an account's agents, the most by gate calls that were denied: ids are cheap."""

GATE_ASKS_COUNT: Final = timedelta(days=30)
"""How long a gate call counts as a request for visits."""

RENEWED_S: Final = 86_400.0
"""How often calls of the same gate about the same agent are stored."""

RENEWED_MAX, WAITING_MAX = 100_000, 10_000


class EnrolmentLimitReached(Conflict):
    """The holder has the maximum number of agents in the schedule."""

    code = "enrolment_limit_reached"


class NotEnrolled(NotFound):
    """This holder has not requested the agent."""

    code = "not_enrolled"


@dataclass(frozen=True, slots=True)
class EnrolmentHolder:
    """The requesting party: an owner by address, an operator or seller by the account's id."""

    kind: HolderKind
    name: str


@dataclass(frozen=True, slots=True)
class VisitRequest:
    """An agent for which visits were requested."""

    chain: str
    agent_id: str
    since: datetime


class VisitRequests(Protocol):
    """Stores requests for visits; the schedule's ranks follow from them."""

    async def add(
        self, holder: EnrolmentHolder, subject: Subject, now: datetime, due: datetime, limit: int
    ) -> bool:
        """Store a request; return False beyond `limit`.

        An agent that is not in the schedule yet is due at `due`; one that is, at `due` at the
        latest.
        """
        ...

    async def remove(self, holder: EnrolmentHolder, subject_key: str) -> bool:
        """Remove a request; return whether there was one.

        An owner's counts after a change of owner too.
        """
        ...

    async def list(self, holder: EnrolmentHolder) -> Sequence[VisitRequest]:
        """Return the holder's requests, oldest first."""
        ...


class Enrolments:
    """Adds requested agents to the schedule, and removes them."""

    def __init__(self, store: VisitRequests, clock: Clock, chance: Chance) -> None:
        self._store = store
        self._clock = clock
        self._chance = chance

    async def enrol(
        self, holder: EnrolmentHolder, subject: Subject, limit: int | None = None
    ) -> None:
        """Request regular visits to the agent. Raises `EnrolmentLimitReached`.

        `limit` is the holder's limit if it is lower than usual.
        """
        now = self._clock.now()
        most = AGENTS_MAX[holder.kind] if limit is None else limit
        due = now + between(QUIET, self._chance)
        if not await self._store.add(holder, subject, now, due, most):
            raise EnrolmentLimitReached(f"You have {most} agents in the schedule already.")

    async def withdraw(self, holder: EnrolmentHolder, subject_key: str) -> None:
        """Withdraw the request. Raises `NotEnrolled`."""
        if not await self._store.remove(holder, subject_key):
            raise NotEnrolled("You have not asked for this agent to be visited.")

    async def list(self, holder: EnrolmentHolder) -> Sequence[VisitRequest]:
        """Return the holder's requests, oldest first."""
        return await self._store.list(holder)


class GateAsks:
    """Agents that operators' gates were asked about: kept in memory, stored by `flush`."""

    def __init__(self, enrolments: Enrolments, clock: Clock) -> None:
        self._enrolments = enrolments
        self._clock = clock
        self._renewed: BoundedMap[tuple[str, str], float] = BoundedMap(RENEWED_MAX)
        self._waiting: BoundedMap[tuple[str, str], tuple[Subject, bool]] = BoundedMap(WAITING_MAX)

    def note(self, operator: str, subject: Subject, *, allowed: bool) -> None:
        """Record that an operator's gate was asked about an agent.

        No I/O; also for cached answers.
        """
        key, now_s = (operator, subject.key), self._clock.monotonic_s()
        renewed_s = self._renewed.get(key)
        if subject.agent is None or (renewed_s is not None and now_s - renewed_s < RENEWED_S):
            return
        self._renewed.put(key, now_s)
        self._waiting.put(key, (subject, allowed))

    async def flush(self) -> None:
        """Store what was recorded since.

        Raises `Unavailable`; the records are then kept for later.
        """
        for key, (subject, allowed) in list(self._waiting.items()):
            limit = None if allowed else DENIED_MAX
            with suppress(EnrolmentLimitReached):
                await self._enrolments.enrol(EnrolmentHolder("gate", key[0]), subject, limit)
            self._waiting.pop(key)
