"""Claims on egress budgets, and the queue for them: open requests claim more than they use."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from assay.common.egress_budget import (
    ACCOUNT_PART,
    SHARED_PART,
    BudgetLedger,
    BudgetSpent,
    EgressClaim,
    UseClass,
)
from assay.common.errors import Unavailable
from assay.net.egress.host_timeout import current_party, own_wait
from assay.net.egress.ports import EgressError, Failure
from assay.net.egress.request_slots import Holder, Slots, SlotShare

BYTES_EACH = 64 * 1024
"""A budget needs this many bytes for each open request of this process, so the small budget allows
four. With more, every request could hold part of what all need to finish. The shared class may use
half of them, and one account of it a quarter, so that slow answers to strangers leave room for a
gate."""


@dataclass(slots=True)
class _Busy:
    """The open requests of this process on one budget, and the requests that wait for them."""

    active: int = 0
    waiting: int = 0
    """How many of the active requests wait for more bytes."""
    waiters: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])


class ClaimQueue:
    """Claims of the requests of one process; only open requests take memory."""

    def __init__(self, ledger: BudgetLedger) -> None:
        self._ledger = ledger
        self._slots = Slots()
        self._busy: dict[str, _Busy] = {}
        self._placed: dict[tuple[str, str], Holder] = {}

    async def claim(self, claim: EgressClaim, kept: tuple[EgressClaim, ...], wait_s: float) -> None:
        """Add a claim to those `kept`, waiting for open requests of this process if necessary.

        Raises `EgressError` if there is still no room after that.
        """
        ends_s = asyncio.get_running_loop().time() + wait_s
        places = _places(claim)
        holder = Holder(claim.use.use_class is UseClass.SHARED, current_party())
        with self._waiting(kept):
            while True:
                await self._slots.take(places, holder, ends_s)
                spent = None
                try:
                    spent = await self._count(claim)
                    if spent is None:
                        self._busy.setdefault(claim.key, _Busy()).active += 1
                        self._placed[claim.exchange, claim.key] = holder
                        return
                finally:
                    if (claim.exchange, claim.key) not in self._placed:
                        self._slots.give_back(places, holder)
                if not await self._one_ends(self._movable([claim.key]), ends_s):
                    why = "its host has had its share of requests"
                    raise refused_for_budget(why, spent.retry_s)

    async def _count(self, claim: EgressClaim) -> BudgetSpent | None:
        with own_wait():
            try:
                return await self._ledger.claim(claim)
            except Unavailable as error:
                raise refused_for_budget("the budget cannot be read", 1.0) from error

    async def extend(self, claims: tuple[EgressClaim, ...], wanted_bytes: int) -> int:
        """Claim more bytes for an open request; return 0 if there are none."""
        if not claims:
            return wanted_bytes
        ends_s = asyncio.get_running_loop().time() + claims[0].ends_s
        with self._waiting(claims):
            while True:
                try:
                    with own_wait():
                        granted = await self._ledger.extend(claims, wanted_bytes)
                except Unavailable:
                    return 0
                movable = self._movable([claim.key for claim in claims])
                if granted or not await self._one_ends(movable, ends_s):
                    return granted

    def release(self, claims: tuple[EgressClaim, ...]) -> None:
        """End the request on these claims, and let waiting requests try again."""
        for claim in claims:
            self._slots.give_back(_places(claim), self._placed.pop((claim.exchange, claim.key)))
            busy = self._busy[claim.key]
            busy.active -= 1
            for waiter in busy.waiters:
                if not waiter.done():
                    waiter.set_result(None)
            if not busy.active:
                del self._busy[claim.key]

    @contextmanager
    def _waiting(self, kept: tuple[EgressClaim, ...]) -> Generator[None]:
        """Count a request as waiting in the block.

        It keeps its claims, so not all requests may wait for one another.
        """
        busy = [self._busy[claim.key] for claim in kept]
        for one in busy:
            one.waiting += 1
        try:
            yield
        finally:
            for one in busy:
                one.waiting -= 1

    def _movable(self, keys: list[str]) -> _Busy | None:
        """Return one budget's requests if at least one of them is not waiting itself."""
        found = (self._busy.get(key) for key in keys)
        return next((busy for busy in found if busy and busy.active > busy.waiting), None)

    @staticmethod
    async def _one_ends(busy: _Busy | None, ends_s: float) -> bool:
        """Wait for one of the open requests to end; return whether it ended by `ends_s`."""
        if busy is None:
            return False
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        busy.waiters.add(waiter)
        try:
            with own_wait():
                async with asyncio.timeout_at(ends_s):
                    await waiter
        except TimeoutError:
            return False
        finally:
            busy.waiters.discard(waiter)
        return True


def _places(claim: EgressClaim) -> dict[str, SlotShare]:
    """Return the slots that a request on this claim takes."""
    total = max(1, claim.ceiling.size_bytes // BYTES_EACH)
    places = {claim.key: SlotShare(total, max(1, total // SHARED_PART))}
    if claim.use.use_class is UseClass.SHARED and claim.use.account:
        most = max(1, total // ACCOUNT_PART)
        places[f"{claim.key} of account {claim.use.account}"] = SlotShare(most, most)
    return places


def refused_for_budget(why: str, retry_s: float) -> EgressError:
    """Return the error for a request refused before anything was sent."""
    return EgressError(Failure.BUDGET, why, retry_s=retry_s)
