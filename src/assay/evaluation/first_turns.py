"""Whose first evaluation comes first, of all the ids that point at one host."""

from dataclasses import dataclass, replace
from datetime import datetime

from assay.control.host_files import HostFiles
from assay.evaluation.schedule import PlansVisits, ScheduleEvidence
from assay.registries.subject import Subject


@dataclass(frozen=True, slots=True)
class NamedFirst:
    """Implements `schedule.PlansVisits` over another that keeps the schedule.

    An evaluation that is not finished yet, of an agent whose control no visit could read so far,
    has its turn among those of proven control if the host's own file names the agent: other ids
    that point at the host then delay it no more. It proves nothing else.
    """

    plans: PlansVisits
    files: HostFiles

    async def plan(self, subject: Subject, seen: ScheduleEvidence) -> datetime:
        """See `schedule.PlansVisits.plan`."""
        was_unread = seen.pending == "waiting_for_budget" or seen.asked.is_background
        if seen.pending is not None and was_unread and not seen.has_control:
            seen = replace(seen, has_control=await self.files.name(subject))
        return await self.plans.plan(subject, seen)
