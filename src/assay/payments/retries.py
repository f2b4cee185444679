"""A payment that comes again: what it bought, whatever has become of its wrapper since.

Source: conventions.md#wrapper; payment-safety.md#attacks-and-faults, #order-of-a-payment; ADR 0020.
"""

from dataclasses import dataclass, replace

from assay.payments.model import (
    ClaimedPayment,
    LedgerEntry,
    PaymentRefused,
    PaymentState,
    Quote,
    Replay,
)
from assay.payments.requests import PaidRequest, is_buyer, is_same_request
from assay.payments.settlement import Settlement, find_out

_USED = "invalid_exact_evm_nonce_already_used"
_ELSEWHERE = (
    "This payment was used by somebody else. Its buyer comes from the address it came from, or"
    " with the 402's token, or with a session of the payer."
)


@dataclass(frozen=True, slots=True)
class PaymentSpent:
    """A payment that is shown again: the ledger's entry of it, and what its sender knows."""

    entry: LedgerEntry
    digest: str
    token: str


class Retries:
    """Hands out what was bought, to its buyer alone."""

    def __init__(self, settlement: Settlement) -> None:
        self._settlement = settlement
        self._ledger = settlement.ledger
        self._clock = settlement.clock

    async def spent(
        self, network: str, digest: str, token: str = "", *, is_refused: bool = False
    ) -> PaymentSpent | None:
        """The entry of a payment that is claimed, or was spent; None for one that may buy now.

        The wrapper and its terms are not asked: they may be others by now, or gone. `is_refused`
        where it is refused if it may buy. Raises `PaymentPending`.
        """
        known = await self._ledger.find(network, digest)
        if known is None:
            return None
        is_abandoned = (
            known.state is PaymentState.CLAIMED and known.lease_until <= self._clock.now()
        )
        if is_abandoned or known.state is PaymentState.RELEASED:
            known = await find_out(self._settlement, known, is_refused=is_refused)
        return None if known is None else PaymentSpent(known, digest, token)

    async def bought(self, spent: PaymentSpent, request: PaidRequest) -> Replay | None:
        """What a spent payment has bought, to be handed out before anything is counted or judged.

        None where that is not there yet, for its buyer: `resume` goes on. A spent credential may
        be known to all: it proves nobody, and so it must use up nobody's rate limit. Raises
        `PaymentRefused` when it buys nothing more, and `PaymentPending`.
        """
        entry = spent.entry
        if entry.digest != spent.digest or not is_same_request(entry, request):
            raise PaymentRefused(_USED, "This payment was used for another request.")
        if entry.state in {PaymentState.FAILED, PaymentState.REVERSED}:
            raise PaymentRefused(entry.reason, "This payment could not be settled.")
        if entry.has_paid:
            return await self._handed_out(spent, request)
        is_open = entry.state in {PaymentState.CLAIMED, PaymentState.RELEASED}
        if is_open or not self._is_buyer(spent, request):
            raise self._settlement.pending(entry)
        return None

    async def resume(
        self, spent: PaymentSpent, quote: Quote, request: PaidRequest
    ) -> ClaimedPayment | Replay:
        """Finish a payment whose answer is not there yet: settled, and to be served by its wrapper.

        Raises `PaymentRefused`, and `PaymentPending` while somebody else works on it.
        """
        settlement, entry = self._settlement, spent.entry
        if not entry.has_paid:
            entry = await settlement.finish(entry)
            replay = await self._handed_out(replace(spent, entry=entry), request)
            if replay is not None:
                return replay
        if entry.lease_until > self._clock.now():
            raise settlement.pending(entry)
        lease = settlement.lease(quote.work_s)
        return ClaimedPayment(
            await settlement.moved(entry, PaymentState.SETTLED, lease_until=lease), quote
        )

    def _is_buyer(self, spent: PaymentSpent, request: PaidRequest) -> bool:
        """Whether who shows the credential is who paid; the chain shows some to everybody."""
        is_public = self._settlement.publishes(spent.entry)
        return not is_public or is_buyer(spent.entry, spent.token, request)

    async def _handed_out(self, spent: PaymentSpent, request: PaidRequest) -> Replay | None:
        """What was bought, for its buyer; None while it is not there yet."""
        entry = spent.entry
        size = await self._ledger.stored_bytes(entry.id)
        await request.make_room(size or 0)
        stored = None if size is None else await self._ledger.stored(entry.id)
        went_here = stored is not None and stored.caller == request.caller
        if not went_here and not self._is_buyer(spent, request):
            raise PaymentRefused(_USED, _ELSEWHERE)
        if stored is not None:
            return Replay(entry, stored)
        if entry.state is PaymentState.DELIVERED:
            raise PaymentRefused(_USED, "What this payment bought has been delivered.")
        return None
