"""Taking payments: claim, serve, settle, and whatever a retry makes of it.

    claimed -> settling(tx) -> settled -> delivered        (released, failed, pending)

Every step is in the ledger before it is taken. Whoever comes again with the same credential for the
same request gets what it bought; nobody pays for what was not served.
Source: conventions.md#wrapper; payment-safety.md#attacks-and-faults, #order-of-a-payment.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from assay.common.costs import CostLedger
from assay.common.dataclass_copy import changed
from assay.common.errors import ServiceError, Unavailable
from assay.common.http_heads import HeaderPairs
from assay.common.keyring import MacKeys
from assay.payments.balance_check import require_cover
from assay.payments.gas import GasOffer
from assay.payments.model import (
    ClaimedPayment,
    LedgerEntry,
    Payment,
    PaymentClaim,
    PaymentRefused,
    PaymentRequired,
    PaymentSighting,
    PaymentState,
    Quote,
    Replay,
    StoredResponse,
)
from assay.payments.outcomes import AT_ONCE, Rejected, Settled, Undecided
from assay.payments.requests import PaidRequest, PresentedPayment, fresh_entry
from assay.payments.retries import PaymentSpent, Retries
from assay.payments.settlement import EVERY_NODE, LATE_S, WORK_SLACK, PaymentPending, Settlement
from assay.payments.unpaid_rows import UnpaidRows

__all__ = ["LATE_S", "PaymentPending", "PaymentService"]

FAILURES_WINDOW: Final = timedelta(hours=1)
FAILURES_MAX: Final = 5
"""Settlements of one payer that may fail in an hour, calls that his payments cut short included:
each can burn gas of ours, or work of an upstream.
Source: payment-safety.md#gas-griefing."""


class PaymentService:
    """What wrappers know of payments."""

    def __init__(
        self, settlement: Settlement, idempotency_keys: MacKeys, rows: UnpaidRows | None = None
    ) -> None:
        """`idempotency_keys` make what upstreams know paid calls by; without `rows` no quota."""
        self._settlement = settlement
        self._idempotency_keys = idempotency_keys
        self._ledger = settlement.ledger
        self._clock = settlement.clock
        self._rows = rows or UnpaidRows(CostLedger(settlement.clock))
        self.retries = Retries(settlement)

    def is_attached(self, quote: Quote, headers: HeaderPairs) -> bool:
        """Whether a payment is attached, good or bad."""
        return self._settlement.of(quote).is_attached(headers)

    def is_any_attached(self, headers: HeaderPairs) -> bool:
        """Whether a payment of any protocol is attached, good or bad."""
        return bool(self._settlement.attached(headers))

    async def presented(self, headers: HeaderPairs) -> Sequence[PresentedPayment]:
        """The attached payments that can be taken apart, believed in nothing: one a protocol."""
        protocols = self._settlement.attached(headers)
        found = [await one.present(headers, self._settlement.needs) for one in protocols]
        return [one for one in found if one is not None]

    def is_payable(self, quote: Quote, presented: PresentedPayment) -> bool:
        """Whether a payment says that it pays the quote, and is good for long enough."""
        needed_s = self._settlement.of(quote).needed_s(quote, self._settlement.needs)
        left_s = presented.expires_s - self._clock.now().timestamp()
        return presented.pays(quote) and left_s >= needed_s

    def quote_life_s(self, quote: Quote) -> float:
        """How long after it was asked for a quote may be paid, in seconds."""
        return self._settlement.of(quote).quote_life_s(quote, self._settlement.needs)

    async def refused(self, quote: Quote, refusal: PaymentRefused) -> ServiceError:
        """The 402 of a payment that does not pay; to be raised."""
        return await self._settlement.refused(quote, refusal)

    def binds_body(self, quote: Quote) -> bool:
        """Whether the 402 is bound to the body of the call."""
        return self._settlement.of(quote).binds_body

    async def demand(self, quote: Quote) -> PaymentRequired:
        """The 402 of a call without payment; to be raised."""
        needs = self._settlement.needs
        demand = await self._settlement.of(quote).demand(quote, needs, "payment_required")
        return PaymentRequired("This call has to be paid for.", demand)

    async def read(self, quote: Quote, request: PaidRequest) -> Payment:
        """The attached payment. Raises `PaymentRequired` and `PaymentsUnavailable`."""
        try:
            return await self._settlement.of(quote).read(request, quote, self._settlement.needs)
        except PaymentRefused as refusal:
            network = quote.network.id
            spent = refusal.digest and await self.retries.spent(
                network, refusal.digest, is_refused=True
            )
            if spent:  # claimed meanwhile, in its time
                raise self._settlement.pending(spent.entry) from refusal
            raise await self._settlement.refused(quote, refusal) from refusal

    async def hold(
        self, payment: Payment, request: PaidRequest, agent_id: str = ""
    ) -> ClaimedPayment | Replay:
        """Claim and verify a payment; it is counted for that agent. Nothing has moved yet.

        Raises `PaymentRequired`, `PaymentPending` while somebody else works on it, and
        `PaymentsUnavailable`; the claim is released then. Before it, `QuotaExceeded`.
        """
        bearer = await self._rows.bearer(payment, request.caller)
        settlement, now = self._settlement, self._clock.now()
        publishes, work_s = settlement.of(payment.quote).publishes, payment.quote.work_s
        fresh = fresh_entry(payment, request, self._idempotency_keys, now, publishes=publishes)
        fresh = changed(fresh, agent_id=agent_id, lease_until=settlement.lease(work_s))
        async with self._settlement.gas(payment.quote) as gas:
            claim = await self._ledger.claim(fresh, now - FAILURES_WINDOW, gas.terms)
            if claim.is_ours:
                return await self._held(payment, claim, gas, bearer)
            gas.drop()
        return await self._claimed_meanwhile(claim.entry, payment, request)

    async def settle(self, held: ClaimedPayment, stored: StoredResponse | None) -> LedgerEntry:
        """Take the money; `stored`, what it bought, is kept first.

        Raises `PaymentRequired` when it was refused (what was bought is withheld) and
        `PaymentPending` when nobody can say yet.
        """
        lease = self._settlement.lease(held.quote.work_s if stored is None else 0.0)
        try:
            with self._rows.unless_it_holds(held.bearer, stored, is_new=held.is_new):
                entry = await self._settlement.moved(
                    held.entry, PaymentState.SETTLING, lease_until=lease, stored=stored
                )
                settled = await self._settlement.settle(entry)
        except PaymentRefused as refusal:
            raise await self._settlement.refused(held.quote, refusal) from refusal
        return settled if stored is not None else await self._renewed(settled, held.quote)

    async def keep(self, entry: LedgerEntry, stored: StoredResponse) -> LedgerEntry:
        """Keep what a settled payment bought."""
        return await self._settlement.moved(
            entry, PaymentState.SETTLED, lease_until=self._settlement.lease(), stored=stored
        )

    async def delivered(self, entry: LedgerEntry) -> None:
        """The answer has been handed over."""
        if entry.state is PaymentState.SETTLED:
            await self._ledger.move(entry, PaymentState.DELIVERED)

    async def release(self, held: ClaimedPayment, reason: str) -> None:
        """Nobody was served: the payment may be used again.

        One that has settled already stays settled, and its request may be sent again.
        """
        state = held.entry.state if held.entry.has_paid else PaymentState.RELEASED
        if state is PaymentState.RELEASED:
            self._rows.count(held.bearer, is_new=held.is_new)
        now = self._clock.now()
        entry = changed(held.entry, look=held.entry.look.due(now))
        await self._ledger.move(entry, state, reason=reason, lease_until=now)

    def is_good(self, held: ClaimedPayment, work_s: float) -> bool:
        """Whether it could be sent again now, to be served within `work_s`."""
        protocol, quote = self._settlement.of(held.quote), changed(held.quote, work_s=work_s)
        return protocol.is_good(held.entry, quote, self._settlement.needs)

    def receipt(self, entry: LedgerEntry, *, is_refusal: bool = False) -> HeaderPairs:
        """The headers that say it was paid, to what it bought or to a refusal."""
        return self._settlement.receipt(entry, is_refusal=is_refusal)

    async def reconcile(
        self, *, is_due_only: bool = True, network: str | None = None
    ) -> list[LedgerEntry]:
        """Finish what nobody works on any more, on one network or on all; those that have ended."""
        return await self._settlement.reconcile(is_due_only=is_due_only, network=network)

    async def _held(
        self, payment: Payment, claim: PaymentClaim, gas: GasOffer, bearer: str
    ) -> ClaimedPayment:
        """A claim that is ours once it is verified; released, and counted, when it is not."""
        is_new = not claim.entry.moves  # one taken over has been counted
        with self._rows.unless_it_holds(bearer, is_new=is_new):
            entry = await self._proven(payment, claim, gas)
            protocol = self._settlement.of(payment.quote)
            work_s = protocol.work_s(payment, self._settlement.needs)  # it may have waited
            quote = changed(payment.quote, work_s=work_s)
            return ClaimedPayment(await self._renewed(entry, quote), quote, bearer, is_new)

    async def _proven(self, payment: Payment, claim: PaymentClaim, gas: GasOffer) -> LedgerEntry:
        if payment.paid_by:
            return await self._settlement.arrived(claim.entry, payment.paid_by)
        sighting = PaymentSighting(was_unused=claim.entry.look.at is not None)
        try:
            return await self._verified(payment, claim, gas, sighting)
        except PaymentRefused as refusal:
            # Of a claim that somebody has taken over meanwhile this says nothing: he may be paid.
            ended = self._unserved(claim.entry, sighting)
            await self._settlement.moved(ended, PaymentState.RELEASED, reason=refusal.reason)
            raise await self._settlement.refused(payment.quote, refusal) from refusal
        except BaseException as error:  # a caller that goes away meanwhile as well
            reason = error.code if isinstance(error, Unavailable) else type(error).__name__
            ended = self._unserved(claim.entry, sighting)
            await self._ledger.move(ended, PaymentState.RELEASED, reason=reason)
            raise

    async def _verified(
        self, payment: Payment, claim: PaymentClaim, gas: GasOffer, sighting: PaymentSighting
    ) -> LedgerEntry:
        """The entry of a claim that is verified, or was paid meanwhile by somebody else's sending.

        Nobody who was shown a payment here before is refused it unless every node has been asked.
        Raises `PaymentRefused`, and `PaymentPending` when the chain does not say which.
        """
        look = claim.entry.look
        try:
            await self._verify(payment, claim, gas, sighting)
        except PaymentRefused:
            was_shown = look.at is not None or sighting.may_have_moved
            if not (sighting.was_unused and was_shown):
                raise
            if not look.has_left(EVERY_NODE):  # the watcher asks, once its authorisation has ended
                if self._settlement.may_know_more(claim.entry.network) or sighting.is_used:
                    raise self._settlement.pending(claim.entry) from None
                raise
            try:
                found = await self._settlement.look(claim.entry, every_node=True)
            except Unavailable as error:
                raise self._settlement.pending(claim.entry) from error
            sighting.answers = EVERY_NODE
            if isinstance(found, Settled):
                return await self._settlement.paid(claim.entry, found)
            if isinstance(found, Undecided) and (sighting.is_used or not found.is_unused):
                raise self._settlement.pending(claim.entry) from None  # or an older block's word
            sighting.was_unused = not isinstance(found, Rejected)  # then it can never move
            raise
        return claim.entry

    def _unserved(self, entry: LedgerEntry, sighting: PaymentSighting) -> LedgerEntry:
        """An entry about to be released: whether the chain is asked before it is believed."""
        look = entry.look.due(self._clock.now(), sighting.answers)
        return changed(entry, look=look if sighting.was_unused else AT_ONCE)

    async def _claimed_meanwhile(
        self, entry: LedgerEntry, payment: Payment, request: PaidRequest
    ) -> Replay:
        """What somebody else's claim bought: the same caller's, or a thief's. Raises as `hold`."""
        try:
            spent = PaymentSpent(entry, payment.digest, payment.token)
            replay = await self.retries.bought(spent, request)
        except PaymentRefused as refusal:
            raise await self._settlement.refused(payment.quote, refusal) from refusal
        if replay is None:  # finished when it is sent again, where it was claimed
            raise self._settlement.pending(entry)
        return replay

    async def _verify(
        self, payment: Payment, claim: PaymentClaim, gas: GasOffer, sighting: PaymentSighting
    ) -> None:
        """The protocol's own checks, and that the balance covers everything in flight."""
        await gas.require_paid()
        if claim.failures >= FAILURES_MAX:
            message = "Too many settlements of this payer failed: try again in an hour."
            raise PaymentRefused("too_many_failed_settlements", message)
        protocol = self._settlement.of(payment.quote)
        await require_cover(
            payment, claim, protocol, self._settlement.needs, self._ledger, sighting
        )

    async def _renewed(self, entry: LedgerEntry, quote: Quote) -> LedgerEntry:
        """The entry, for as long as the upstream may work: nobody takes it over meanwhile.

        Raises `PaymentPending` when somebody has already.
        """
        if self._clock.now() + timedelta(seconds=quote.work_s) + WORK_SLACK <= entry.lease_until:
            return entry
        lease = self._settlement.lease(quote.work_s)
        return await self._settlement.moved(entry, entry.state, lease_until=lease)
