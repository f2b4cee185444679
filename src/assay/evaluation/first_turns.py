"""Prioritises first evaluations among all the ids that point at one host."""

from dataclasses import dataclass, replace
from datetime import datetime

from assay.control.host_files import HostFiles
from assay.evaluation.schedule import PlansVisits, ScheduleEvidence
from assay.registries.subject import Subject


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
