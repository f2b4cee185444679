"""Calls on their way into the log: in memory for a second at most, then durable."""

import asyncio
from collections import deque

from assay.calls.model import Call
from assay.calls.ports import CallStore

BATCH_MAX = 5000
"""Rows written at once."""

WAITING_MAX = 200_000
"""Rows kept while the store is down; beyond it the oldest go, and are counted."""


class CallLog:
    """Takes rows without waiting; whoever flushes writes them down in batches."""

    def __init__(self, store: CallStore) -> None:
        self._store = store
        self._waiting: deque[Call] = deque(maxlen=WAITING_MAX)
        self._turn = asyncio.Lock()
        self.dropped = 0

    def add(self, call: Call) -> None:
        """Remember a call until the next flush."""
        if len(self._waiting) == WAITING_MAX:
            self.dropped += 1
        self._waiting.append(call)

    @property
    def waiting(self) -> int:
        """Rows that nobody has begun to write."""
        return len(self._waiting)

    @property
    def is_behind(self) -> bool:
        """Whether there are rows that are not in the store yet."""
        return bool(self._waiting) or self._turn.locked()

    async def flush(self) -> None:
        """Write down everything that waits. On failure nothing is lost: it is tried again."""
        async with self._turn:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                try:
                    await self._store.add(batch)
                except BaseException:
                    self._waiting.extendleft(reversed(batch))
                    raise
