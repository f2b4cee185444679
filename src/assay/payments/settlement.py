"""Settling what is in the ledger, and finishing what a crash or an outage left unfinished.

An outcome that is not known is never told as a refusal; nothing is sent before it is written down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from assay.kit.clock import Clock
from assay.kit.errors import ServiceError
from assay.payments.model import (
    Attempt,
    Entry,
    Headers,
    PaymentRefused,
    PaymentRequired,
    Quote,
    Rejected,
    Settled,
    SettlementPending,
    State,
    Stored,
    Undecided,
)
from assay.payments.ports import LedgerStore, Note, PaymentProtocol, ProtocolNeeds

RECONCILED_AT_ONCE: Final = 100


class PaymentPending(SettlementPending):
    """With the protocol's own headers for it."""

    def __init__(self, headers: Headers) -> None:
        super().__init__(
            "The payment's outcome is not known yet: send the same request again, do not pay anew.",
            retry_after_s=2,
        )
        self.headers = headers


class Settlement:
    """Moves entries towards their end; what the till stands on."""

    def __init__(
        self,
        protocols: Mapping[str, PaymentProtocol],
        needs: ProtocolNeeds,
        ledger: LedgerStore,
        clock: Clock,
        lease: timedelta,
    ) -> None:
        self._protocols = protocols
        self.needs = needs
        self.ledger = ledger
        self.clock = clock
        self._lease = lease

    def of(self, quote: Quote) -> PaymentProtocol:
        """The protocol of a quote."""
        return self._protocols[quote.network.protocol]

    def attached(self, headers: Headers) -> Sequence[PaymentProtocol]:
        """The protocols of which a payment is attached, good or bad."""
        return [one for one in self._protocols.values() if one.is_attached(headers)]

    def publishes(self, entry: Entry) -> bool:
        """Whether settling an entry shows its credential to the world."""
        return self._protocols[entry.protocol].publishes

    def receipt(self, entry: Entry, *, is_refusal: bool = False) -> Headers:
        """The headers that say it was paid; on a refusal, where the protocol has any there."""
        protocol = self._protocols[entry.protocol]
        if is_refusal and not protocol.receipts_refusals:
            return ()
        return protocol.receipt(entry, self.needs)

    def pending(self, entry: Entry) -> PaymentPending:
        """That nobody can say yet; to be raised."""
        return PaymentPending(self._protocols[entry.protocol].pending(entry))

    async def refused(self, quote: Quote, refusal: PaymentRefused) -> ServiceError:
        """The 402 of a payment that does not pay; to be raised."""
        demand = await self.of(quote).demand(quote, self.needs, refusal.reason, refusal.transaction)
        return PaymentRequired(refusal.message, demand)

    def lease(self, work_s: float = 0.0) -> datetime:
        """Until when an entry is left to whoever works on it from now on."""
        return self.clock.now() + timedelta(seconds=work_s) + self._lease

    async def settle(self, entry: Entry) -> Entry:
        """Take the money of a claimed entry.

        Raises `PaymentRefused` when it was refused, `PaymentPending` when nobody can say yet.
        """
        latest = entry

        async def note(attempt: Attempt) -> None:
            nonlocal latest
            latest = await self.moved(latest, State.SETTLING, attempt=attempt)

        outcome = await self._protocols[entry.protocol].settle(entry, note, self.needs)
        match outcome:
            case Settled():
                return await self._settled(latest, outcome, self.lease())
            case Rejected():
                await self.moved(latest, State.FAILED, reason=outcome.reason)
                message = "The payment could not be settled; nothing was charged."
                raise PaymentRefused(outcome.reason, message, latest.attempt.transaction)
            case Undecided():
                now = self.clock.now()
                raise self.pending(
                    await self.moved(latest, State.PENDING, reason=outcome.detail, lease_until=now)
                )

    async def finish(self, entry: Entry) -> Entry:
        """An entry somebody else began, once it has been paid; its caller has come again.

        Raises as `settle`.
        """
        if entry.lease_until > self.clock.now():
            raise self.pending(entry)
        if not entry.attempt.transaction:  # nothing was sent yet, so it is settled now
            found = await self._protocols[entry.protocol].outcome(entry, self.needs)
            if isinstance(found, Undecided):
                entry = await self.moved(entry, State.SETTLING, lease_until=self.lease())
                return await self.settle(entry)
        moved = await self.reconcile(entry)
        if moved is None or moved.state is State.PENDING:
            raise self.pending(entry)
        if moved.state is State.FAILED:
            raise PaymentRefused(moved.reason, "This payment could not be settled.")
        return moved

    async def reconcile_all(self) -> list[Entry]:
        """Find out what became of settlements nobody works on any more; those that moved on.

        Nothing new is sent but what was signed before, or must replace it.
        """
        found = await self.ledger.unfinished(self.clock.now(), RECONCILED_AT_ONCE)
        moved = [await self.reconcile(entry) for entry in found]
        return [entry for entry in moved if entry is not None]

    async def reconcile(self, entry: Entry) -> Entry | None:
        """What the chain says of an entry, written down; None when somebody else was faster."""
        latest = await self.ledger.move(entry, entry.state, lease_until=self.lease())
        if latest is None:
            return None

        async def note(attempt: Attempt) -> None:
            nonlocal latest
            if latest is not None:
                latest = await self.moved(latest, State.SETTLING, attempt=attempt)

        found = await self._found(latest, note)
        now = self.clock.now()
        match found:
            case Settled():
                return await self._settled(latest, found, now)
            case Rejected():
                return await self.ledger.move(latest, State.FAILED, reason=found.reason)
            case Undecided():
                return await self.ledger.move(
                    latest, State.PENDING, reason=found.detail, lease_until=now
                )

    async def moved(
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
        moved = await self.ledger.move(
            entry, state, attempt=attempt, reason=reason, lease_until=lease_until, stored=stored
        )
        if moved is None:
            raise self.pending(entry)
        return moved

    async def _found(self, entry: Entry, note: Note) -> Settled | Rejected | Undecided:
        protocol = self._protocols[entry.protocol]
        found = await protocol.outcome(entry, self.needs)
        if isinstance(found, Undecided) and entry.attempt.raw:
            return await protocol.resend(entry, note, self.needs)
        return found

    async def _settled(self, entry: Entry, found: Settled, lease_until: datetime) -> Entry:
        attempt = replace(entry.attempt, transaction=found.transaction)
        return await self.moved(entry, State.SETTLED, attempt=attempt, lease_until=lease_until)
