"""Makes the visits that are due; each is leased once over all processes.

Lets agents of one owner under the same proven addresses share visits.

Each has proven by itself that it controls the services, and does so again every week.
Source: evidence.md#siblings.

Visits timed by the scheduler may go unannounced. Visits that finish an evaluation someone requested
follow a visible event closely, and identify themselves.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

from assay.chains.networks import Networks
from assay.common.clock import Clock
from assay.common.egress_budget import EgressUse, UseClass, egress_use
from assay.common.errors import Unavailable
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.accumulation import SHARED_WITHIN, evidence_of, may_share
from assay.evaluation.model import Evidence
from assay.evaluation.ports import EvaluationStore
from assay.evaluation.schedule import DueVisit
from assay.evaluation.service import EVER, Evaluator
from assay.evaluation.store_visits import SqlVisitSchedule, SqlVisitStore
from assay.evaluation.visits import WINDOW, VisitRecord
from assay.probing.declared_services import declared_services
from assay.probing.unannounced import UnannouncedVisits, scheduled_visits
from assay.registries.model import AgentNotFound, Subject
from assay.registries.subjects import Subjects


@dataclass(frozen=True, slots=True)
class SiblingVisits:
    """Finds a sibling's visit that replaces one of an agent's own."""

    evaluations: EvaluationStore
    visits: SqlVisitStore
    clock: Clock
    critical: frozenset[str]
    """Names of checks that may fail critically."""

    async def find(self, subject: Subject) -> VisitRecord | None:
        """Return the visit; None if the agent itself must be visited.

        Both agents declare the same addresses, and no other callable ones; control of each address
        was proven for each of the two; and the owner is the same as then. Raises
        `common.errors.Unavailable`.
        """
        group = await self._group(subject)
        if subject.agent is None or group is None:
            return None
        now = self.clock.now()
        visit = await self.visits.of_group(group, subject.key, now - SHARED_WITHIN)
        if visit is None:
            return None
        own = await self.visits.recent(subject.key, now - WINDOW)
        if not may_share(visit, own, now, self.critical):
            return None
        other = evidence_of(await self.evaluations.newest(visit.subject_key, EVER))
        is_same = (
            other is not None
            and _identity(other).get("group") == group
            and _proven(other) == _declared(subject)
        )
        return visit if is_same else None

    async def _group(self, subject: Subject) -> str | None:
        """Return the agent's group of siblings, by its own evaluation."""
        known = evidence_of(await self.evaluations.newest(subject.key, EVER))
        if subject.agent is None or known is None or _proven(known) != _declared(subject):
            return None
        found = _identity(known)
        if found.get("owner") != subject.agent.owner or found.get("transferred"):
            return None
        group = found.get("group")
        return group if isinstance(group, str) and group else None


def _declared(subject: Subject) -> frozenset[str]:
    return frozenset(visited.service.endpoint for visited in declared_services(subject)[0])


def _proven(evidence: Evidence) -> frozenset[str] | None:
    """Return the services if control of all of them is proven and undisputed, else None."""
    rows = evidence.data.get("control")
    listed = [row for row in rows if is_object(row)] if is_array(rows) else []
    if not listed or any(not row.get("proof") or row.get("conflict") for row in listed):
        return None
    return frozenset(str(row.get("service")) for row in listed)


def _identity(evidence: Evidence) -> JsonObject:
    found = evidence.data.get("identity")
    return found if is_object(found) else {}


EVALUATION_S: Final = 90.0
"""Time limit of a background evaluation: slow agents answer in up to 60 seconds."""

LEASE_S: Final = 300.0
"""How long a visit belongs to one process: longer than any evaluation with its chain reads."""

AT_ONCE: Final = 8
"""Concurrent visits of a process."""

FAILED_AGAIN_S: Final = 3600.0
"""When a visit is retried if its agent's chain could not be read."""

ACCOUNT: Final = "scheduler"
"""The account that requests to hosts without proven control are counted for: at most a quarter of a
budget."""


@dataclass(frozen=True, slots=True)
class SchedulerDependencies:
    """The dependencies of visits."""

    schedule: SqlVisitSchedule
    subjects: Subjects
    networks: Networks
    evaluator: Evaluator
    clock: Clock
    visits_per_host: int
    """Daily visits of a registrable domain."""
    on_failure: Callable[[str, Exception], None]
    unannounced: UnannouncedVisits | None = None
    siblings: SiblingVisits | None = None
    """Without it every agent is visited itself."""


class Scheduler:
    """Visits agents at the times of the schedule."""

    def __init__(self, needs: SchedulerDependencies) -> None:
        self._needs = needs

    async def run(self) -> int:
        """Make the visits that are due, a few at a time, until none is left; return how many.

        A slow agent occupies only one slot. Raises `Unavailable`, once the visits that have begun
        are over.
        """
        made, failed = 0, None
        async with asyncio.TaskGroup() as group:
            running: set[asyncio.Task[None]] = set()
            while True:
                try:
                    due = await self._lease(AT_ONCE - len(running))
                except Unavailable as error:
                    failed = error
                    break
                running |= {group.create_task(self._visit(visit)) for visit in due}
                made += len(due)
                if not running:
                    break
                _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if failed is not None:
            raise failed
        return made

    async def _lease(self, limit: int) -> Sequence[DueVisit]:
        needs = self._needs
        return await needs.schedule.lease(needs.visits_per_host, limit, LEASE_S)

    async def _visit(self, visit: DueVisit) -> None:
        needs = self._needs
        try:
            network = needs.networks.by_slug(visit.chain)
            with egress_use(_use(visit)):
                subject = await needs.subjects.find(network, visit.agent_id)
                if (shared := await self._shared(visit, subject)) is not None:
                    asked = replace(visit.asked, shared=shared)
                    await needs.evaluator.evaluate(subject, EVALUATION_S, asked)
                    return
                if not visit.is_visit:
                    await self._read_robots(subject)
                    await needs.schedule.prepared(visit.subject_key)
                    return
                with self._manner(visit):
                    await needs.evaluator.evaluate(subject, EVALUATION_S, visit.asked)
        except AgentNotFound:
            await needs.schedule.drop(visit.subject_key)
        except Exception as error:  # noqa: BLE001 - one agent must not take the other visits down
            needs.on_failure(visit.subject_key, error)
            await needs.schedule.put_off(visit.subject_key, FAILED_AGAIN_S)

    async def _shared(self, visit: DueVisit, subject: Subject) -> VisitRecord | None:
        """Return a sibling's visit that suffices, if the schedule itself caused this visit."""
        siblings = self._needs.siblings
        if siblings is None or visit.tries or visit.asked.timing != "scheduled":
            return None
        return await siblings.find(subject)

    async def _read_robots(self, subject: Subject) -> None:
        needs = self._needs
        if needs.unannounced is not None:
            urls = [visited.service.endpoint for visited in declared_services(subject)[0]]
            await needs.unannounced.read_robots(urls, needs.clock)

    def _manner(self, visit: DueVisit) -> AbstractContextManager[None]:
        """Decide whether the visit may go unannounced: not if its time can be predicted."""
        if visit.may_hide(self._needs.clock.now()):
            return scheduled_visits(visit.announced)
        return nullcontext()


def _use(visit: DueVisit) -> EgressUse:
    """Return the budget class: agents with proven control use the half reserved for them."""
    if visit.has_control:
        return EgressUse(UseClass.RESERVED, agent=visit.subject_key)
    return EgressUse(account=ACCOUNT)
