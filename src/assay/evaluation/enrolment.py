"""Who asks for an agent to be visited regularly: its owner, operators, and sellers it pays.

An operator asks by name, or by a gate call; the latter counts for 30 days.
Source: evidence.md#scheduled-visits: three agents of an owner, free; those that paying wrappers
check or two unrelated operators ask for, at most 1,000 of one operator.
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
"""Of an account's agents, so many at most by gate calls that were denied: ids are cheap."""

GATE_ASKS_COUNT: Final = timedelta(days=30)
"""How long a gate call asks for visits."""

RENEWED_S: Final = 86_400.0
"""How often the same gate's calls about the same agent are written down."""

RENEWED_MAX, WAITING_MAX = 100_000, 10_000


class EnrolmentLimitReached(Conflict):
    """The holder has as many agents in the schedule as there may be."""

    code = "enrolment_limit_reached"


class NotEnrolled(NotFound):
    """Nobody of this name has asked for the agent."""

    code = "not_enrolled"


@dataclass(frozen=True, slots=True)
class EnrolmentHolder:
    """Who asks: an owner by address, an operator or seller by the account's id."""

    kind: HolderKind
    name: str


@dataclass(frozen=True, slots=True)
class VisitRequest:
    """An agent that somebody asked for."""

    chain: str
    agent_id: str
    since: datetime


class VisitRequests(Protocol):
    """Keeps who asked for what; the schedule's ranks follow."""

    async def add(
        self, holder: EnrolmentHolder, subject: Subject, now: datetime, due: datetime, limit: int
    ) -> bool:
        """Whether the holder has asked for it now; False beyond `limit`.

        An agent that is not in the schedule yet is due at `due`; one that is, at `due` at the
        latest.
        """
        ...

    async def remove(self, holder: EnrolmentHolder, subject_key: str) -> bool:
        """Whether the holder had asked for it. Of an owner, whoever owned it then."""
        ...

    async def list(self, holder: EnrolmentHolder) -> Sequence[VisitRequest]:
        """What the holder asked for, oldest first."""
        ...


class Enrolments:
    """Puts agents into the schedule for those who ask, and takes them out."""

    def __init__(self, store: VisitRequests, clock: Clock, chance: Chance) -> None:
        self._store = store
        self._clock = clock
        self._chance = chance

    async def enrol(
        self, holder: EnrolmentHolder, subject: Subject, at_most: int | None = None
    ) -> None:
        """Have the agent visited regularly. Raises `EnrolmentLimitReached`.

        `at_most` is how many the holder may have where that is less than usual.
        """
        now = self._clock.now()
        limit = AGENTS_MAX[holder.kind] if at_most is None else at_most
        due = now + between(QUIET, self._chance)
        if not await self._store.add(holder, subject, now, due, limit):
            raise EnrolmentLimitReached(f"You have {limit} agents in the schedule already.")

    async def withdraw(self, holder: EnrolmentHolder, subject_key: str) -> None:
        """Ask for it no more. Raises `NotEnrolled`."""
        if not await self._store.remove(holder, subject_key):
            raise NotEnrolled("You have not asked for this agent to be visited.")

    async def list(self, holder: EnrolmentHolder) -> Sequence[VisitRequest]:
        """What the holder asked for, oldest first."""
        return await self._store.list(holder)


class GateAsks:
    """Whom operators' gates were asked about: kept in memory, and written down by `flush`."""

    def __init__(self, enrolments: Enrolments, clock: Clock) -> None:
        self._enrolments = enrolments
        self._clock = clock
        self._renewed: BoundedMap[tuple[str, str], float] = BoundedMap(RENEWED_MAX)
        self._waiting: BoundedMap[tuple[str, str], tuple[Subject, bool]] = BoundedMap(WAITING_MAX)

    def note(self, operator: str, subject: Subject, *, allowed: bool) -> None:
        """An operator's gate was asked about an agent. No I/O, for cached answers too."""
        key, now_s = (operator, subject.key), self._clock.monotonic_s()
        renewed_s = self._renewed.get(key)
        if subject.agent is None or (renewed_s is not None and now_s - renewed_s < RENEWED_S):
            return
        self._renewed.put(key, now_s)
        self._waiting.put(key, (subject, allowed))

    async def flush(self) -> None:
        """Write down what was noted since. Raises `Unavailable`: then it is noted again later."""
        for key, (subject, allowed) in list(self._waiting.items()):
            limit = None if allowed else DENIED_MAX
            with suppress(EnrolmentLimitReached):
                await self._enrolments.enrol(EnrolmentHolder("gate", key[0]), subject, limit)
            self._waiting.pop(key)
