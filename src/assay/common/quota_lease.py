"""A limit that several processes share, by leasing slices of it.

A process asks the shared count for a slice, spends it for a second without asking again, and
returns what it did not use. A unit counts from when it is lent until 60 seconds after the last
moment at which it could have been spent. All processes together therefore never admit more than the
limit in any 60 seconds, whatever is lost on the way. Source: ADR 0012.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, Protocol, TypeAlias

from assay.common.clock import Clock
from assay.common.errors import Unavailable

LEASE_S = 1.0
"""Seconds that a slice may be spent, from before it was asked for."""

COUNTED_S = 61
"""Whole seconds that a unit counts after the one it was lent in: the window of 60, and the
lease."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """What a process asks of one key's count."""

    key: str
    limit: int
    need: int
    """Requests that wait for a unit: they get theirs while there are any."""
    want: int
    """Units asked for in all. Those beyond `need` are lent sparingly, because others may want
    some."""
    back_second: int = 0
    back_units: int = 0
    """Units lent in that second that were not spent, and can no longer be."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer of the count."""

    units: int
    """Units granted, at most what was wanted; 0 if none are left."""
    left: int
    """Units of the limit that nobody holds or has spent after this grant."""
    second: int
    """The store's own second under which the units are counted."""
    reset_s: float
    """Seconds until the oldest counted unit leaves the window."""


class SharedWindow(Protocol):
    """Counts of lent units, by key and second, on one clock for all processes."""

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        """Return one answer to each request, in order; each is one atomic step.

        Raises `Unavailable` well within `LEASE_S`. It sends nothing twice, because units that are
        returned twice would be lent twice.
        """
        ...

    async def check(self) -> None:
        """Raise `Unavailable` unless units can be lent."""
        ...


SWEEP_S = 0.5
"""Seconds between returning unused units, and between trials of a lost store."""

STEADY_S = 60.0
PAUSE_MAX_S = 30.0
"""If a store is lost again within `STEADY_S`, the pause before the next trial doubles, up to this
many seconds: each trial of a store that half works delays somebody."""

REFUSED_S = 0.25
"""Seconds without a new question after the store said that nothing is left."""

WAIT_S = 3.0
"""Longest time that a request waits for a slice."""

SLICE_MAX = 10_000
BATCH_MAX = 500
"""Keys in one exchange with the store."""

KEYS_MAX = 200_000
"""Slices held at once. Beyond that, the oldest is no longer spent, and is returned at its end."""

_ROUNDING_S = 1e-6
"""Tolerance for rounding in sums of floats: one whole second must not become two."""

Remaining: TypeAlias = tuple[int, int]
"""Units left after a request (below zero if it is refused), and seconds until the oldest leaves."""

_Waiter: TypeAlias = "asyncio.Future[Remaining | None]"


@dataclass(slots=True)
class _Slice:
    """A leased slice."""

    units: int
    size: int
    second: int
    until_s: float
    left: int
    reset_at_s: float
    refused_until_s: float

    def room(self, now_s: float) -> Remaining:
        """Return the units that are left, as far as this process knows."""
        return self.left + self.units, max(0, ceil(self.reset_at_s - now_s - _ROUNDING_S))


@dataclass(slots=True)
class _Asking:
    """Requests that wait for the same key."""

    limit: int
    waiters: list[_Waiter] = field(default_factory=list[_Waiter])


class QuotaLease:
    """The slices that this process holds. `take` is answered only while `run` is running."""

    def __init__(
        self,
        window: SharedWindow,
        clock: Clock,
        on_change: Callable[[Unavailable | None], None],
        name: str = "valkey",
    ) -> None:
        """Lease from `window`; `name` is that of the store, for operators."""
        self.name = name
        self._window = window
        self._clock = clock
        self._on_change = on_change
        self._slices: OrderedDict[str, _Slice] = OrderedDict()  # in the order they were lent
        self._ending: deque[tuple[str, _Slice]] = deque()  # the same order, to give back from
        self._asking: OrderedDict[str, _Asking] = OrderedDict()
        self._wake = asyncio.Event()
        self._pause_s, self._try_at_s, self._found_at_s = SWEEP_S, 0.0, -STEADY_S
        self.is_local = False
        """Whether the shared count is unreachable: then each process counts by itself."""

    def spend(self, key: str) -> Remaining | None:
        """Spend a unit of a held slice; return None if there is none."""
        return self.use(key) if self.has(key) else None

    def has(self, key: str) -> bool:
        """Return whether `spend` would find a unit now."""
        lease = self._slices.get(key)
        return lease is not None and lease.units > 0 and self._clock.monotonic_s() < lease.until_s

    def use(self, key: str) -> Remaining | None:
        """Spend the unit that `has` has just found, even if its time has ended since."""
        lease = self._slices.get(key)
        if lease is None or not lease.units:
            return None
        lease.units -= 1
        return lease.room(self._clock.monotonic_s())

    def release(self, key: str) -> None:
        """Take back a unit that was just spent, if the request was refused for another reason."""
        lease = self._slices.get(key)
        if lease is not None and lease.units < lease.size:
            lease.units += 1

    async def take(self, key: str, limit: int) -> Remaining | None:
        """Spend a unit, leasing if none is held; return None if the store is unreachable."""
        if self.is_local:
            return None
        found = self.spend(key)
        if found is not None:
            return found
        lease, now_s = self._slices.get(key), self._clock.monotonic_s()
        if lease is not None and now_s < lease.refused_until_s:
            return -1, lease.room(now_s)[1]
        if len(self._asking) >= KEYS_MAX and key not in self._asking:
            return None  # the store has not answered for long, and the caller may be gone
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._asking.setdefault(key, _Asking(limit)).waiters.append(waiter)
        self._wake.set()
        try:
            async with asyncio.timeout(WAIT_S):
                return await waiter
        except TimeoutError:
            return None

    async def check(self) -> None:
        """Raise `Unavailable` unless the shared count answers."""
        await self._window.check()

    async def begin(self) -> None:
        """Ask the shared count once, before `run`; without it this process begins by itself."""
        try:
            await self.check()
        except Unavailable as error:
            self._lose(error)

    async def run(self) -> None:
        """Ask for waiting requests and return unused units, for ever."""
        while True:
            try:
                async with asyncio.timeout(SWEEP_S):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            await self.round()

    async def round(self) -> None:
        """Do one round of `run`: ask for, and return, everything that is due."""
        if self.is_local:
            await self._try_again()
            return
        while asked := self._next(everything=False):
            try:
                await self._ask(asked)
            except Unavailable as error:
                self._lose(error)
                return

    async def close(self) -> None:
        """Give all held units back. A lost store is ignored here."""
        while not self.is_local and (asked := self._next(everything=True)):
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
        """Serve waiting requests first, in their order; keep the rest."""
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
        if grant.units and now_s >= until_s:  # came too late to be spent: ask again
            again = self._asking.setdefault(ask.key, _Asking(ask.limit))
            again.waiters[:0] = asking.waiters
            return
        later = self._asking.pop(ask.key, None)  # a request that came while we asked
        for waiter in asking.waiters:
            if not waiter.done():  # a caller that went away leaves its unit to the others
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
            oldest.units = 0  # nobody returns them: they leave the shared window by themselves

    def _next(self, *, everything: bool) -> "list[tuple[WindowRequest, _Asking]]":
        """Return the questions of one exchange: for waiting requests, and units to be returned."""
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
        """Return as much as the last second needed, and twice that if it was not enough."""
        lease = self._slices.get(key)
        if lease is None:
            return WindowRequest(key, limit, need, need)
        back, lease.units = lease.units, 0
        is_short = not back and now_s < lease.until_s
        want = min(2 * lease.size if is_short else lease.size - back, SLICE_MAX)
        return WindowRequest(key, limit, need, max(need, want), lease.second, back)

    def _forget(self, now_s: float) -> None:
        """Keep a slice for one more lease, because its size shows the need."""
        while self._slices:
            key, lease = next(iter(self._slices.items()))
            if now_s < lease.until_s + LEASE_S:
                return
            del self._slices[key]

    def _lose(self, error: Unavailable) -> None:
        """Forget the held units: they leave the shared window by themselves."""
        self.is_local = True
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
        self.is_local, self._found_at_s = False, self._clock.monotonic_s()
        self._on_change(None)


def _serve(lease: _Slice, now_s: float) -> Remaining:
    """Return a unit of the slice, or its refusal."""
    if not lease.units:
        return -1, lease.room(now_s)[1]
    lease.units -= 1
    return lease.room(now_s)


def _release(asking: Iterable[_Asking]) -> None:
    """Stop the wait for an answer that will not come."""
    for one in asking:
        for waiter in one.waiters:
            if not waiter.done():
                waiter.set_result(None)


FORGOTTEN_S: Final = COUNTED_S + 1
"""Seconds after which nothing of a key that nobody asks for counts any more."""


@dataclass(slots=True)
class _Lent:
    """What is lent of one key."""

    asked_s: float
    units: dict[int, int] = field(default_factory=dict[int, int])
    """Units by the second in which they were lent."""


class LocalWindow:
    """Counts in this process, for processes that can ask it; implements `SharedWindow`.

    The supervisor of several serving processes keeps one (ADR 0059). The rule is that of the script
    for Valkey (`net/valkey.py`), on this process's monotonic clock. Beyond `KEYS_MAX` keys, the one
    asked for longest ago is forgotten, which only forgives: 100 MB at most.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lent: OrderedDict[str, _Lent] = OrderedDict()  # in the order of their last question

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        grants = [self._grant(ask) for ask in asks]
        self._forget()
        return grants

    async def check(self) -> None:
        """Do nothing: this process can always count."""

    def _grant(self, ask: WindowRequest) -> Grant:
        now_s = self._clock.monotonic_s()
        now = int(now_s)
        lent = self._lent.setdefault(ask.key, _Lent(now_s))
        self._lent.move_to_end(ask.key)
        lent.asked_s, units = now_s, lent.units
        if ask.back_second in units:
            units[ask.back_second] -= min(ask.back_units, units[ask.back_second])
        for second in [one for one, n in units.items() if one < now - COUNTED_S or not n]:
            del units[second]
        left = max(0, ask.limit - sum(units.values()))
        granted = min(left, max(ask.need, min(ask.want, left // 8)))
        if granted:
            units[now] = units.get(now, 0) + granted
        return Grant(granted, left - granted, now, min(units, default=now) + COUNTED_S + 1 - now_s)

    def _forget(self) -> None:
        oldest_s = self._clock.monotonic_s() - FORGOTTEN_S
        while self._lent:
            key = next(iter(self._lent))
            if len(self._lent) <= KEYS_MAX and self._lent[key].asked_s >= oldest_s:
                return
            del self._lent[key]
