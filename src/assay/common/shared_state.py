"""Short-lived facts that processes share: used challenges, revoked sessions, counters.

`SharedState` is the port, `check_entry` checks its sizes, and `MemorySharedState` is the store of
one process.
"""

import heapq
from typing import Protocol

from assay.common.clock import Clock
from assay.common.errors import Unavailable


class SharedState(Protocol):
    """A key-value store whose entries expire by themselves. Every operation is atomic.

    Keys have at most 200 characters, values at most 4,096. A lost or unreachable store raises
    `common.errors.Unavailable`: checks that guard access must fail closed.
    """

    async def put_if_absent(self, key: str, value: str, ttl_s: float) -> bool:
        """Store the value and return True; if an unexpired one exists, return False."""
        ...

    async def put(self, key: str, value: str, ttl_s: float) -> None:
        """Store the value, replacing an existing one."""
        ...

    async def get(self, key: str) -> str | None:
        """Return the unexpired value, or None."""
        ...

    async def take(self, key: str) -> str | None:
        """Return the unexpired value and remove it in the same step: at most one caller gets it."""
        ...


KEY_CHARS_MAX = 200
VALUE_CHARS_MAX = 4096
"""Source for both: the port's own docstring."""


def check_entry(key: str, value: str) -> None:
    """Raise `ValueError` for an entry beyond the port's sizes: that is the caller's mistake.

    Hash or bound what a stranger sends before it becomes a key.
    """
    if len(key) > KEY_CHARS_MAX or len(value) > VALUE_CHARS_MAX:
        raise ValueError("a key has at most 200 characters, a value at most 4,096")


ENTRIES_MAX = 100_000
"""Most entries: some 430 MB if every entry is as large as the port allows."""


class MemorySharedState:
    """Implements `common.shared_state.SharedState` in memory, for one process.

    If it is full of unexpired entries it refuses new ones. If it forgot one, a used challenge or a
    revoked session would become valid again.
    """

    def __init__(self, clock: Clock, entries_max: int = ENTRIES_MAX) -> None:
        self._clock = clock
        self._entries_max = entries_max
        self._entries: dict[str, tuple[str, float]] = {}
        self._ends: list[tuple[float, str]] = []  # a heap; may name replaced entries

    async def put_if_absent(self, key: str, value: str, ttl_s: float) -> bool:
        check_entry(key, value)
        if self._live(key) is not None:
            return False
        self._store(key, value, ttl_s)
        return True

    async def put(self, key: str, value: str, ttl_s: float) -> None:
        check_entry(key, value)
        self._store(key, value, ttl_s)

    async def get(self, key: str) -> str | None:
        return self._live(key)

    async def take(self, key: str) -> str | None:
        value = self._live(key)
        self._entries.pop(key, None)
        return value

    def _live(self, key: str) -> str | None:
        known = self._entries.get(key)
        return known[0] if known and known[1] > self._clock.monotonic_s() else None

    def _store(self, key: str, value: str, ttl_s: float) -> None:
        self._drop_ended()
        if key not in self._entries and len(self._entries) >= self._entries_max:
            raise Unavailable("Too much is going on at once: try again shortly.", retry_after_s=5)
        until = self._clock.monotonic_s() + ttl_s
        self._entries[key] = (value, until)
        heapq.heappush(self._ends, (until, key))
        if len(self._ends) > 2 * self._entries_max:  # so that a put costs almost nothing
            self._ends = [(until, key) for key, (_, until) in self._entries.items()]
            heapq.heapify(self._ends)

    def _drop_ended(self) -> None:
        now = self._clock.monotonic_s()
        while self._ends and self._ends[0][0] <= now:
            until, key = heapq.heappop(self._ends)
            if key in self._entries and self._entries[key][1] == until:
                del self._entries[key]
