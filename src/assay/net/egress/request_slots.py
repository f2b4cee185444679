"""Slots for open requests, so that a few of them cannot block all others.

A request takes a slot under several keys at once: in all, of its domain, of its account.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from assay.common.egress_budget import UseClass, current_use
from assay.net.egress.host_timeout import OwnWaits, current_party, own_wait
from assay.net.egress.ports import EgressError, Failure

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
