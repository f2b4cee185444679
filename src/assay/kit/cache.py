"""A bounded cache whose entries end by themselves; of several that miss at once, one loads."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from assay.kit.clock import Clock
from assay.kit.singleflight import SingleFlight

T = TypeVar("T")


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
