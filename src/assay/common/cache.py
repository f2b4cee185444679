"""Bounded maps, a cache that loads missing entries and outlives its source, and single flight.

A full map forgets the entry that was written least recently. If many callers want the same thing at
once, one call does the work and all get its result.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Final, Generic, TypeVar

from assay.common.clock import Clock
from assay.common.errors import ServiceError, SourceAway, Unavailable

Loaded = TypeVar("Loaded")


class SingleFlight(Generic[Loaded]):
    """Shares one running call per key; remembers nothing after the call ends.

    The call is a task of its own, so a caller that goes away does not cancel it for the others.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Task[Loaded]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[Loaded]]) -> Loaded:
        """Return the result (or raise the exception) of the one running call for `key`."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.get_running_loop().create_task(self._call(key, work))
            flight.add_done_callback(_retrieve)
            self._flights[key] = flight
        return await asyncio.shield(flight)

    async def _call(self, key: Hashable, work: Callable[[], Awaitable[Loaded]]) -> Loaded:
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

    __slots__ = ("_entries", "_weigh", "_weight", "find", "weight_max")

    def __init__(self, weight_max: int, weigh: Callable[[T], int] = _one) -> None:
        self.weight_max = weight_max
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, T] = OrderedDict()
        self.find: Callable[[K], T | None] = self._entries.get
        """`get` for code that runs for every request."""

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


PATIENCE_S: Final = 0.5
"""Longest wait for a source when its last value may be used instead."""

STEP_S: Final = 1.0
"""Seconds for which a last known value is used before its source is asked again."""


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T
    read_at_s: float
    due_s: float
    """When its source is asked again."""
    doubts: int
    """How often everything had been doubted when it was read."""
    is_stale: bool = False
    """Whether its source was asked since, and did not answer."""


class Cache(Generic[T]):
    """Keeps what was loaded for `ttl_s` seconds, with a total weight of at most `weight_max`.

    `ttl_s` may depend on the loaded value. An entry weighs 1 unless `weigh` says otherwise. The
    oldest entries are removed first; a value that alone exceeds `weight_max` is not kept. A failed
    load is not kept either: everybody who waited for it gets the failure.

    With `grace_s`, the last value is used until it is so old while its source does not answer, that
    is while a load raises `SourceAway` or takes longer than `PATIENCE_S`. Any other refusal of a
    load removes the value: what was deleted or revoked never comes back.
    """

    def __init__(
        self,
        clock: Clock,
        ttl_s: float | Callable[[T], float],
        weight_max: int = 1000,
        weigh: Callable[[T], int] = _one,
        *,
        grace_s: float = 0.0,
        shares_first: bool = True,
    ) -> None:
        """Callers share the load of a value that is not known yet if `shares_first`."""
        self._clock = clock
        self._ttl_s = ttl_s
        self._shares_first = shares_first
        self._grace_s = grace_s
        self._entries: BoundedMap[Hashable, _Entry[T]] = BoundedMap(
            weight_max, lambda entry: weigh(entry.value)
        )
        self._find = self._entries.find
        self._flights: SingleFlight[T] = SingleFlight()
        self._doubts = self._removals = 0

    def fresh(self, key: Hashable) -> T | None:
        """Return the value that may be used without asking its source, or None. No I/O."""
        entry = self._find(key)
        if (
            entry is not None
            and entry.due_s > self._clock.monotonic_s()
            and entry.doubts == self._doubts
        ):
            return entry.value
        return None

    def last(self, key: Hashable) -> T | None:
        """Return the value as it was last read, however old, or None. No I/O."""
        entry = self._find(key)
        return None if entry is None else entry.value

    def age_s(self, key: Hashable) -> float:
        """Return how long ago the value was read; infinite if it is not kept."""
        entry = self._find(key)
        return inf if entry is None else self._clock.monotonic_s() - entry.read_at_s

    def stale_s(self, key: Hashable) -> float | None:
        """Return the age of a value whose source does not answer; None for any other."""
        entry = self._find(key)
        if entry is None or not entry.is_stale:
            return None
        return self._clock.monotonic_s() - entry.read_at_s

    async def get(self, key: Hashable, load: Callable[[], Awaitable[T]], sharers: str = "") -> T:
        """Return the cached value of `key`, or what `load` returns now.

        Only callers with the same `sharers` wait for one another's load.
        """
        entry = self._find(key)
        if entry is not None and self._is_fresh(entry):
            return entry.value
        return await self.ask(key, load, sharers)

    async def ask(self, key: Hashable, load: Callable[[], Awaitable[T]], sharers: str = "") -> T:
        """Return what `load` returns now, or the last value if its source does not answer."""
        removals, known = self._removals, self._find(key)
        is_first = known is None or self._is_over(known)
        if is_first and not self._shares_first:
            return await self._load(key, load, removals)
        loading = self._flights.run(
            (sharers, key, removals), lambda: self._load(key, load, removals)
        )
        if is_first:
            return await loading
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await loading
        except (SourceAway, TimeoutError):
            entry = self._find(key)
            if entry is None or self._is_over(entry):  # it was removed meanwhile
                raise SourceAway("This cannot be answered now.", retry_after_s=5) from None
            if entry is known:
                entry.is_stale, entry.doubts = True, self._doubts
                entry.due_s = self._clock.monotonic_s() + STEP_S
            return entry.value

    def remove(self, key: Hashable) -> None:
        """Never use this value again, nor what running loads return."""
        self._removals += 1
        self._entries.pop(key)

    def remove_where(self, is_out: Callable[[T], bool]) -> None:
        """Remove every value of which that holds."""
        self._removals += 1
        for key in [key for key, entry in self._entries.items() if is_out(entry.value)]:
            self._entries.pop(key)

    def doubt(self) -> None:
        """Ask the source about every value before its next use: something may have changed."""
        self._doubts += 1

    def __len__(self) -> int:
        return len(self._entries)

    def _is_fresh(self, entry: _Entry[T]) -> bool:
        return entry.due_s > self._clock.monotonic_s() and entry.doubts == self._doubts

    def _is_over(self, entry: _Entry[T]) -> bool:
        return self._clock.monotonic_s() - entry.read_at_s >= self._grace_s

    async def _load(self, key: Hashable, load: Callable[[], Awaitable[T]], removals: int) -> T:
        doubts = self._doubts
        try:
            value = await load()
        except Unavailable:
            raise
        except ServiceError:
            self._entries.pop(key)
            raise
        if removals == self._removals:  # otherwise what was read may have just changed
            now_s = self._clock.monotonic_s()
            ttl_s = self._ttl_s(value) if callable(self._ttl_s) else self._ttl_s
            self._entries.put(key, _Entry(value, now_s, now_s + ttl_s, doubts))
        return value
