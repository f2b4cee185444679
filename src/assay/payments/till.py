"""Taking payments: claim, serve, settle, and whatever a retry makes of it.

    claimed -> settling(tx) -> settled -> delivered        (released, failed, pending)

Every step is in the ledger before it is taken. Whoever comes again with the same credential for
the same request gets what it bought; nobody pays for what was not served. Source: decisions,
section 9; facts, payments 6 and 7.
"""

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Final

from assay.kit.errors import Unavailable
from assay.kit.ids import new_id
from assay.payments.buyer import is_buyer, marked
from assay.payments.cover import require_cover
from assay.payments.model import (
    Attempt,
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
from assay.payments.ports import Claim, PaidRequest
from assay.payments.settlement import PaymentPending, Settlement

__all__ = ["PaymentPending", "Till"]

FAILURES_WINDOW: Final = timedelta(hours=1)
FAILURES_MAX: Final = 5
"""Settlements of one payer that may fail in an hour: each can burn gas of ours.
Source: facts, payments 6, row 27."""

_USED = "invalid_exact_evm_nonce_already_used"
_ELSEWHERE = (
    "This payment was used by somebody else. Its buyer comes from the address it came from, or"
    " with the 402's token, or with a session of the payer."
)
_PUBLIC = frozenset({State.SETTLING, State.PENDING, State.SETTLED, State.DELIVERED})
"""States in which a credential may stand on the chain, for all to read."""


class Till:
    """What wrappers know of payments."""

    def __init__(self, settlement: Settlement) -> None:
        self._settlement = settlement
        self._ledger = settlement.ledger
        self._clock = settlement.clock

    def is_attached(self, quote: Quote, headers: Headers) -> bool:
        """Whether a payment is attached, good or bad."""
        return self._settlement.of(quote).is_attached(headers)

    def is_any_attached(self, headers: Headers) -> bool:
        """Whether a payment of any protocol is attached, good or bad."""
        return self._settlement.is_any_attached(headers)

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
            known = refusal.digest and await self._ledger.find(quote.network.id, refusal.digest)
            if known and known.state not in {State.CLAIMED, State.RELEASED}:
                return _as_read(known, quote, refusal.token)  # it was spent in its time
            raise await self._settlement.refused(quote, refusal) from refusal

    async def bought(self, payment: Payment, request: PaidRequest) -> Replay | None:
        """What a spent payment has bought, to be handed out before anything is counted or judged.

        None for one that buys now. A spent credential may be known to all: it proves nobody, and
        so it must use up nobody's rate limit. Raises `PaymentRequired` when it buys nothing more.
        """
        known = await self._ledger.find(payment.quote.network.id, payment.digest)
        if known is None or known.state not in _PUBLIC:
            return None
        await self._require_same(known, payment, request_digest(payment.quote, request))
        if known.has_paid:
            return await self._handed_out(known, payment, request)
        if not self._is_buyer(known, payment, request):
            raise self._settlement.pending(known)
        return None

    async def hold(
        self, payment: Payment, request: PaidRequest, agent_id: str = ""
    ) -> Held | Replay:
        """Claim and verify a payment; it is counted for that agent. Nothing has moved yet.

        Raises `PaymentRequired`, `PaymentPending` while somebody else works on it, and
        `PaymentsUnavailable`; the claim is released then.
        """
        digest = request_digest(payment.quote, request)
        fresh = replace(self._fresh(payment, digest, request.caller), agent_id=agent_id)
        claim = await self._ledger.claim(fresh, self._clock.now() - FAILURES_WINDOW)
        if not claim.is_ours:
            return await self._known(claim.entry, payment, fresh.request_digest, request)
        if payment.paid_by:
            return Held(await self._arrived(claim.entry, payment.paid_by), payment.quote)
        try:
            await self._verify(payment, claim)
        except PaymentRefused as refusal:
            await self._ledger.move(claim.entry, State.RELEASED, reason=refusal.reason)
            raise await self._settlement.refused(payment.quote, refusal) from refusal
        except BaseException as error:  # a caller that goes away meanwhile as well
            reason = error.code if isinstance(error, Unavailable) else type(error).__name__
            await self._ledger.move(claim.entry, State.RELEASED, reason=reason)
            raise
        return Held(claim.entry, payment.quote)

    async def settle(self, held: Held, stored: Stored | None) -> Entry:
        """Take the money; `stored`, what it bought, is kept first.

        Raises `PaymentRequired` when it was refused (what was bought is withheld) and
        `PaymentPending` when nobody can say yet.
        """
        lease = self._settlement.lease(held.quote.work_s if stored is None else 0.0)
        entry = await self._settlement.moved(
            held.entry, State.SETTLING, lease_until=lease, stored=stored
        )
        return await self._settlement.settle(entry, held.quote)

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

    async def reconcile(self) -> list[Entry]:
        """Finish what nobody works on any more; those that moved on."""
        return await self._settlement.reconcile_all()

    async def _known(
        self, entry: Entry, payment: Payment, digest: str, request: PaidRequest
    ) -> Held | Replay:
        """Somebody has claimed this payment before: the same caller again, or a thief."""
        settlement, quote = self._settlement, payment.quote
        await self._require_same(entry, payment, digest)
        if entry.state is State.FAILED:
            refusal = PaymentRefused(entry.reason, "This payment could not be settled.")
            raise await settlement.refused(quote, refusal)
        if entry.state is State.CLAIMED:
            raise settlement.pending(entry)
        if not entry.has_paid:
            if not self._is_buyer(entry, payment, request):
                raise settlement.pending(entry)
            entry = await settlement.finish(entry, quote)
        replay = await self._handed_out(entry, payment, request)
        if replay is not None:
            return replay
        if entry.lease_until > self._clock.now():
            raise settlement.pending(entry)
        lease = settlement.lease(quote.work_s)
        return Held(await settlement.moved(entry, State.SETTLED, lease_until=lease), quote)

    async def _require_same(self, entry: Entry, payment: Payment, digest: str) -> None:
        if entry.digest != payment.digest or entry.request_digest != digest:
            refusal = PaymentRefused(_USED, "This payment was used for another request.")
            raise await self._settlement.refused(payment.quote, refusal)

    def _is_buyer(self, entry: Entry, payment: Payment, request: PaidRequest) -> bool:
        """Whether who shows the credential is who paid; the chain shows some to everybody."""
        public = self._settlement.of(payment.quote).publishes
        return not public or is_buyer(entry, payment.token, request)

    async def _handed_out(
        self, entry: Entry, payment: Payment, request: PaidRequest
    ) -> Replay | None:
        """What was bought, for its buyer; None while it is not there yet."""
        size = await self._ledger.stored_bytes(entry.id)
        await request.make_room(size or 0)
        stored = None if size is None else await self._ledger.stored(entry.id)
        went_here = stored is not None and stored.caller == request.caller
        if not went_here and not self._is_buyer(entry, payment, request):
            refusal = PaymentRefused(_USED, _ELSEWHERE)
            raise await self._settlement.refused(payment.quote, refusal)
        if stored is not None:
            return Replay(entry, stored)
        if entry.state is State.DELIVERED:
            refusal = PaymentRefused(_USED, "What this payment bought has been delivered.")
            raise await self._settlement.refused(payment.quote, refusal)
        return None

    async def _verify(self, payment: Payment, claim: Claim) -> None:
        """The protocol's own checks, and that the balance covers everything in flight."""
        if claim.failures >= FAILURES_MAX:
            message = "Too many settlements of this payer failed: try again in an hour."
            raise PaymentRefused("too_many_failed_settlements", message)
        protocol = self._settlement.of(payment.quote)
        await require_cover(payment, claim, protocol, self._settlement.needs, self._ledger)

    async def _arrived(self, entry: Entry, transaction: str) -> Entry:
        """The money moved before we were asked: it is written down as settled at once."""
        return await self._settlement.moved(
            entry, State.SETTLED, attempt=Attempt(transaction), lease_until=entry.lease_until
        )

    def _fresh(self, payment: Payment, digest: str, caller: str) -> Entry:
        quote, now = payment.quote, self._clock.now()
        credential = payment.credential
        if self._settlement.of(quote).publishes:
            credential = marked(credential, payment.token, caller)
        return Entry(
            id=new_id(),
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
        )


def request_digest(quote: Quote, request: PaidRequest) -> str:
    """SHA-256 over what is bought."""
    said = (quote.wrapper_id, request.method, request.url)
    head = b"\0".join(part.encode("utf-8", "surrogateescape") for part in said)
    return hashlib.sha256(head + b"\0" + hashlib.sha256(request.body).digest()).hexdigest()


def _as_read(entry: Entry, quote: Quote, token: str) -> Payment:
    """The payment an entry was made of."""
    return Payment(
        quote=quote,
        payer=entry.payer,
        nonce=entry.nonce,
        digest=entry.digest,
        expires_at=entry.expires_at,
        credential=entry.credential,
        version=entry.version,
        identifier=entry.identifier,
        fees=entry.fees,
        token=token,
    )
