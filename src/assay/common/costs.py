"""Counts what callers cost the service over the last day, and enforces their quotas.

A cost is counted for its bearer: the operator whose credential a request carries, or else the
network of the caller's address. The request's handler names the bearer once (`serve_for`), and
everything that is done for the request counts for it. Work that no request caused is counted for
`SERVICE`.

Counting is in memory. The counts are written in batches to a store that all processes share and
that survives restarts; from it each process learns what its bearers have spent elsewhere. In each
process, one bearer can therefore exceed a quota by what it spends between two writes.
"""

import asyncio
import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, inf
from typing import ClassVar, Final, NamedTuple, Protocol

from assay.common.addresses import caller_of
from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.errors import TooMany
from assay.common.tasks import finish

DAY_S: Final = 86_400.0


class CostKey(NamedTuple):
    """The key of one count; `day` is a UTC calendar day, in days since 1970-01-01."""

    name: str
    cost: str
    day: int


class CostStore(Protocol):
    """Stores the counts of all processes on one database."""

    async def add(self, counts: Mapping[CostKey, int]) -> Mapping[CostKey, int]:
        """Add to the counts in one transaction.

        Returns every count of the same bearers on those days and the days before them.
        """
        ...

    async def largest(self, days: Collection[int], limit: int) -> Mapping[CostKey, int]:
        """Return the largest counts of these days: at most `limit`, as many of each kind."""
        ...


@dataclass(slots=True)
class CostWindow:
    """The counts of one UTC day and of the day before."""

    day: int
    current: int = 0
    previous: int = 0
    unwritten: int = 0
    """The part of `current` that the store does not have yet."""
    unwritten_before: int = 0
    """The part of `previous` that the store does not have yet."""

    def at(self, now_s: float) -> float:
        """Return the sum over the last 24 hours; the day before is taken as evenly spread."""
        days = int(now_s // DAY_S) - self.day
        if days > 0:  # never back: setting a clock back must not reset counts
            is_next = days == 1
            self.previous = self.current if is_next else 0
            self.unwritten_before = self.unwritten if is_next else 0
            self.current = self.unwritten = 0
            self.day += days
        return self.current + self.previous * min(1.0, 1 + self.day - now_s / DAY_S)

    def take(self) -> Iterator[tuple[int, int]]:
        """Return the days with their unwritten counts, which count as written from now on."""
        if self.unwritten_before:
            yield self.day - 1, self.unwritten_before
        if self.unwritten:
            yield self.day, self.unwritten
        self.unwritten = self.unwritten_before = 0

    def give_back(self, day: int, count: int) -> None:
        """Mark the taken counts as unwritten again: writing them failed."""
        if day == self.day:
            self.unwritten += count
        elif day == self.day - 1:
            self.unwritten_before += count

    def learn(self, day: int, written: int) -> None:
        """Take over a day's count of the store, and add what was counted here since."""
        if day == self.day:
            self.current = written + self.unwritten
        elif day == self.day - 1:
            self.previous = written + self.unwritten_before

    def wait_s(self, now_s: float, quota: int) -> float:
        """Return the seconds until one more unit fits."""
        left_s = (self.day + 1) * DAY_S - now_s
        if self.current < quota:
            room = quota - 1 - self.current
            return left_s - DAY_S * room / max(1, self.previous)
        return left_s + DAY_S * (1 - (quota - 1) / max(1, self.current))


BEARERS_MAX = 50_000
"""Bearers that are remembered; the one whose last cost is oldest is forgotten first."""

SHOWN = 10

BATCH_MAX: Final = 1000
"""Counts written at once; those with the largest share of their quota go first."""

LOADED_MAX: Final = 50_000
"""Counts read at a start: the largest of each kind."""

NAME_CHARS_MAX: Final = 100
EVERYBODY: Final = "everybody"
"""The name under which the costs of all bearers are summed."""


class Cost(StrEnum):
    """Kinds of cost."""

    RPC_CALLS = "rpc_calls"
    """JSON-RPC requests to chain nodes."""
    EVALUATIONS = "evaluations"
    """Evaluations that ran."""
    UNPROVEN_EVALUATIONS = "unproven_evaluations"
    """Those of key agents whose address nobody has proven."""
    ROWS = "rows"
    """Rows added to the database."""
    ACCOUNT_CHANGES = "account_changes"
    """Changes of an account, its keys, wrappers and webhooks; each is a row of the audit trail."""
    DISK_BYTES = "disk_bytes"
    """Bytes of snapshots and evidence."""


class QuotaExceeded(TooMany):
    """A bearer's daily quota is used up; `quota` names it."""

    code: ClassVar[str] = "quota_exceeded"


@dataclass(frozen=True, slots=True)
class Bearer:
    """The party that a cost is counted for, and whether quotas apply to it."""

    name: str
    is_limited: bool = True


SERVICE = Bearer("service", is_limited=False)
"""The bearer of work that no request caused."""

_bearer: ContextVar[Callable[[], Bearer] | None] = ContextVar("assay_cost_bearer", default=None)


def serve_for(bearer: Callable[[], Bearer]) -> None:
    """Count costs of this context, from here on, for what `bearer` returns at that moment."""
    _bearer.set(bearer)


def address_bearer(client_address: str) -> Bearer:
    """Return the network of an address: one IPv4 address, or an IPv6 network of 64 bits."""
    return Bearer(f"address {caller_of(client_address)}"[:NAME_CHARS_MAX])


class CostLedger:
    """Counts costs by bearer over a sliding day, in bounded memory. One per process.

    Without a store it counts for this process alone, and forgets the counts when the process ends.
    """

    def __init__(
        self,
        clock: Clock,
        quotas: Mapping[Cost, int] | None = None,
        bearers_max: int = BEARERS_MAX,
        store: CostStore | None = None,
    ) -> None:
        self.quotas = dict(quotas or {})
        self._clock = clock
        self._store = store
        self._windows: BoundedMap[str, dict[str, CostWindow]] = BoundedMap(bearers_max)
        self._totals: dict[str, CostWindow] = {}
        self._unwritten: BoundedMap[tuple[str, str], CostWindow] = BoundedMap(2 * bearers_max)
        self._turn = asyncio.Lock()
        self._offset_s = 0.0
        self._set_clock()

    def charge(self, cost: Cost, amount: int = 1, bearer: Bearer | None = None) -> None:
        """Count a cost that has been incurred; refuse nothing."""
        name = (bearer or current_bearer()).name
        now_s = self._now_s()
        windows = self._windows.get(name) or {}
        self._windows.put(name, windows)
        for where, whose in ((windows, name), (self._totals, EVERYBODY)):
            window = where.get(cost)
            if window is None:
                window = where[cost] = CostWindow(int(now_s // DAY_S))
            window.at(now_s)
            window.current += amount
            if not window.unwritten and self._store is not None:
                self._unwritten.put((whose, cost), window)
            window.unwritten += amount

    def used(self, cost: Cost, bearer: Bearer | None = None) -> int:
        """Return what the bearer has cost in the last day."""
        windows = self._windows.get((bearer or current_bearer()).name)
        window = windows.get(cost) if windows is not None else None
        return 0 if window is None else _whole(window.at(self._now_s()))

    def has_left(self, cost: Cost, bearer: Bearer | None = None) -> bool:
        """Return whether the bearer's quota has something left."""
        quota, bearer = self.quotas.get(cost), bearer or current_bearer()
        return quota is None or not bearer.is_limited or self.used(cost, bearer) < quota

    def require(self, *costs: Cost, bearer: Bearer | None = None) -> None:
        """Raise `QuotaExceeded` if one of the bearer's quotas is used up."""
        whose = bearer or current_bearer()
        for cost in costs:
            if not self.has_left(cost, whose):
                raise self._exceeded(cost, self.quotas[cost], whose)

    def totals(self) -> Mapping[Cost, int]:
        """Return what all bearers together have cost in the last day."""
        now_s = self._now_s()
        found = self._totals
        return {cost: _whole(found[cost].at(now_s)) if cost in found else 0 for cost in Cost}

    def largest(self, cost: Cost) -> list[tuple[str, int]]:
        """Return the bearers that cost most, with their costs."""
        now_s = self._now_s()
        rows = (
            (_whole(windows[cost].at(now_s)), name)
            for name, windows in self._windows.items()
            if cost in windows
        )
        return [(name, used) for used, name in sorted(rows, reverse=True)[:SHOWN]]

    async def load(self) -> None:
        """Read what was spent before this process started. Raises like the store."""
        if self._store is None:
            return
        now_s = self._now_s()
        today = int(now_s // DAY_S)
        found = await self._store.largest((today, today - 1), LOADED_MAX)
        for key in found:
            if key.name != EVERYBODY and key.name not in self._windows:
                self._windows.put(key.name, {})
        self._learn(found, now_s)

    async def flush(self) -> None:
        """Write a batch of new counts, and read those of other processes.

        A failure loses nothing. If the database does not say whether a batch was written, the batch
        may be counted twice.
        """
        self._set_clock()
        async with self._turn:
            await self._flush_some()

    async def close(self) -> None:
        """Write everything that was counted."""
        async with self._turn:
            while len(self._unwritten) and self._store is not None:
                await self._flush_some()

    async def _flush_some(self) -> None:
        windows = self._next_windows()
        batch = {
            CostKey(name, cost, day): count
            for (name, cost), window in windows.items()
            for day, count in window.take()
        }
        if not batch or self._store is None:
            return
        await finish(self._write(self._store, windows, batch))

    async def _write(
        self,
        store: CostStore,
        windows: Mapping[tuple[str, str], CostWindow],
        batch: Mapping[CostKey, int],
    ) -> None:
        try:
            found = await store.add(batch)
        except BaseException:
            for (name, cost, day), count in batch.items():
                windows[name, cost].give_back(day, count)
                self._unwritten.put((name, cost), windows[name, cost])
            raise
        self._learn(found, self._now_s())

    def _next_windows(self) -> dict[tuple[str, str], CostWindow]:
        """Remove and return what is written next."""
        waiting: Iterable[tuple[tuple[str, str], CostWindow]] = self._unwritten.items()
        if len(self._unwritten) > BATCH_MAX:
            waiting = heapq.nlargest(BATCH_MAX, waiting, key=self._part_of_quota)
        taken = dict(waiting)
        for key in taken:
            self._unwritten.pop(key)
        # A name that a database cannot store stays in memory, so that it does not block the others.
        return {key: window for key, window in taken.items() if key[0].isprintable()}

    def _part_of_quota(self, row: tuple[tuple[str, str], CostWindow]) -> float:
        (name, cost), window = row
        if name == EVERYBODY:
            return inf
        return window.unwritten / self.quotas.get(Cost(cost), 1)

    def _learn(self, found: Mapping[CostKey, int], now_s: float) -> None:
        """Take over the store's counts, and add what was counted since the read began."""
        for key, written in found.items():
            where = self._totals if key.name == EVERYBODY else self._windows.get(key.name)
            if where is None:
                continue
            window = where.get(key.cost)
            if window is None:
                window = where[key.cost] = CostWindow(int(now_s // DAY_S))
            window.at(now_s)
            window.learn(key.day, written)

    def _now_s(self) -> float:
        """Return seconds since 1970-01-01, on a clock that does not jump between two flushes."""
        return self._clock.monotonic_s() + self._offset_s

    def _set_clock(self) -> None:
        self._offset_s = self._clock.now().timestamp() - self._clock.monotonic_s()

    def __len__(self) -> int:
        return len(self._windows)

    def _exceeded(self, cost: Cost, quota: int, bearer: Bearer) -> QuotaExceeded:
        windows = self._windows.get(bearer.name) or {}
        now_s = self._now_s()
        window = windows.get(cost) or CostWindow(int(now_s // DAY_S))
        what = cost.replace("_", " ")
        return QuotaExceeded(
            f"Your quota of {quota} {what} a day is used up.",
            retry_after_s=max(1, ceil(window.wait_s(now_s, quota))),
            quota=cost.value,
            limit=quota,
        )


def current_bearer() -> Bearer:
    """Return the bearer of costs in this context."""
    ask = _bearer.get()
    return SERVICE if ask is None else ask()


def _whole(used: float) -> int:
    return ceil(used - 1e-6)  # tolerance for rounding in fractions of a day
