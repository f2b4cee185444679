"""What strangers made is removed in time: rows in small batches, files by size."""

import asyncio
from datetime import timedelta
from typing import Protocol

from assay.accounts.sign_up import QUOTA_WINDOW
from assay.infra.log import Log
from assay.infra.sql.costs import SqlCostStore
from assay.infra.sql.retention import SqlRetention
from assay.kit.clock import Clock
from assay.kit.cost_windows import DAY_S
from assay.settings import Settings
from assay.trust.ports import SnapshotBlobs

EVERY_S = 600.0
SOON_S = 1.0
"""How soon the next batch follows one that was full."""

AGENTS_AT_ONCE = 50
ROWS_AT_ONCE = 500
BLOCKS_AT_ONCE = 1_000


class Retention:
    """One batch of each kind a round."""

    def __init__(
        self,
        store: SqlRetention,
        costs: SqlCostStore,
        blobs: SnapshotBlobs,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._store = store
        self._costs = costs
        self._blobs = blobs
        self._settings = settings
        self._clock = clock

    async def run(self) -> bool:
        """Remove a batch of everything that is due; whether more may be."""
        now, settings = self._clock.now(), self._settings
        yesterday = int(now.timestamp() // DAY_S) - 1
        more = await self._costs.remove(yesterday, ROWS_AT_ONCE) == ROWS_AT_ONCE
        await self._store.forget_sign_up_origins(now - QUOTA_WINDOW)
        paid_hours = timedelta(hours=settings.paid_response_hours)
        await self._store.forget_upstream_secrets(now - paid_hours)
        if settings.unproven_days:
            before = now - timedelta(days=settings.unproven_days)
            uris = await self._store.remove_unproven(before, AGENTS_AT_ONCE)
            for uri in uris or ():
                await self._blobs.remove(uri)
            more = more or uris is not None
        if settings.key_agent_days:
            before = now - timedelta(days=settings.key_agent_days)
            removed = await self._store.remove_key_agents(before, ROWS_AT_ONCE)
            more = more or removed == ROWS_AT_ONCE
        if settings.snapshot_blocks_mib:
            bytes_max = settings.snapshot_blocks_mib * 1024 * 1024
            removed = await self._blobs.trim(bytes_max, BLOCKS_AT_ONCE)
            more = more or removed == BLOCKS_AT_ONCE
        return more


class Removal(Protocol):
    """Removes what is due, a batch at a time."""

    async def run(self) -> bool:
        """Remove a batch; whether more may be due."""
        ...


async def retain_forever(retention: Removal, log: Log) -> None:
    """Every ten minutes; a store that is down now is tried again."""
    more = False
    while True:
        await asyncio.sleep(SOON_S if more else EVERY_S)
        more = False
        try:
            more = await retention.run()
        except Exception as error:  # noqa: BLE001 - a store that is down now is tried again
            log.warning("old evidence could not be removed, again later", error=repr(error))
