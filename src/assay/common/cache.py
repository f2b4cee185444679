"""Maps with a bound, a cache that loads what it misses, and single flight.

Of a full map the least recently written entry goes first. Of many callers that want the same thing
at once, one does the work and all get its result.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Generic, TypeVar

from assay.common.clock import Clock

Loaded = TypeVar("Loaded")


class SingleFlight(Generic[Loaded]):
    """Shares one running call per key; nothing is remembered after it ends.

    A caller that goes away does not take the work from the others: the call itself is a task
    of its own.
    """

    def __init__(self) -> None:
        self._flights: dict[str, asyncio.Task[Loaded]] = {}

    async def run(self, key: str, work: Callable[[], Awaitable[Loaded]]) -> Loaded:
        """The result (or the exception) of the one call of `work` that is in flight for `key`."""
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
    """A failure that every caller has gone away from is nobody's; asyncio need not warn of it."""
    if not flight.cancelled():
        flight.exception()


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def _one(value: object) -> int:
    del value
    return 1


class BoundedMap(Generic[K, T]):
    """A map of at most `weight_max` of weight: adding beyond it forgets what was written first.

    For everything that is kept by a key which a stranger chooses. An entry weighs 1 unless `weigh`
    says otherwise, of the same value always the same; one that alone is too heavy is not kept.
    Writing a key again makes it the newest; reading it does not.
    """

    __slots__ = ("_entries", "_weigh", "_weight", "weight_max")

    def __init__(self, weight_max: int, weigh: Callable[[T], int] = _one) -> None:
        self.weight_max = weight_max
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, T] = OrderedDict()

    def get(self, key: K) -> T | None:
        """The value, or None."""
        return self._entries.get(key)

    def put(self, key: K, value: T) -> None:
        """Store, as the newest entry."""
        self.pop(key)
        self._entries[key] = value
        self._weight += self._weigh(value)
        while self._weight > self.weight_max:
            _, forgotten = self._entries.popitem(last=False)
            self._weight -= self._weigh(forgotten)

    def pop(self, key: K) -> T | None:
        """Remove the entry, if it is there; returns its value."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._weight = 0

    def items(self) -> Iterator[tuple[K, T]]:
        """Every entry, the one written least recently first."""
        return iter(self._entries.items())

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)


class Cache(Generic[T]):
    """Remembers what was loaded for `ttl_s` seconds, at most `weight_max` of it.

    `ttl_s` may depend on what was loaded. An entry weighs 1 unless `weigh` says otherwise; the
    oldest go first, and what alone is too heavy is not kept. A failed load is not remembered:
    everybody who waited for it gets the failure.
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
        """What is remembered of `key`, else what `load` gives now.

        Only those who name the same `sharers` wait for one another's load.
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
