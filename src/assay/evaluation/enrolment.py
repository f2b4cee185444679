"""Who requests regular visits to an agent: its owner, operators, and sellers it pays.

An operator requests by name, or by a gate call; the latter counts for 30 days.
Source: evidence.md#scheduled-visits: three agents of an owner, free; those that paying wrappers
check or two unrelated operators request, at most 1,000 of one operator.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.errors import Conflict, NotFound
from assay.evaluation.schedule import QUIET, Chance, between
from assay.registries.subject import Subject

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
        """Remove a request; return whether there was one. An owner's counts whoever owns it now."""
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
        self, holder: EnrolmentHolder, subject: Subject, at_most: int | None = None
    ) -> None:
        """Request regular visits to the agent. Raises `EnrolmentLimitReached`.

        `at_most` is the holder's limit if it is lower than usual.
        """
        now = self._clock.now()
        limit = AGENTS_MAX[holder.kind] if at_most is None else at_most
        due = now + between(QUIET, self._chance)
        if not await self._store.add(holder, subject, now, due, limit):
            raise EnrolmentLimitReached(f"You have {limit} agents in the schedule already.")

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
