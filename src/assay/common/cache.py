"""Bounded maps, a cache that loads missing entries, and single flight.

A full map forgets the entry that was written least recently. If many callers want the same thing at
once, one call does the work and all get its result.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Generic, TypeVar

from assay.common.clock import Clock

Loaded = TypeVar("Loaded")


class SingleFlight(Generic[Loaded]):
    """Shares one running call per key; remembers nothing after the call ends.

    The call is a task of its own, so a caller that goes away does not cancel it for the others.
    """

    def __init__(self) -> None:
        self._flights: dict[str, asyncio.Task[Loaded]] = {}

    async def run(self, key: str, work: Callable[[], Awaitable[Loaded]]) -> Loaded:
        """Return the result (or raise the exception) of the one running call for `key`."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.get_running_loop().create_task(self._call(key, work))
            flight.add_done_callback(_retrieve)
            self._flights[key] = flight
        return await asyncio.shield(flight)

    async def _call(self, key: str, work: Callable[[], Awaitable[Loaded]]) -> Loaded:
        try:
            return await work()
        finally:
            del self._flights[key]


def _retrieve(flight: asyncio.Task[Loaded]) -> None:
    """Mark a failure as seen, if all its callers have gone: asyncio need not warn about it."""
    if not flight.cancelled():
        flight.exception()


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def _one(value: object) -> int:
    del value
    return 1


class BoundedMap(Generic[K, T]):
    """A map with a total weight of at most `weight_max`: beyond it, the oldest entry is forgotten.

    Use it for everything that is stored under a key which strangers choose. An entry weighs 1
    unless `weigh` says otherwise; `weigh` must return the same weight for the same value. An entry
    that alone exceeds `weight_max` is not kept. Writing a key again makes it the newest; reading
    does not.
    """

    __slots__ = ("_entries", "_weigh", "_weight", "weight_max")

    def __init__(self, weight_max: int, weigh: Callable[[T], int] = _one) -> None:
        self.weight_max = weight_max
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, T] = OrderedDict()

    def get(self, key: K) -> T | None:
        """Return the value, or None."""
        return self._entries.get(key)

    def put(self, key: K, value: T) -> None:
        """Store the value as the newest entry."""
        self.pop(key)
        self._entries[key] = value
        self._weight += self._weigh(value)
        while self._weight > self.weight_max:
            _, forgotten = self._entries.popitem(last=False)
            self._weight -= self._weigh(forgotten)

    def pop(self, key: K) -> T | None:
        """Remove the entry if it exists; return its value, or None."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._weight = 0

    def items(self) -> Iterator[tuple[K, T]]:
        """Return every entry, the least recently written first."""
        return iter(self._entries.items())

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)


class Cache(Generic[T]):
    """Keeps what was loaded for `ttl_s` seconds, with a total weight of at most `weight_max`.

    `ttl_s` may depend on the loaded value. An entry weighs 1 unless `weigh` says otherwise. The
    oldest entries are removed first; a value that alone exceeds `weight_max` is not kept. A failed
    load is not kept either: everybody who waited for it gets the failure.
    """

    def __init__(
        self,
        clock: Clock,
        ttl_s: float | Callable[[T], float],
        weight_max: int = 1000,
        weigh: Callable[[T], int] = _one,
    ) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._entries: BoundedMap[str, tuple[T, float]] = BoundedMap(
            weight_max, lambda entry: weigh(entry[0])
        )
        self._flights: SingleFlight[T] = SingleFlight()

    async def get(self, key: str, load: Callable[[], Awaitable[T]], sharers: str = "") -> T:
        """Return the cached value of `key`, or what `load` returns now.

        Only callers with the same `sharers` wait for one another's load.
        """
        known = self._entries.get(key)
        if known is not None and known[1] > self._clock.monotonic_s():
            return known[0]
        return await self._flights.run(f"{sharers} {key}", lambda: self._load(key, load))

    def __len__(self) -> int:
        return len(self._entries)

    async def _load(self, key: str, load: Callable[[], Awaitable[T]]) -> T:
        value = await load()
        ttl_s = self._ttl_s(value) if callable(self._ttl_s) else self._ttl_s
        self._entries.put(key, (value, self._clock.monotonic_s() + ttl_s))
        return value
