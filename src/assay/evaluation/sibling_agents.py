"""Lets agents of one owner under the same proven addresses share visits.

Each has proven by itself that it controls the services, and does so again every week.
Source: evidence.md#siblings.
"""

from dataclasses import dataclass

from assay.common.clock import Clock
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.earlier_evidence import SHARED_WITHIN, evidence_of, may_share
from assay.evaluation.model import Evidence
from assay.evaluation.ports import EvaluationStore
from assay.evaluation.service import EVER
from assay.evaluation.visits import WINDOW, VisitRecord, VisitStore
from assay.probing.declared_services import declared_services
from assay.registries.subject import Subject


@dataclass(frozen=True, slots=True)
class SiblingVisits:
    """Finds a sibling's visit that replaces one of an agent's own."""

    evaluations: EvaluationStore
    visits: VisitStore
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
