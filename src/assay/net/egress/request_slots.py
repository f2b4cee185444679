"""Places for requests under way, so that few of them cannot keep all the others waiting.

One request takes a place under several keys at once: of everything, of its domain, of its account.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from assay.common.egress_budget import UseClass, current_use
from assay.net.egress.host_timeout import OwnWaits, current_party, own_wait
from assay.net.egress.ports import EgressError, Failure

RETRY_S = 1.0
"""When a place may be free again: nobody knows how long the requests in the way will take."""


@dataclass(frozen=True, slots=True)
class SlotShare:
    """How many may be under way under one key: in all, and of the shared class."""

    total: int
    shared: int


@dataclass(eq=False, slots=True)
class Holder:
    """A request that holds places, or wants them."""

    is_shared: bool
    party: OwnWaits | None


def new_holder() -> Holder:
    """A request of this task's class and party."""
    return Holder(current_use().use_class is UseClass.SHARED, current_party())


@dataclass(slots=True)
class _Key:
    holders: list[Holder] = field(default_factory=list[Holder])
    waiters: dict[asyncio.Future[None], None] = field(
        default_factory=dict[asyncio.Future[None], None]
    )


class Slots:
    """Who is under way, by key. What is kept is of requests under way and waiting alone."""

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}

    async def take(self, places: Mapping[str, SlotShare], holder: Holder, ends_s: float) -> None:
        """Take a place under every key, waiting for one until that moment of the loop's clock.

        Raises `EgressError`: `BUDGET`, or `TIMEOUT` where nothing was in the way at any moment but
        requests of the same party, which the host has not answered.
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
        """The request is over: those that wait try again, the longest wait first."""
        for key in places:
            found = self._keys[key]
            found.holders.remove(holder)
            for waiter in found.waiters:
                if not waiter.done():
                    waiter.set_result(None)
            self._forget(key)

    def _blocked(self, places: Mapping[str, SlotShare], holder: Holder) -> tuple[str, bool] | None:
        """The first key with no place, and whether that is the party's own doing."""
        for key, share in places.items():
            found = self._keys.get(key)
            in_the_way = _in_the_way(found.holders, share, holder) if found else []
            if in_the_way:
                return key, _is_own_doing(in_the_way, share, holder)
        return None

    async def _one_ends(self, key: str, ends_s: float) -> bool:
        """Whether one of the requests under way there ended before that moment."""
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
    """Those of whom one has to end first; none where there is a place."""
    if holder.is_shared:
        shared = [one for one in holders if one.is_shared]
        if len(shared) >= share.shared:
            return shared
    return holders if len(holders) >= share.total else []


def _is_own_doing(in_the_way: list[Holder], share: SlotShare, holder: Holder) -> bool:
    """Whether the party holds all that it could have whatever others do."""
    own = sum(one.party is holder.party for one in in_the_way) if holder.party else 0
    kept = 0 if holder.is_shared else share.total - share.shared
    return own >= (kept or len(in_the_way))


def _refusal(*, is_ours: bool) -> EgressError:
    if is_ours:
        return EgressError(Failure.BUDGET, "too many requests are under way", retry_s=RETRY_S)
    return EgressError(Failure.TIMEOUT, "its host keeps earlier requests waiting")
