"""Short-lived shared facts: used challenges, revoked sessions, counters.

`SharedState` is what every store of them does, `check_entry` the sizes they keep to, and
`MemorySharedState` the store of one process.
"""

import heapq
from typing import Protocol

from assay.common.clock import Clock
from assay.common.errors import Unavailable


class SharedState(Protocol):
    """A key-value store whose entries end by themselves. Every operation is atomic.

    Keys are at most 200 characters, values at most 4,096. A lost or unreachable store raises
    `common.errors.Unavailable`: what guards access must fail closed.
    """

    async def put_if_absent(self, key: str, value: str, ttl_s: float) -> bool:
        """Store and return True, or leave what is there (unexpired) and return False."""
        ...

    async def put(self, key: str, value: str, ttl_s: float) -> None:
        """Store, replacing what was there."""
        ...

    async def get(self, key: str) -> str | None:
        """The unexpired value, or None."""
        ...

    async def take(self, key: str) -> str | None:
        """The unexpired value, removed in the same step: of two callers at most one gets it."""
        ...


KEY_CHARS_MAX = 200
VALUE_CHARS_MAX = 4096
"""Source for both: the port's own docstring."""


def check_entry(key: str, value: str) -> None:
    """Raises `ValueError` for an entry beyond the port's sizes: the caller's mistake, not theirs.

    What a stranger sends is hashed or bounded before it becomes a key.
    """
    if len(key) > KEY_CHARS_MAX or len(value) > VALUE_CHARS_MAX:
        raise ValueError("a key has at most 200 characters, a value at most 4,096")


ENTRIES_MAX = 100_000
"""At most some 430 MB, were every entry as large as the port allows."""


class MemorySharedState:
    """Implements `common.shared_state.SharedState` for one process; lost with it.

    Bounded: when it is full of unexpired entries it refuses, for forgetting one would let a used
    challenge or a revoked session live again.
    """

    def __init__(self, clock: Clock, entries_max: int = ENTRIES_MAX) -> None:
        self._clock = clock
        self._entries_max = entries_max
        self._entries: dict[str, tuple[str, float]] = {}
        self._ends: list[tuple[float, str]] = []  # a heap; may name entries since replaced

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
        if len(self._ends) > 2 * self._entries_max:  # so that it costs each put next to nothing
            self._ends = [(until, key) for key, (_, until) in self._entries.items()]
            heapq.heapify(self._ends)

    def _drop_ended(self) -> None:
        now = self._clock.monotonic_s()
        while self._ends and self._ends[0][0] <= now:
            until, key = heapq.heappop(self._ends)
            if key in self._entries and self._entries[key][1] == until:
                del self._entries[key]
