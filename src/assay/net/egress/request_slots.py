"""Slots for open requests and connections, and the time a request waits for one.

Measures the time a request waits for this service separately from the host's time.

Before it is sent, a request may wait for our resources: in a queue, for a look-up thread, for a
connection. That time never counts as the host's. Source: ADR 0016.

Slots for open requests, so that a few of them cannot block all others.

A request takes a slot under several keys at once: in all, of its domain, of its account.

Shares of the concurrent connections to addresses that other parties gave us.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

from assay.common.costs import SERVICE, current_bearer
from assay.common.egress_budget import UseClass, current_use
from assay.net.egress.ports import EgressError, Failure
from assay.net.egress.url import domain_of

BLAMED_FROM_S = 1.0
"""A visit that waited this long for us and did not finish says nothing about the agent. Seconds,
summed over its requests."""


class OwnWaits:
    """The time that the requests of one block waited for this service.

    The outermost block is the party that its requests are made for: when they wait for one another,
    that is their own doing and not counted.
    """

    def __init__(self, *, is_visit: bool) -> None:
        self.is_visit = is_visit
        """Whether the requests probe an agent, and are not made for a caller."""
        self._ended_s = 0.0
        self._open = 0
        self._open_since_s = 0.0

    @property
    def waited_s(self) -> float:
        """Return the seconds summed over all waits, including those in progress."""
        now_s = asyncio.get_running_loop().time()
        return self._ended_s + self._open * now_s - self._open_since_s

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Count the time in the block as a wait of this party."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        self._open += 1
        self._open_since_s += began_s
        try:
            yield
        finally:
            self._open -= 1
            self._open_since_s = self._open_since_s - began_s if self._open else 0.0
            self._ended_s += loop.time() - began_s


_blocks: ContextVar[tuple[OwnWaits, ...]] = ContextVar("assay_own_waits", default=())
_timeouts: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("assay_host_timeouts", default=())
# Context variables, not arguments: client libraries and a connection pool lie between the code that
# counts and the code that waits. A task inherits both from the task that starts it.


def current_party() -> OwnWaits | None:
    """Return the outermost block that this task runs in."""
    return next(iter(_blocks.get()), None)


@contextmanager
def count_own_waits(*, is_visit: bool = False) -> Generator[OwnWaits]:
    """Count the time that requests in the block, and in tasks it starts, wait for us."""
    made = OwnWaits(is_visit=is_visit)
    token = _blocks.set((*_blocks.get(), made))
    try:
        yield made
    finally:
        _blocks.reset(token)


@contextmanager
def own_wait() -> Generator[None]:
    """Count the time in the block as ours, and pause every `host_timeout`."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    paused = [(t, t.when()) for t in _timeouts.get() if not t.expired()]
    for timeout, _ in paused:
        timeout.reschedule(None)
    with ExitStack() as stack:
        for block in _blocks.get():
            stack.enter_context(block.waiting())
        try:
            yield
        finally:
            waited_s = loop.time() - began_s
            for timeout, when in paused:
                timeout.reschedule(None if when is None else when + waited_s)


@asynccontextmanager
async def host_timeout(seconds: float | None) -> AsyncGenerator[None]:
    """Like `asyncio.timeout`, but pauses during own waits. For one task that starts no others."""
    async with asyncio.timeout(seconds) as timeout:
        token = _timeouts.set((*_timeouts.get(), timeout))
        try:
            yield
        finally:
            _timeouts.reset(token)


RETRY_S = 1.0
"""Seconds after which to retry: how long the open requests will take is unknown."""


@dataclass(frozen=True, slots=True)
class SlotShare:
    """How many requests one key allows: in all, and of the shared class."""

    total: int
    shared: int


@dataclass(eq=False, slots=True)
class Holder:
    """A request that holds or wants slots."""

    is_shared: bool
    party: OwnWaits | None


def new_holder() -> Holder:
    """Return a holder with this task's class and party."""
    return Holder(current_use().use_class is UseClass.SHARED, current_party())


@dataclass(slots=True)
class _Key:
    holders: list[Holder] = field(default_factory=list[Holder])
    waiters: dict[asyncio.Future[None], None] = field(
        default_factory=dict[asyncio.Future[None], None]
    )


class Slots:
    """Open requests by key; only open and waiting requests take memory."""

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}

    async def take(self, places: Mapping[str, SlotShare], holder: Holder, ends_s: float) -> None:
        """Take a slot under every key, waiting until `ends_s` on the loop's clock.

        Raises `EgressError`: `BUDGET`, or `TIMEOUT` if only requests of the same party, which the
        host has not answered, were in the way throughout.
        """
        is_ours = False
        while (blocked := self._blocked(places, holder)) is not None:
            key, is_own_doing = blocked
            is_ours = is_ours or not is_own_doing
            with nullcontext() if is_own_doing else own_wait():
                ended = await self._one_ends(key, ends_s)
            if not ended:
                raise _refusal(is_ours=is_ours)
        for key in places:
            self._keys.setdefault(key, _Key()).holders.append(holder)

    def give_back(self, places: Mapping[str, SlotShare], holder: Holder) -> None:
        """Return the slots; let waiting requests try again, the longest wait first."""
        for key in places:
            found = self._keys[key]
            found.holders.remove(holder)
            for waiter in found.waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._forget(key)

    def _blocked(self, places: Mapping[str, SlotShare], holder: Holder) -> tuple[str, bool] | None:
        """Return the first key without a free slot, and whether the party itself caused that."""
        for key, share in places.items():
            found = self._keys.get(key)
            in_the_way = _in_the_way(found.holders, share, holder) if found else []
            if in_the_way:
                return key, _is_own_doing(in_the_way, share, holder)
        return None

    async def _one_ends(self, key: str, ends_s: float) -> bool:
        """Wait for a request under this key to end; return whether one ended in time."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        found = self._keys[key]
        found.waiters[waiter] = None
        try:
            async with asyncio.timeout_at(ends_s):
                await waiter
        except TimeoutError:
            return False
        finally:
            del found.waiters[waiter]
            self._forget(key)
        return True

    def _forget(self, key: str) -> None:
        found = self._keys.get(key)
        if found is not None and not found.holders and not found.waiters:
            del self._keys[key]


def _in_the_way(holders: list[Holder], share: SlotShare, holder: Holder) -> list[Holder]:
    """Return the holders of which one has to end first; none if a slot is free."""
    if holder.is_shared:
        shared = [one for one in holders if one.is_shared]
        if len(shared) >= share.shared:
            return shared
    return holders if len(holders) >= share.total else []


def _is_own_doing(in_the_way: list[Holder], share: SlotShare, holder: Holder) -> bool:
    """Return whether the party holds its full share, whatever others do."""
    own = sum(one.party is holder.party for one in in_the_way) if holder.party else 0
    kept = 0 if holder.is_shared else share.total - share.shared
    return own >= (kept or len(in_the_way))


def _refusal(*, is_ours: bool) -> EgressError:
    if is_ours:
        return EgressError(Failure.BUDGET, "too many requests are under way", retry_s=RETRY_S)
    return EgressError(Failure.TIMEOUT, "its host keeps earlier requests waiting")


VISITS = SlotShare(120, 80)
"""Requests that probe agents have connections of their own, a third of them for gates."""

CALLS = SlotShare(80, 80)
"""Requests made for callers: proxy, playground, webhooks."""

CONNECTIONS_MAX = VISITS.total + CALLS.total
"""Concurrent connections to all hosts."""

DOMAIN = SlotShare(32, 16)
"""Connections to one domain; probes and calls each have this share."""

ACCOUNT = SlotShare(8, 8)
VISIT = SlotShare(16, 16)
"""A visit sends up to six probes at once, but first asks all its services for permission."""

CALLER = SlotShare(VISITS.total, VISIT.shared)
"""All visits together that one network of callers without an account has started: a fifth of what
such visits have. Gates are not counted, nor are visits that no caller requested."""


class ConnectionSlots:
    """The shares of one client's connections."""

    def __init__(self) -> None:
        self._slots = Slots()

    @asynccontextmanager
    async def one(self, host: str, wait_s: float) -> AsyncGenerator[None]:
        """Hold one connection in the block, waiting for it at most `wait_s` seconds.

        Raises `EgressError` like `Slots.take`.
        """
        party, account = current_party(), current_use().account
        kind, all_of_kind = ("visits", VISITS) if party and party.is_visit else ("calls", CALLS)
        places = {kind: all_of_kind, f"{kind} to {domain_of(host)}": DOMAIN}
        if account:
            places[f"account {account}"] = ACCOUNT
        elif party:
            places[f"visit {id(party)}"] = VISIT
            if party.is_visit and (bearer := current_bearer()) is not SERVICE:
                places[f"caller {bearer.name}"] = CALLER
        holder = new_holder()
        await self._slots.take(places, holder, asyncio.get_running_loop().time() + wait_s)
        try:
            yield
        finally:
            self._slots.give_back(places, holder)
