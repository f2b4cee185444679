"""A limit that several processes keep together, by borrowing slices of it.

A process asks the shared count for a slice, spends it for a second without asking again, and gives
back what it did not use. A unit is counted from when it is lent until 60 seconds after the last
moment it could have been spent, so that all processes together never admit more than the limit in
any window of 60 seconds, whatever is lost on the way. Source: ADR 0012.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol, TypeAlias

from assay.common.clock import Clock
from assay.common.errors import Unavailable

LEASE_S = 1.0
"""How long a slice may be spent, from before it was asked for."""

COUNTED_S = 61
"""Whole seconds a unit counts after the one it was lent in: the window of 60, and the lease."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """What a process asks of one key's count."""

    key: str
    limit: int
    need: int
    """Requests that wait for a unit: they get theirs while there are any."""
    want: int
    """Units asked for in all; what exceeds `need` is lent sparingly, for others may want some."""
    back_second: int = 0
    back_units: int = 0
    """Units lent in that second that were not spent, and now never will be."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the count answers."""

    units: int
    """At most what was wanted; 0 when none are left."""
    left: int
    """Of the limit, after this grant: what nobody holds or has spent."""
    second: int
    """The store's own second the units are counted under."""
    reset_s: float
    """Seconds until the oldest counted unit leaves the window."""


class SharedWindow(Protocol):
    """Counts of units lent, by key and second, on one clock for all who ask."""

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        """One answer to each, in order; each is one atomic step.

        Raises `Unavailable` well within `LEASE_S`. Nothing is ever sent twice: what was given
        back twice would be lent twice.
        """
        ...

    async def check(self) -> None:
        """Raises `Unavailable` unless units can be lent."""
        ...


SWEEP_S = 0.5
"""How often what was not used is given back, and a lost store is tried again."""

STEADY_S = 60.0
PAUSE_MAX_S = 30.0
"""A store that is lost again before it was there for `STEADY_S` is tried again after twice the
time, at most this long: what answers by halves would cost somebody a wait each time."""

REFUSED_S = 0.25
"""How long nobody asks again after the store said that nothing is left."""

WAIT_S = 3.0
"""The longest a request ever waits for a slice."""

SLICE_MAX = 10_000
BATCH_MAX = 500
"""Keys asked about in one exchange with the store."""

KEYS_MAX = 200_000
"""Slices in hand; beyond, the oldest is spent no more, and given back at its end."""

_ROUNDING_S = 1e-6
"""What sums of floats may be off by: a whole second must not become two."""

Remaining: TypeAlias = tuple[int, int]
"""Units left after a request, below zero when it is refused; seconds until the oldest leaves."""

_Waiter: TypeAlias = "asyncio.Future[Remaining | None]"


@dataclass(slots=True)
class _Slice:
    """Units in hand."""

    units: int
    size: int
    second: int
    until_s: float
    left: int
    reset_at_s: float
    refused_until_s: float

    def room(self, now_s: float) -> Remaining:
        """How much is left, as far as is known here."""
        return self.left + self.units, max(0, ceil(self.reset_at_s - now_s - _ROUNDING_S))


@dataclass(slots=True)
class _Asking:
    """Requests that wait for the same key."""

    limit: int
    waiters: list[_Waiter] = field(default_factory=list[_Waiter])


class QuotaLease:
    """The slices this process holds. `run` must be running for `take` to be answered."""

    def __init__(
        self, window: SharedWindow, clock: Clock, on_change: Callable[[Unavailable | None], None]
    ) -> None:
        self._window = window
        self._clock = clock
        self._on_change = on_change
        self._slices: OrderedDict[str, _Slice] = OrderedDict()  # in the order they were lent
        self._ending: deque[tuple[str, _Slice]] = deque()  # the same order, to give back from
        self._asking: OrderedDict[str, _Asking] = OrderedDict()
        self._wake = asyncio.Event()
        self._pause_s, self._try_at_s, self._found_at_s = SWEEP_S, 0.0, -STEADY_S
        self.is_alone = False
        """Whether the shared count is out of reach: then each process counts by itself."""

    def spend(self, key: str) -> Remaining | None:
        """Spend a unit in hand; None when there is none."""
        return self.use(key) if self.has(key) else None

    def has(self, key: str) -> bool:
        """Whether `spend` would find a unit now."""
        lease = self._slices.get(key)
        return lease is not None and lease.units > 0 and self._clock.monotonic_s() < lease.until_s

    def use(self, key: str) -> Remaining | None:
        """Spend the unit that `has` has just found, though its time be over by now."""
        lease = self._slices.get(key)
        if lease is None or not lease.units:
            return None
        lease.units -= 1
        return lease.room(self._clock.monotonic_s())

    def unspend(self, key: str) -> None:
        """Take back a unit just spent, for what was then refused for another reason."""
        lease = self._slices.get(key)
        if lease is not None and lease.units < lease.size:
            lease.units += 1

    async def take(self, key: str, limit: int) -> Remaining | None:
        """Spend a unit, borrowing when none is in hand; None when the process is alone."""
        if self.is_alone:
            return None
        found = self.spend(key)
        if found is not None:
            return found
        lease, now_s = self._slices.get(key), self._clock.monotonic_s()
        if lease is not None and now_s < lease.refused_until_s:
            return -1, lease.room(now_s)[1]
        if len(self._asking) >= KEYS_MAX and key not in self._asking:
            return None  # the store has not answered for long, and who asked may be gone
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._asking.setdefault(key, _Asking(limit)).waiters.append(waiter)
        self._wake.set()
        try:
            async with asyncio.timeout(WAIT_S):
                return await waiter
        except TimeoutError:
            return None

    async def check(self) -> None:
        """Raises `Unavailable` unless the shared count answers."""
        await self._window.check()

    async def run(self) -> None:
        """Ask for those who wait, give back what was not used; for ever."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_S):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            await self.round()

    async def round(self) -> None:
        """One turn of `run`: everything that is to be asked or given back now."""
        if self.is_alone:
            await self._try_again()
            return
        while asked := self._next(everything=False):
            try:
                await self._ask(asked)
            except Unavailable as error:
                self._lose(error)
                return

    async def close(self) -> None:
        """Give back all that is in hand. The store being gone is no matter here."""
        while not self.is_alone and (asked := self._next(everything=True)):
            try:
                await self._ask(asked)
            except Unavailable:
                return

    async def _ask(self, asked: "list[tuple[WindowRequest, _Asking]]") -> None:
        begun_s = self._clock.monotonic_s()
        try:
            grants = await self._window.ask([ask for ask, _ in asked])
            for (ask, asking), grant in zip(asked, grants, strict=True):
                if ask.want:
                    self._receive(ask, asking, grant, begun_s + LEASE_S)
        except BaseException:
            _release(asking for _, asking in asked)
            raise

    def _receive(self, ask: WindowRequest, asking: _Asking, grant: Grant, until_s: float) -> None:
        """Those who wait first, in their order; the rest is kept in hand."""
        now_s = self._clock.monotonic_s()
        refused_until_s = 0.0 if grant.units else now_s + min(REFUSED_S, grant.reset_s)
        lease = _Slice(
            units=grant.units,
            size=grant.units,
            second=grant.second,
            until_s=until_s,
            left=grant.left,
            reset_at_s=now_s + grant.reset_s,
            refused_until_s=refused_until_s,
        )
        self._hold(ask.key, lease)
        if grant.units and now_s >= until_s:  # came too late to be spent: once more
            again = self._asking.setdefault(ask.key, _Asking(ask.limit))
            again.waiters[:0] = asking.waiters
            return
        later = self._asking.pop(ask.key, None)  # came while we asked
        for waiter in asking.waiters:
            if not waiter.done():  # who went away leaves its unit to the others
                waiter.set_result(_serve(lease, now_s))
        for waiter in later.waiters if later is not None else ():
            if waiter.done():
                continue
            if lease.units:
                waiter.set_result(_serve(lease, now_s))
            else:
                self._asking.setdefault(ask.key, _Asking(ask.limit)).waiters.append(waiter)

    def _hold(self, key: str, lease: _Slice) -> None:
        self._slices[key] = lease
        self._slices.move_to_end(key)
        self._ending.append((key, lease))
        if len(self._slices) > KEYS_MAX:
            self._slices.popitem(last=False)
        if len(self._ending) > KEYS_MAX:
            _, oldest = self._ending.popleft()
            oldest.units = 0  # nobody gives them back: they leave the shared window by themselves

    def _next(self, *, everything: bool) -> "list[tuple[WindowRequest, _Asking]]":
        """What is asked in one exchange: for those who wait, and what is to be given back."""
        now_s = self._clock.monotonic_s()
        asked: list[tuple[WindowRequest, _Asking]] = []
        while self._asking and len(asked) < BATCH_MAX:
            key, asking = self._asking.popitem(last=False)
            need = sum(not waiter.done() for waiter in asking.waiters)
            if need:
                asked.append((self._asked(key, asking.limit, need, now_s), asking))
        while self._ending and len(asked) < BATCH_MAX:
            key, lease = self._ending[0]
            if now_s < lease.until_s and not everything:
                break
            self._ending.popleft()
            if lease.units:  # held or not, it is over, and is this process's to give back
                back, lease.units = lease.units, 0
                asked.append((WindowRequest(key, 1, 0, 0, lease.second, back), _Asking(1)))
        self._forget(now_s)
        return asked

    def _asked(self, key: str, limit: int, need: int, now_s: float) -> WindowRequest:
        """As much as the last second's need shows, and twice that where it was not enough."""
        lease = self._slices.get(key)
        if lease is None:
            return WindowRequest(key, limit, need, need)
        back, lease.units = lease.units, 0
        is_short = not back and now_s < lease.until_s
        want = min(2 * lease.size if is_short else lease.size - back, SLICE_MAX)
        return WindowRequest(key, limit, need, max(need, want), lease.second, back)

    def _forget(self, now_s: float) -> None:
        """A slice is remembered for one more lease, for the sake of its size."""
        while self._slices:
            key, lease = next(iter(self._slices.items()))
            if now_s < lease.until_s + LEASE_S:
                return
            del self._slices[key]

    def _lose(self, error: Unavailable) -> None:
        """What was in hand is forgotten: it leaves the shared window by itself."""
        self.is_alone = True
        now_s = self._clock.monotonic_s()
        is_steady = now_s - self._found_at_s >= STEADY_S
        self._pause_s = SWEEP_S if is_steady else min(2 * self._pause_s, PAUSE_MAX_S)
        self._try_at_s = now_s + self._pause_s
        _release(self._asking.values())
        self._asking.clear()
        self._slices.clear()
        self._ending.clear()
        self._on_change(error)

    async def _try_again(self) -> None:
        if self._clock.monotonic_s() < self._try_at_s:
            return
        try:
            await self._window.check()
        except Unavailable:
            return
        self.is_alone, self._found_at_s = False, self._clock.monotonic_s()
        self._on_change(None)


def _serve(lease: _Slice, now_s: float) -> Remaining:
    """A unit of the slice, or the refusal of one."""
    if not lease.units:
        return -1, lease.room(now_s)[1]
    lease.units -= 1
    return lease.room(now_s)


def _release(asking: Iterable[_Asking]) -> None:
    """Nobody is left waiting for what will not be answered."""
    for one in asking:
        for waiter in one.waiters:
            if not waiter.done():
                waiter.set_result(None)
