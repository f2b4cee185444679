"""Taking payments: claim, serve, settle, and whatever a crash or a retry makes of it.

    claimed -> settling(tx) -> settled -> delivered        (released, failed, pending)

Every step is in the ledger before it is taken. Whoever comes again with the same credential for
the same request gets what it bought; nobody pays for what was not served; an outcome that is not
known is never told as a refusal. Source: decisions, section 9; facts, payments 6 and 7.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from assay.kit.clock import Clock
from assay.kit.errors import ServiceError, Unavailable
from assay.kit.ids import new_id
from assay.payments.model import (
    Attempt,
    Demand,
    Entry,
    Headers,
    Held,
    Payment,
    PaymentRefused,
    PaymentRequired,
    Quote,
    Rejected,
    Replay,
    Settled,
    SettlementPending,
    State,
    Stored,
    Undecided,
)
from assay.payments.ports import Claim, LedgerStore, PaidRequest, PaymentProtocol, ProtocolNeeds

SETTLE_LEASE: Final = timedelta(seconds=45)
"""How long a settlement is left to the process that began it."""

FAILURES_WINDOW: Final = timedelta(hours=1)
FAILURES_MAX: Final = 5
"""Settlements of one payer that may fail in an hour: each can burn gas of ours.
Source: facts, payments 6, row 27."""

RECONCILED_AT_ONCE: Final = 100

_USED = "invalid_exact_evm_nonce_already_used"


class PaymentPending(SettlementPending):
    """With the protocol's own headers for it."""

    def __init__(self, headers: Headers) -> None:
        super().__init__(
            "The payment's outcome is not known yet: send the same request again, do not pay anew.",
            retry_after_s=2,
        )
        self.headers = headers


class Till:
    """The one place that changes the ledger."""

    def __init__(
        self,
        protocols: Mapping[str, PaymentProtocol],
        needs: ProtocolNeeds,
        ledger: LedgerStore,
        clock: Clock,
    ) -> None:
        self._protocols = protocols
        self._needs = needs
        self._ledger = ledger
        self._clock = clock

    def is_attached(self, quote: Quote, headers: Headers) -> bool:
        """Whether a payment is attached, good or bad."""
        return self._of(quote).is_attached(headers)

    async def demand(self, quote: Quote) -> PaymentRequired:
        """The 402 of a call without payment; to be raised."""
        demand = await self._of(quote).demand(quote, self._needs, "payment_required")
        return PaymentRequired("This call has to be paid for.", demand)

    async def read(self, quote: Quote, request: PaidRequest) -> Payment:
        """The attached payment. Raises `PaymentRequired` and `PaymentsUnavailable`."""
        try:
            return await self._of(quote).read(request, quote, self._needs)
        except PaymentRefused as refusal:
            known = refusal.digest and await self._ledger.find(quote.network.id, refusal.digest)
            if known and known.state not in {State.CLAIMED, State.RELEASED}:
                return _as_read(known, quote)  # its time is over, but it was spent in time
            raise await self._refused(quote, refusal) from refusal

    async def hold(self, payment: Payment, request: PaidRequest) -> Held | Replay:
        """Claim and verify a payment. Nothing has moved yet.

        Raises `PaymentRequired`, `PaymentPending` while somebody else works on it, and
        `PaymentsUnavailable`; the claim is released then.
        """
        fresh = self._fresh(payment, request_digest(payment.quote, request))
        claim = await self._claim(fresh)
        if not claim.is_ours:
            return await self._known(claim.entry, payment, fresh.request_digest)
        if payment.already_paid:
            return Held(await self._arrived(claim.entry), payment.quote)
        try:
            if claim.failures >= FAILURES_MAX:
                message = "Too many settlements of this payer failed: try again in an hour."
                raise PaymentRefused("too_many_failed_settlements", message)
            await self._verify(payment, claim.committed, fresh)
        except (PaymentRefused, Unavailable) as error:
            await self._ledger.move(claim.entry, State.RELEASED, reason=_reason(error))
            if isinstance(error, PaymentRefused):
                raise await self._refused(payment.quote, error) from error
            raise
        return Held(claim.entry, payment.quote)

    async def settle(self, held: Held, stored: Stored | None) -> Entry:
        """Take the money; `stored`, what it bought, is kept first.

        Raises `PaymentRequired` when it was refused (what was bought is withheld) and
        `PaymentPending` when nobody can say yet.
        """
        entry = await self._moved(
            held.entry, State.SETTLING, lease_until=self._lease(), stored=stored
        )
        return await self._settle(entry, held.quote)

    async def keep(self, entry: Entry, stored: Stored) -> Entry:
        """Keep what a settled payment bought."""
        return await self._moved(entry, State.SETTLED, lease_until=self._lease(), stored=stored)

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

    def receipt(self, entry: Entry) -> Headers:
        """The headers that say it was paid."""
        return self._protocols[entry.protocol].receipt(entry, self._needs)

    async def reconcile(self) -> list[Entry]:
        """Find out what became of settlements nobody works on any more; those that moved on.

        Nothing new is sent here but a transaction that was signed before.
        """
        found = await self._ledger.unfinished(self._clock.now(), RECONCILED_AT_ONCE)
        moved = [await self._reconcile(entry) for entry in found]
        return [entry for entry in moved if entry is not None]

    async def _settle(self, entry: Entry, quote: Quote) -> Entry:
        latest = entry

        async def note(attempt: Attempt) -> None:
            nonlocal latest
            latest = await self._moved(latest, State.SETTLING, attempt=attempt)

        outcome = await self._protocols[entry.protocol].settle(entry, note, self._needs)
        match outcome:
            case Settled():
                return await self._moved(
                    latest,
                    State.SETTLED,
                    attempt=replace(latest.attempt, transaction=outcome.transaction),
                    lease_until=self._lease(),
                )
            case Rejected():
                await self._moved(latest, State.FAILED, reason=outcome.reason)
                message = "The payment could not be settled; nothing was charged."
                refusal = PaymentRefused(outcome.reason, message, latest.attempt.transaction)
                raise await self._refused(quote, refusal)
            case Undecided():
                waiting = await self._moved(
                    latest, State.PENDING, reason=outcome.detail, lease_until=self._clock.now()
                )
                raise self._pending(waiting)

    async def _known(self, entry: Entry, payment: Payment, digest: str) -> Held | Replay:
        """Somebody has claimed this payment before: the same caller again, or a thief."""
        if entry.digest != payment.digest or entry.request_digest != digest:
            refusal = PaymentRefused(_USED, "This payment was used for another request.")
            raise await self._refused(payment.quote, refusal)
        if entry.state is State.FAILED:
            refusal = PaymentRefused(entry.reason, "This payment could not be settled.")
            raise await self._refused(payment.quote, refusal)
        if not entry.has_paid:
            entry = await self._finish(entry, payment.quote)
        stored = await self._ledger.stored(entry.id)
        if stored is not None:
            return Replay(entry, stored)
        if entry.state is State.DELIVERED:
            refusal = PaymentRefused(_USED, "What this payment bought is not kept any more.")
            raise await self._refused(payment.quote, refusal)
        if entry.lease_until > self._clock.now():
            raise self._pending(entry)
        taken = await self._moved(entry, State.SETTLED, lease_until=self._work_lease(payment.quote))
        return Held(taken, payment.quote)

    async def _finish(self, entry: Entry, quote: Quote) -> Entry:
        """The entry once it has been paid; whoever left it unfinished is dead by its lease."""
        if entry.lease_until > self._clock.now():
            raise self._pending(entry)
        found = await self._protocols[entry.protocol].outcome(entry, self._needs)
        if isinstance(found, Undecided) and not entry.attempt.transaction:
            entry = await self._moved(entry, State.SETTLING, lease_until=self._lease())
            return await self._settle(entry, quote)
        moved = await self._reconcile(entry)
        if moved is None or moved.state is State.PENDING:
            raise self._pending(entry)
        if moved.state is State.FAILED:
            refusal = PaymentRefused(moved.reason, "This payment could not be settled.")
            raise await self._refused(quote, refusal)
        return moved

    async def _reconcile(self, entry: Entry) -> Entry | None:
        """What the chain says of an entry, written down; None when somebody else was faster."""
        leased = await self._ledger.move(entry, entry.state, lease_until=self._lease())
        if leased is None:
            return None
        entry = leased
        protocol = self._protocols[entry.protocol]
        found = await protocol.outcome(entry, self._needs)
        if isinstance(found, Undecided) and entry.attempt.raw:

            async def note(attempt: Attempt) -> None:
                nonlocal entry
                entry = await self._moved(entry, State.SETTLING, attempt=attempt)

            found = await protocol.resend(entry, note, self._needs)
        now = self._clock.now()
        match found:
            case Settled():
                attempt = replace(entry.attempt, transaction=found.transaction)
                return await self._ledger.move(
                    entry, State.SETTLED, attempt=attempt, lease_until=now
                )
            case Rejected():
                return await self._ledger.move(entry, State.FAILED, reason=found.reason)
            case Undecided():
                return await self._ledger.move(
                    entry, State.PENDING, reason=found.detail, lease_until=now
                )

    async def _verify(self, payment: Payment, committed: int, fresh: Entry) -> None:
        """The protocol's own checks, and that the balance covers everything in flight."""
        balance = await self._of(payment.quote).verify(payment, self._needs)
        if balance is None or balance >= committed + fresh.amount:
            return
        # What was in flight may have settled since it was counted: then it was counted twice.
        committed = await self._ledger.committed(fresh)
        balance = await self._of(payment.quote).verify(payment, self._needs)
        if balance is not None and balance < committed + fresh.amount:
            message = "The payer's balance does not cover its other payments in flight as well."
            raise PaymentRefused("insufficient_funds", message)

    async def _arrived(self, entry: Entry) -> Entry:
        """The money moved before we were asked: it is written down as settled at once."""
        attempt = Attempt(entry.nonce)
        return await self._moved(
            entry, State.SETTLED, attempt=attempt, lease_until=entry.lease_until
        )

    async def _claim(self, fresh: Entry) -> Claim:
        return await self._ledger.claim(fresh, self._clock.now() - FAILURES_WINDOW)

    async def _moved(
        self,
        entry: Entry,
        state: State,
        *,
        attempt: Attempt | None = None,
        reason: str = "",
        lease_until: datetime | None = None,
        stored: Stored | None = None,
    ) -> Entry:
        """The entry moved on; raises `PaymentPending` when somebody else has taken it over."""
        moved = await self._ledger.move(
            entry, state, attempt=attempt, reason=reason, lease_until=lease_until, stored=stored
        )
        if moved is None:
            raise self._pending(entry)
        return moved

    async def _refused(self, quote: Quote, refusal: PaymentRefused) -> ServiceError:
        demand: Demand = await self._of(quote).demand(
            quote, self._needs, refusal.reason, refusal.transaction
        )
        return PaymentRequired(refusal.message, demand)

    def _pending(self, entry: Entry) -> PaymentPending:
        return PaymentPending(self._protocols[entry.protocol].pending(entry))

    def _of(self, quote: Quote) -> PaymentProtocol:
        return self._protocols[quote.network.protocol]

    def _lease(self) -> datetime:
        return self._clock.now() + SETTLE_LEASE

    def _work_lease(self, quote: Quote) -> datetime:
        return self._clock.now() + timedelta(seconds=quote.work_s) + SETTLE_LEASE

    def _fresh(self, payment: Payment, digest: str) -> Entry:
        quote, now = payment.quote, self._clock.now()
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
            credential=payment.credential,
            version=payment.version,
            identifier=payment.identifier,
            expires_at=payment.expires_at,
            lease_until=self._work_lease(quote),
            created_at=now,
            updated_at=now,
        )


def request_digest(quote: Quote, request: PaidRequest) -> str:
    """SHA-256 over what is bought."""
    said = (quote.wrapper_id, request.method, request.url)
    head = b"\0".join(part.encode("utf-8", "surrogateescape") for part in said)
    return hashlib.sha256(head + b"\0" + hashlib.sha256(request.body).digest()).hexdigest()


def _as_read(entry: Entry, quote: Quote) -> Payment:
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
    )


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, PaymentRefused) else "payments_unavailable"
