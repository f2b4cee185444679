"""What is kept of callers' conduct is removed when it does not count any more."""

from datetime import timedelta
from typing import Final

from assay.infra.sql.conduct_retention import SqlConductRetention
from assay.kit.clock import Clock
from assay.trust.course import COUNTS_FOR
from assay.trust.record import WRAPPERS_FOR
from assay.wiring.retention import ROWS_AT_ONCE

UNFINISHED_KEPT: Final = timedelta(hours=1)
"""How long a run that nobody finished is kept; it cannot be gone on with after 15 minutes."""


class ConductRetention:
    """One batch of each kind a round."""

    def __init__(self, store: SqlConductRetention, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> bool:
        """Remove a batch of everything that is due; whether more may be."""
        now = self._clock.now()
        runs = await self._store.remove_runs(now - COUNTS_FOR, now - UNFINISHED_KEPT, ROWS_AT_ONCE)
        before = (now - WRAPPERS_FOR).date().isoformat()
        counts = await self._store.remove_counts(before, ROWS_AT_ONCE)
        return ROWS_AT_ONCE in {runs, counts}
