"""What is known of how an agent behaves as a caller: the course, and calls through wrappers."""

from collections.abc import Sequence
from datetime import timedelta

from assay.calls.conduct import ConductStore
from assay.kit.clock import Clock
from assay.kit.json import JsonObject
from assay.trust.course import Course

WRAPPERS_FOR = timedelta(days=30)


class ConductRecord:
    """Implements `trust.sources.ConductSource`."""

    def __init__(self, course: Course, store: ConductStore, clock: Clock) -> None:
        self._course = course
        self._store = store
        self._clock = clock

    async def observed(self, addresses: Sequence[str]) -> JsonObject:
        """As the port says: the newest run of 30 days, and the counts of as many."""
        since = (self._clock.now() - WRAPPERS_FOR).date().isoformat()
        course = await self._course.observed(addresses)
        tally = await self._store.total(addresses, since)
        seen: dict[str, JsonObject] = {}
        if course is not None:
            seen["course"] = course
        if tally.calls:
            seen["wrappers"] = {
                "calls": tally.calls,
                "limited": tally.limited,
                "early": tally.early,
                "errorRun": tally.error_run,
            }
        return {**seen}
