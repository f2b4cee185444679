"""Payouts and refunds looked at until they are final.

A transfer is sent before any node is asked whether it arrived. One that a reorganisation takes back
is `signed` again, and the same transaction is sent: its nonce stays, so that it is paid once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.payments.model import PaymentNetwork
from assay.payments.transfer_model import (
    SignedTransfer,
    Transfer,
    TransferChain,
    TransferSighting,
    TransferState,
    TransferStore,
)

CHECKED_AT_ONCE: Final = 50
LOOK_S: Final = 0.5
LOOKED_AT: Final[Mapping[TransferState, timedelta]] = MappingProxyType(
    {TransferState.FAILED: timedelta(hours=1), TransferState.PAID: timedelta(days=7)}
)
"""How long the chain is asked again about a transfer that failed, for a node may have been wrong;
and about one that is paid and not final, for nodes may have dropped older receipts."""


class TransferWatcher:
    """Sends transfers that are signed, and takes the looks that are due."""

    def __init__(
        self,
        store: TransferStore,
        chain: TransferChain,
        networks: Mapping[str, PaymentNetwork],
        clock: Clock,
    ) -> None:
        self._store = store
        self._chain = chain
        self._networks = networks
        self._clock = clock

    async def resume(self) -> list[Transfer]:
        """See through what is on its way or not final, after a crash too; those that moved."""
        now = self._clock.now()
        since = {state: now - time for state, time in LOOKED_AT.items()}
        moved: list[Transfer] = []
        for one in await self._store.due(now, since, CHECKED_AT_ONCE):
            with suppress(Unavailable):  # of one network: the others go on
                if (shown := await self.look(one)) is not None:
                    moved.append(shown)
        return moved

    async def see_through(self, known: Transfer, wait_s: float) -> Transfer:
        """A transfer on its way, once it came to an end or the time is over."""
        until_s = self._clock.monotonic_s() + wait_s
        while known.state is TransferState.SIGNED and self._clock.monotonic_s() < until_s:
            known = await self.look(known) or known
            await asyncio.sleep(LOOK_S)
        return known

    async def look(self, known: Transfer) -> Transfer | None:
        """The row as it moved by what the chain shows; sent again until every node shows it."""
        signed = await self._store.transactions(known.id)
        ours = [one for one in signed if one.raw]
        is_signed = known.state is TransferState.SIGNED and bool(ours)
        if is_signed:  # before anybody is asked whether it arrived
            await self._chain.send(known, ours[-1])
        found = await self._chain.found(known, [one.transaction for one in ours])
        if known.state is TransferState.PAID:
            return await self._watched(known, ours, found)
        if found.paid:
            is_deep = found.depth >= self._networks[known.network].confirmations
            return await self._paid(known, found.paid) if is_deep else None
        return await self._unpaid(known, ours[-1], found) if is_signed else None

    async def _unpaid(
        self, known: Transfer, last: SignedTransfer, found: TransferSighting
    ) -> Transfer | None:
        """One on its way that has failed for good, or is signed again for a better price."""
        if found.is_lost:
            return await self._failed(known, "another transaction used its nonce")
        if found.reverted:  # in another block it might go through, until this one is final
            is_final = self._networks[known.network].is_final(found.depth)
            return await self._failed(known, f"{found.reverted} reverted") if is_final else None
        dearer = await self._chain.dearer(known, last)
        if dearer is not None and await self._store.sign_again(known, dearer) is not None:
            await self._chain.send(known, dearer)
        return None

    async def _watched(
        self, known: Transfer, ours: Sequence[SignedTransfer], found: TransferSighting
    ) -> Transfer | None:
        """A paid transfer, until it is final: then it is looked at no more."""
        if known.transaction not in {one.transaction for one in ours}:
            await self._store.finish(known)  # a person made it, and it was final when recorded
            return None
        if not found.paid:
            await self._chain.send(known, ours[-1])
            is_taken_back = found.is_gone or found.reverted
            return await self._taken_back(known) if is_taken_back else None
        if found.paid != known.transaction:  # of its nonce, another one after a reorganisation
            return await self._paid(known, found.paid)
        if self._networks[known.network].is_final(found.depth):
            await self._store.finish(known)
        return None

    async def _paid(self, known: Transfer, transaction: str) -> Transfer | None:
        return await self._store.move(known, TransferState.PAID, transaction=transaction)

    async def _taken_back(self, known: Transfer) -> Transfer | None:
        reason = "a reorganisation took it back"
        return await self._store.move(known, TransferState.SIGNED, reason=reason)

    async def _failed(self, known: Transfer, reason: str) -> Transfer | None:
        return await self._store.move(known, TransferState.FAILED, reason=reason)
