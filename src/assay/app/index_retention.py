"""What the index of events keeps: what evaluations need, and no more rows than are set."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from assay.common.clock import Clock
from assay.reputation.events import DAY_S
from assay.reputation.store_old_streams import SqlOldStreams
from assay.settings import Settings

STREAMS_AT_ONCE: Final = 100
ROWS_AT_ONCE: Final = 1_000
FUNDINGS_AT_ONCE: Final = 500

USED_FOR: Final = timedelta(days=30)
"""How long the payments of an agent on rung 3 are kept before those of others."""

FUNDINGS_LOOKED_AT_DAYS: Final = 7
"""How often it is asked whether a funding still leads to anybody."""


class IndexRetention:
    """Forgets what is idle or too much, and removes its rows, a bounded number at a time."""

    def __init__(
        self, store: SqlOldStreams, settings: Settings, kept: Collection[str], clock: Clock
    ) -> None:
        """`kept` are addresses whose payments are not forgotten for being many."""
        self._store = store
        self._settings = settings
        self._kept = kept
        self._clock = clock

    async def forget(self) -> None:
        """Forget some of what is due; of fundings, look at some."""
        now = self._clock.now()
        today, days = int(now.timestamp()) // DAY_S, self._settings.index_days
        if days:
            await self._store.forget_idle(today - days, STREAMS_AT_ONCE)
        if self._settings.index_rows:
            await self._store.forget_largest(
                self._settings.index_rows, now - USED_FOR, self._kept, STREAMS_AT_ONCE
            )
        before = today - FUNDINGS_LOOKED_AT_DAYS
        await self._store.look_at_fundings(before, today, FUNDINGS_AT_ONCE)

    async def remove(self) -> bool:
        """Remove some rows of what was forgotten; whether there may be more."""
        return await self._store.remove_rows(ROWS_AT_ONCE)
