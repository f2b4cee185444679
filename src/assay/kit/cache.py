"""Maps with a bound: least recently written first out; and a cache that loads what it misses."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import Generic, TypeVar

from assay.kit.clock import Clock
from assay.kit.singleflight import SingleFlight

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class BoundedMap(Generic[K, T]):
    """A map of at most `entries_max` entries: adding one more forgets the one written first.

    For everything that is kept by a key which a stranger chooses. Writing a key again makes it the
    newest; reading it does not. `evicted` hears of every entry that the bound forgets.
    """

    __slots__ = ("_entries", "_evicted", "entries_max")

    def __init__(self, entries_max: int, evicted: Callable[[K, T], object] | None = None) -> None:
        self.entries_max = entries_max
        self._evicted = evicted
        self._entries: OrderedDict[K, T] = OrderedDict()

    def get(self, key: K) -> T | None:
        """The value, or None."""
        return self._entries.get(key)

    def put(self, key: K, value: T) -> None:
        """Store, as the newest entry."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self.entries_max:
            forgotten = self._entries.popitem(last=False)
            if self._evicted is not None:
                self._evicted(*forgotten)

    def pop(self, key: K) -> T | None:
        """Remove the entry, if it is there; returns its value."""
        return self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove every entry."""
        self._entries.clear()

    def oldest(self) -> tuple[K, T] | None:
        """The entry written least recently, or None."""
        for entry in self._entries.items():
            return entry
        return None

    def items(self) -> Iterator[tuple[K, T]]:
        """Every entry, the one written least recently first."""
        return iter(self._entries.items())

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)


def _one(value: object) -> int:
    del value
    return 1


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
        self._weight_max = weight_max
        self._weigh = weigh
        self._weight = 0
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
        ttl_s = self._ttl_s(value) if callable(self._ttl_s) else self._ttl_s
        self._forget(key)
        self._entries[key] = (value, self._clock.monotonic_s() + ttl_s)
        self._weight += self._weigh(value)
        while self._weight > self._weight_max:
            self._forget(next(iter(self._entries)))
        return value

    def _forget(self, key: str) -> None:
        known = self._entries.pop(key, None)
        if known is not None:
            self._weight -= self._weigh(known[0])
