"""Short-lived facts in this process's memory."""

from collections import OrderedDict

from assay.kit.clock import Clock
from assay.kit.errors import Unavailable


class MemorySharedState:
    """Implements `kit.state.SharedState` for one process; lost with it.

    Bounded: when it is full of unexpired entries it refuses, for forgetting one would let a used
    challenge or a revoked session live again.
    """

    def __init__(self, clock: Clock, entries_max: int = 1_000_000) -> None:
        self._clock = clock
        self._entries_max = entries_max
        self._entries: OrderedDict[str, tuple[str, float]] = OrderedDict()

    async def put_if_absent(self, key: str, value: str, ttl_s: float) -> bool:
        if self._live(key) is not None:
            return False
        self._store(key, value, ttl_s)
        return True

    async def put(self, key: str, value: str, ttl_s: float) -> None:
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
        if key not in self._entries and len(self._entries) >= self._entries_max:
            self._purge()
        self._entries[key] = (value, self._clock.monotonic_s() + ttl_s)

    def _purge(self) -> None:
        now = self._clock.monotonic_s()
        for key in [k for k, (_, until) in self._entries.items() if until <= now]:
            del self._entries[key]
        if len(self._entries) >= self._entries_max:
            raise Unavailable("Too much is going on at once: try again shortly.", retry_after_s=5)
