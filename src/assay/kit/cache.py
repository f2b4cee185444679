"""A bounded cache whose entries end by themselves; of several that miss at once, one loads."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from assay.kit.clock import Clock
from assay.kit.singleflight import SingleFlight

T = TypeVar("T")


class Cache(Generic[T]):
    """Remembers what was loaded for `ttl_s` seconds, at most `entries_max` of it.

    A failed load is not remembered: everybody who waited for it gets the failure.
    """

    def __init__(self, clock: Clock, ttl_s: float, entries_max: int = 10_000) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._entries_max = entries_max
        self._entries: OrderedDict[str, tuple[T, float]] = OrderedDict()
        self._flights: SingleFlight[T] = SingleFlight()

    async def get(self, key: str, load: Callable[[], Awaitable[T]]) -> T:
        """What is remembered of `key`, else what `load` gives now."""
        known = self._entries.get(key)
        if known is not None and known[1] > self._clock.monotonic_s():
            return known[0]
        return await self._flights.run(key, lambda: self._load(key, load))

    async def _load(self, key: str, load: Callable[[], Awaitable[T]]) -> T:
        value = await load()
        self._entries[key] = (value, self._clock.monotonic_s() + self._ttl_s)
        self._entries.move_to_end(key)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)
        return value
