"""Takes calls into the log: in memory for a second at most, then durable."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from assay.analytics.model import BatchId, CallLogEntry, CallsRefused, bound
from assay.analytics.store_calls import SqlCallStore
from assay.common.costs import Cost, CostLedger, address_bearer
from assay.common.ids import new_id

BATCH_MAX: Final = 5000
"""Rows written at once."""

WAITING_MAX: Final = 200_000
"""Rows that are kept while the store is down; beyond that the oldest are dropped and counted."""

Refused = Callable[[CallLogEntry, str], None]
"""Called with a row that the store will never take, and why."""


@dataclass(frozen=True, slots=True)
class _Batch:
    id: BatchId
    rows: list[CallLogEntry]


class CallLog:
    """Takes rows without waiting; a flush writes them in batches.

    Every row is stored once. A batch whose writing was interrupted is written again under its own
    id, by which the store knows whether it has it. A batch that the store refuses is halved until
    the bad row is alone, and that row is dropped.
    """

    def __init__(
        self,
        store: SqlCallStore,
        on_refused: Refused = lambda _row, _why: None,
        costs: CostLedger | None = None,
    ) -> None:
        self._store = store
        self._costs = costs
        self._on_refused = on_refused
        self._waiting: deque[CallLogEntry] = deque(maxlen=WAITING_MAX)
        self._begun: deque[_Batch] = deque()
        self._writer = new_id()
        self._number = 0
        self._turn = asyncio.Lock()
        self.dropped = 0
        """Rows that were lost because too many waited."""
        self.refused = 0
        """Rows that were lost because the store would never have taken them."""
        self.over_quota = 0
        """Calls without a sale that were not kept, because their caller had used up its rows."""

    def add(self, call: CallLogEntry) -> None:
        """Add a call; the next flush writes it.

        If its caller has used up its rows of the day, only a sale is kept, which brought money.
        Every other call is counted.
        """
        if self._costs is not None and not call.is_sale:
            bearer = address_bearer(call.client)
            if not self._costs.has_left(Cost.ROWS, bearer):
                self.over_quota += 1
                return
            self._costs.charge(Cost.ROWS, 1, bearer)
        bound(call)
        if len(self._waiting) == WAITING_MAX:
            self.dropped += 1
        self._waiting.append(call)

    @property
    def waiting(self) -> int:
        """Return how many rows are not known to be in the store."""
        return len(self._waiting) + sum(len(batch.rows) for batch in self._begun)

    @property
    def is_behind(self) -> bool:
        """Return whether there are rows that are not in the store yet."""
        return bool(self._waiting or self._begun) or self._turn.locked()

    async def flush(self) -> None:
        """Write everything that waits. A failure loses nothing: it is tried again."""
        async with self._turn:
            while self._waiting or self._begun:
                if not self._begun:
                    some = min(BATCH_MAX, len(self._waiting))
                    self._begin([self._waiting.popleft() for _ in range(some)])
                await self._write(self._begun[0])

    async def _write(self, batch: _Batch) -> None:
        try:
            await self._store.add(batch.rows, batch.id)
        except CallsRefused as refusal:
            self._begun.popleft()
            self._part(batch.rows, str(refusal))
        else:
            self._begun.popleft()

    def _part(self, rows: list[CallLogEntry], why: str) -> None:
        """Split a batch of which nothing is stored: its halves get ids of their own."""
        if len(rows) == 1:
            self.refused += 1
            self._on_refused(rows[0], why)
            return
        middle = len(rows) // 2
        self._begin(rows[middle:])
        self._begin(rows[:middle])

    def _begin(self, rows: list[CallLogEntry]) -> None:
        self._number += 1
        self._begun.appendleft(_Batch(BatchId(self._writer, self._number), rows))
