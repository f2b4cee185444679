"""Taking payments: claim, serve, settle, and whatever a retry makes of it.

    claimed -> settling(tx) -> settled -> delivered        (released, failed, pending)

Every step is in the ledger before it is taken. Whoever comes again with the same credential for
the same request gets what it bought; nobody pays for what was not served. Source: decisions,
section 9; facts, payments 6 and 7.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID

from assay.kit.errors import ServiceError, Unavailable
from assay.kit.ids import new_id
from assay.kit.keyring import MacKeys
from assay.payments.buyer import marked
from assay.payments.claims import Claim
from assay.payments.cover import require_cover
from assay.payments.gas import GasOffer
from assay.payments.model import (
    Entry,
    Headers,
    Held,
    Payment,
    PaymentRefused,
    PaymentRequired,
    Quote,
    Replay,
    State,
    Stored,
)
from assay.payments.outcomes import Attempt
from assay.payments.requests import PaidRequest, Presented, request_digest
from assay.payments.retries import Retries, Spent
from assay.payments.settlement import LATE_S, WORK_SLACK, PaymentPending, Settlement

__all__ = ["LATE_S", "PaymentPending", "Till"]

FAILURES_WINDOW: Final = timedelta(hours=1)
FAILURES_MAX: Final = 5
"""Settlements of one payer that may fail in an hour: each can burn gas of ours.
Source: facts, payments 6, row 27."""


class Till:
    """What wrappers know of payments."""

    def __init__(self, settlement: Settlement, idempotency_keys: MacKeys) -> None:
        """`idempotency_keys` make what upstreams know paid calls by."""
        self._settlement = settlement
        self._idempotency_keys = idempotency_keys
        self._ledger = settlement.ledger
        self._clock = settlement.clock
        self.retries = Retries(settlement)

    def is_attached(self, quote: Quote, headers: Headers) -> bool:
        """Whether a payment is attached, good or bad."""
        return self._settlement.of(quote).is_attached(headers)

    def is_any_attached(self, headers: Headers) -> bool:
        """Whether a payment of any protocol is attached, good or bad."""
        return bool(self._settlement.attached(headers))

    async def presented(self, headers: Headers) -> Sequence[Presented]:
        """The attached payments that can be taken apart, believed in nothing: one a protocol."""
        protocols = self._settlement.attached(headers)
        found = [await one.present(headers, self._settlement.needs) for one in protocols]
        return [one for one in found if one is not None]

    def is_payable(self, quote: Quote, presented: Presented) -> bool:
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
            spent = refusal.digest and await self.retries.spent(network, refusal.digest)
            if spent:  # claimed meanwhile, in its time
                raise self._settlement.pending(spent.entry) from refusal
            raise await self._settlement.refused(quote, refusal) from refusal

    async def hold(
        self, payment: Payment, request: PaidRequest, agent_id: str = ""
    ) -> Held | Replay:
        """Claim and verify a payment; it is counted for that agent. Nothing has moved yet.

        Raises `PaymentRequired`, `PaymentPending` while somebody else works on it, and
        `PaymentsUnavailable`; the claim is released then.
        """
        fresh = replace(self._fresh(payment, request), agent_id=agent_id)
        async with self._settlement.gas(payment.quote) as gas:
            since = self._clock.now() - FAILURES_WINDOW
            claim = await self._ledger.claim(fresh, since, gas.terms)
            if claim.is_ours:
                return await self._held(payment, claim, gas)
            gas.drop()
        return await self._claimed_meanwhile(claim.entry, payment, request)

    async def settle(self, held: Held, stored: Stored | None) -> Entry:
        """Take the money; `stored`, what it bought, is kept first.

        Raises `PaymentRequired` when it was refused (what was bought is withheld) and
        `PaymentPending` when nobody can say yet.
        """
        lease = self._settlement.lease(held.quote.work_s if stored is None else 0.0)
        entry = await self._settlement.moved(
            held.entry, State.SETTLING, lease_until=lease, stored=stored
        )
        try:
            settled = await self._settlement.settle(entry)
        except PaymentRefused as refusal:
            raise await self._settlement.refused(held.quote, refusal) from refusal
        return settled if stored is not None else await self._renewed(settled, held.quote)

    async def keep(self, entry: Entry, stored: Stored) -> Entry:
        """Keep what a settled payment bought."""
        return await self._settlement.moved(
            entry, State.SETTLED, lease_until=self._settlement.lease(), stored=stored
        )

    async def delivered(self, entry: Entry) -> None:
        """The answer has been handed over."""
        if entry.state is State.SETTLED:
            await self._ledger.move(entry, State.DELIVERED)

    async def release(self, held: Held, reason: str) -> None:
        """Nobody was served: the payment may be used again.

        One that has settled already stays settled, and its request may be sent again.
        """
        state = held.entry.state if held.entry.has_paid else State.RELEASED
        now = self._clock.now()
        await self._ledger.move(held.entry, state, reason=reason, lease_until=now)

    def receipt(self, entry: Entry, *, is_refusal: bool = False) -> Headers:
        """The headers that say it was paid, to what it bought or to a refusal."""
        return self._settlement.receipt(entry, is_refusal=is_refusal)

    async def reconcile(self, *, is_due_only: bool = True) -> list[Entry]:
        """Finish what nobody works on any more; those that have ended."""
        return await self._settlement.reconcile(is_due_only=is_due_only)

    async def _held(self, payment: Payment, claim: Claim, gas: GasOffer) -> Held:
        """A claim that is ours once it is verified; released when it is not."""
        if payment.paid_by:
            return Held(await self._arrived(claim.entry, payment.paid_by), payment.quote)
        try:
            await self._verify(payment, claim, gas)
        except PaymentRefused as refusal:
            # Of a claim that somebody has taken over meanwhile this says nothing: he may be paid.
            await self._settlement.moved(claim.entry, State.RELEASED, reason=refusal.reason)
            raise await self._settlement.refused(payment.quote, refusal) from refusal
        except BaseException as error:  # a caller that goes away meanwhile as well
            reason = error.code if isinstance(error, Unavailable) else type(error).__name__
            await self._ledger.move(claim.entry, State.RELEASED, reason=reason)
            raise
        return Held(await self._renewed(claim.entry, payment.quote), payment.quote)

    async def _claimed_meanwhile(
        self, entry: Entry, payment: Payment, request: PaidRequest
    ) -> Replay:
        """What somebody else's claim bought: the same caller's, or a thief's. Raises as `hold`."""
        try:
            spent = Spent(entry, payment.digest, payment.token)
            replay = await self.retries.bought(spent, request)
        except PaymentRefused as refusal:
            raise await self._settlement.refused(payment.quote, refusal) from refusal
        if replay is None:  # finished when it is sent again, where it was claimed
            raise self._settlement.pending(entry)
        return replay

    async def _verify(self, payment: Payment, claim: Claim, gas: GasOffer) -> None:
        """The protocol's own checks, and that the balance covers everything in flight."""
        if gas.refusal is not None:
            raise gas.refusal
        if claim.failures >= FAILURES_MAX:
            message = "Too many settlements of this payer failed: try again in an hour."
            raise PaymentRefused("too_many_failed_settlements", message)
        protocol = self._settlement.of(payment.quote)
        await require_cover(payment, claim, protocol, self._settlement.needs, self._ledger)

    async def _renewed(self, entry: Entry, quote: Quote) -> Entry:
        """The entry, for as long as the upstream may work: nobody takes it over meanwhile.

        Raises `PaymentPending` when somebody has already.
        """
        if self._clock.now() + timedelta(seconds=quote.work_s) + WORK_SLACK <= entry.lease_until:
            return entry
        lease = self._settlement.lease(quote.work_s)
        return await self._settlement.moved(entry, entry.state, lease_until=lease)

    async def _arrived(self, entry: Entry, transaction: str) -> Entry:
        """The money moved before we were asked: it is written down as settled at once."""
        return await self._settlement.moved(
            entry, State.SETTLED, attempt=Attempt(transaction), lease_until=entry.lease_until
        )

    def _fresh(self, payment: Payment, request: PaidRequest) -> Entry:
        quote, now = payment.quote, self._clock.now()
        credential = payment.credential
        if self._settlement.of(quote).publishes:
            credential = marked(credential, payment.token, request.caller)
        entry_id, digest = new_id(), request_digest(quote.wrapper_id, request)
        # As a UUID, which every upstream with such keys takes; what it was made of cannot be told.
        key = self._idempotency_keys.mac(f"{entry_id} {digest}".encode())[:16]
        return Entry(
            id=entry_id,
            protocol=quote.network.protocol,
            network=quote.network.id,
            asset=quote.network.asset.address,
            payer=payment.payer,
            nonce=payment.nonce,
            digest=payment.digest,
            amount=quote.amount,
            pay_to=quote.pay_to,
            operator_id=quote.operator_id,
            wrapper_id=quote.wrapper_id,
            request_digest=digest,
            state=State.CLAIMED,
            attempt=Attempt(""),
            reason="",
            credential=credential,
            version=payment.version,
            identifier=payment.identifier,
            fees=payment.fees,
            fee_rate=quote.fee_rate,
            expires_at=payment.expires_at,
            lease_until=self._settlement.lease(quote.work_s),
            created_at=now,
            updated_at=now,
            wrapper_revision=quote.revision,
            idempotency_key=str(UUID(bytes=key, version=4)),
        )
