"""Removes what strangers created when its time is over: rows in small batches, files by size."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeAlias

from assay.accounts.operators import QUOTA_WINDOW
from assay.admin.store_retention import SqlRetention
from assay.app.log import Log
from assay.caller_behaviour.observations import WRAPPERS_FOR
from assay.caller_behaviour.scenario_run import COUNTS_FOR
from assay.common.clock import Clock
from assay.common.costs import DAY_S
from assay.db.store_costs import SqlCostStore
from assay.evaluation.ports import SnapshotBlobs
from assay.settings import Settings

EVERY_S = 600.0
SOON_S = 1.0
"""Seconds until the next batch, if one was full."""

ACCOUNTS_AT_ONCE = 50
AGENTS_AT_ONCE = 50
ROWS_AT_ONCE = 500
BLOCKS_AT_ONCE = 1_000
CALLS_AT_ONCE = 1_000
"""Rows of a batch: up to 86 million a day."""

CALL_DAYS_MIN: Final = 2
"""Least days that calls are kept: one of the last 24 hours may still be searched for."""

REVISIONS_KEPT: Final = timedelta(days=1)
"""How long every revision is kept after its end. A quote of it is paid within an hour or so, and a
running call is claimed under it."""

EVALUATIONS_KEPT: Final = timedelta(days=30)
"""How long every evaluation of an agent is kept: the index looks for rungs of so many days."""

UNFINISHED_KEPT: Final = timedelta(hours=1)
"""How long an unfinished run of the course is kept; a caller can continue it for 15 minutes."""

Removal: TypeAlias = Callable[[], Awaitable[bool]]
"""Removes a batch of what is due, and returns whether more may be due."""


class Retention:
    """Everything that is removed in time: one batch of each kind a round."""

    def __init__(
        self,
        store: SqlRetention,
        costs: SqlCostStore,
        blobs: SnapshotBlobs,
        settings: Settings,
        clock: Clock,
        *others: tuple[str, Removal],
    ) -> None:
        self._store = store
        self._costs = costs
        self._blobs = blobs
        self._settings = settings
        self._clock = clock
        # Key agents come last: one is kept while other rows depend on it. Its evaluations then
        # count as those of an unproven one, and are removed in the next round.
        self._removals: tuple[tuple[str, Removal], ...] = (
            ("costs", self._remove_costs),
            ("unused accounts", self._remove_unused_accounts),
            ("sign-up origins", self._forget_sign_up_origins),
            ("upstream secrets", self._forget_upstream_secrets),
            ("old calls", self._remove_calls),
            ("agents of old calls", self._fold_agents),
            ("unpaid payments", self._remove_unpaid_payments),
            ("revisions of wrappers", self._remove_revisions),
            ("failed log-ins", self._remove_failed_logins),
            ("old evaluations", self._remove_evaluations),
            ("unproven evaluations", self._remove_unproven),
            ("course runs", self._remove_runs),
            ("conduct at wrappers", self._remove_conduct),
            ("key agents", self._remove_key_agents),
            ("snapshot blocks", self._trim_blocks),
            *others,
        )

    async def run(self, on_failure: Callable[[str, Exception], None] | None = None) -> bool:
        """Remove a batch of everything that is due; return whether more may be due.

        Calls `on_failure` with the name of a removal that failed, and continues with the others.
        Without `on_failure` it raises the first failure.
        """
        more = False
        for name, remove in self._removals:
            try:
                more = await remove() or more
            except Exception as error:
                if on_failure is None:
                    raise
                on_failure(name, error)
        return more

    async def _remove_costs(self) -> bool:
        yesterday = int(self._clock.now().timestamp() // DAY_S) - 1
        return await self._costs.remove(yesterday, ROWS_AT_ONCE) == ROWS_AT_ONCE

    async def _forget_sign_up_origins(self) -> bool:
        await self._store.forget_sign_up_origins(self._clock.now() - QUOTA_WINDOW)
        return False

    async def _forget_upstream_secrets(self) -> bool:
        kept = timedelta(hours=self._settings.paid_response_hours)
        await self._store.forget_upstream_secrets(self._clock.now() - kept)
        return False

    async def _remove_unused_accounts(self) -> bool:
        if not self._settings.unused_account_days:
            return False
        now = self._clock.now()
        before = now - timedelta(days=self._settings.unused_account_days)
        found = await self._store.remove_unused_accounts(
            before, now, now - QUOTA_WINDOW, ACCOUNTS_AT_ONCE
        )
        return found == ACCOUNTS_AT_ONCE

    async def _remove_calls(self) -> bool:
        if not self._settings.call_days:
            return False
        return await self._store.remove_calls(self._first_day(), CALLS_AT_ONCE) == CALLS_AT_ONCE

    async def _fold_agents(self) -> bool:
        if not self._settings.call_days:
            return False
        return await self._store.fold_agents(self._first_day(), ROWS_AT_ONCE) == ROWS_AT_ONCE

    def _first_day(self) -> int:
        """Return the first UTC day of which calls are kept."""
        days = max(self._settings.call_days, CALL_DAYS_MIN)
        return int(self._clock.now().timestamp() // DAY_S) - days + 1

    async def _remove_unpaid_payments(self) -> bool:
        if not self._settings.unpaid_payment_days:
            return False
        before = self._clock.now() - timedelta(days=self._settings.unpaid_payment_days)
        return await self._store.remove_unpaid_payments(before, CALLS_AT_ONCE) == CALLS_AT_ONCE

    async def _remove_revisions(self) -> bool:
        kept = self._settings.wrapper_revisions
        if not kept:
            return False
        before = self._clock.now() - REVISIONS_KEPT
        return await self._store.remove_revisions(kept, before, ROWS_AT_ONCE) == ROWS_AT_ONCE

    async def _remove_failed_logins(self) -> bool:
        if not self._settings.failed_login_days:
            return False
        before = self._clock.now() - timedelta(days=self._settings.failed_login_days)
        return await self._store.remove_failed_logins(before, ROWS_AT_ONCE) == ROWS_AT_ONCE

    async def _remove_evaluations(self) -> bool:
        kept = self._settings.evaluations_kept
        if not kept:
            return False
        before = self._clock.now() - EVALUATIONS_KEPT
        removed, uris = await self._store.remove_evaluations(kept, before, ROWS_AT_ONCE)
        for uri in uris:
            await self._blobs.remove(uri)
        return removed == ROWS_AT_ONCE

    async def _remove_unproven(self) -> bool:
        if not self._settings.unproven_days:
            return False
        before = self._clock.now() - timedelta(days=self._settings.unproven_days)
        uris = await self._store.remove_unproven(before, AGENTS_AT_ONCE)
        for uri in uris or ():
            await self._blobs.remove(uri)
        return uris is not None

    async def _remove_runs(self) -> bool:
        now = self._clock.now()
        ended, begun = now - COUNTS_FOR, now - UNFINISHED_KEPT
        return await self._store.remove_runs(ended, begun, ROWS_AT_ONCE) == ROWS_AT_ONCE

    async def _remove_conduct(self) -> bool:
        before_day = (self._clock.now() - WRAPPERS_FOR).date().isoformat()
        return await self._store.remove_conduct(before_day, ROWS_AT_ONCE) == ROWS_AT_ONCE

    async def _remove_key_agents(self) -> bool:
        if not self._settings.key_agent_days:
            return False
        kept = timedelta(days=self._settings.key_agent_days)
        before = self._clock.now() - max(kept, EVALUATIONS_KEPT)
        return await self._store.remove_key_agents(before, ROWS_AT_ONCE) == ROWS_AT_ONCE

    async def _trim_blocks(self) -> bool:
        if not self._settings.snapshot_blocks_mib:
            return False
        bytes_max = self._settings.snapshot_blocks_mib * 1024 * 1024
        return await self._blobs.trim(bytes_max, BLOCKS_AT_ONCE) == BLOCKS_AT_ONCE


async def retain_forever(retention: Retention, log: Log) -> None:
    """Run every ten minutes, sooner while more is due; log failures and try again."""

    def failed(name: str, error: Exception) -> None:
        log.warning("old data could not be removed, again later", what=name, error=repr(error))

    more = False
    while True:
        await asyncio.sleep(SOON_S if more else EVERY_S)
        more = await retention.run(failed)
