"""Takes payments: claims, serves, settles, and handles retries.

    claimed -> settling(tx) -> settled -> delivered        (released, failed, pending)

Every step is in the ledger before it is taken. A caller with the same credential and request gets
what it bought, whatever has become of its wrapper since. Nobody pays for what was not served.
Source: conventions.md#wrapper; payment-safety.md#attacks-and-faults, #order-of-a-payment; ADR 0020.

A payer's balance must cover a payment and everything of theirs that is in flight. The balance and
the ledger change at different times: a sent payment may have left the balance while the ledger
still counts it, and is then counted twice. Source: payment-safety.md#over-commitment.

Rows of payments that move nothing count for the caller's network, and are refused beyond its quota.
Anybody can sign payments without having the money, and each is a row of the ledger before its
balance is known. Payers who have paid before have a count of their own once strangers have used up
the quota of their address.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from assay.common.clock import Clock
from assay.common.costs import NAME_CHARS_MAX, Bearer, Cost, CostLedger
from assay.common.dataclass_copy import changed
from assay.common.errors import ServiceError, Unavailable
from assay.common.http_heads import HeaderPairs
from assay.common.keyring import MacKeys
from assay.payments.gas import GasOffer
from assay.payments.model import (
    ClaimedPayment,
    InFlightAmount,
    LedgerEntry,
    Payment,
    PaymentClaim,
    PaymentRefused,
    PaymentRequired,
    PaymentSighting,
    PaymentState,
    PaymentsUnavailable,
    Quote,
    Replay,
    StoredResponse,
)
from assay.payments.outcomes import AT_ONCE, Rejected, Settled, Undecided
from assay.payments.ports import (
    Balances,
    PaidRequest,
    PaymentProtocol,
    PresentedPayment,
    ProtocolDependencies,
    fresh_entry,
    is_buyer,
    is_same_request,
)
from assay.payments.settlement import (
    EVERY_NODE,
    WORK_SLACK,
    Settlement,
    find_out,
)
from assay.payments.store import SqlLedgerStore

_COSTS: Final = (Cost.ROWS, Cost.DISK_BYTES)


class UnpaidRows:
    """Decides who bears the row of a payment, and counts it."""

    def __init__(self, costs: CostLedger, payers: SqlLedgerStore | None = None) -> None:
        self._costs = costs
        self._payers = payers

    async def bearer(self, payment: Payment, caller: str) -> str:
        """Return the bearer of the row of a claim that is about to be made.

        Raises `QuotaExceeded` if nobody can bear it; nothing is stored then.
        """
        address = Bearer(f"address {caller}"[:NAME_CHARS_MAX])
        if all(self._costs.has_left(cost, address) for cost in _COSTS):
            return address.name
        if self._payers is None or not await self._payers.has_paid(payment):
            self._costs.require(*_COSTS, bearer=address)
        payer = Bearer(f"payer {payment.payer}"[:NAME_CHARS_MAX])
        self._costs.require(*_COSTS, bearer=payer)
        return payer.name

    def count(
        self, bearer: str, stored: StoredResponse | None = None, *, is_new: bool = True
    ) -> None:
        """Count a row that moved nothing, if it is new, and the answer that was kept for it."""
        if not bearer:
            return
        if is_new:
            self._costs.charge(Cost.ROWS, 1, Bearer(bearer))
        if stored is not None:
            self._costs.charge(Cost.ROWS, 1, Bearer(bearer))
            self._costs.charge(Cost.DISK_BYTES, len(stored.body), Bearer(bearer))

    @contextmanager
    def unless_it_holds(
        self, bearer: str, stored: StoredResponse | None = None, *, is_new: bool = True
    ) -> Generator[None]:
        """Count the row if the work inside the block fails, whatever becomes of it later."""
        try:
            yield
        except BaseException:
            self.count(bearer, stored, is_new=is_new)
            raise


LANDING_S: Final = 10.0
"""Longest wait for a sent payment: several blocks, and a look at their receipts."""
PAUSE_S: Final = 0.05
PAUSE_MAX_S: Final = 0.4


async def require_cover(
    payment: Payment,
    claim: PaymentClaim,
    protocol: PaymentProtocol,
    needs: ProtocolDependencies,
    ledger: SqlLedgerStore,
    sighting: PaymentSighting,
) -> None:
    """Run the protocol's own checks, and require that nothing is promised twice.

    Raises `PaymentRefused` at once if the count is exact, `PaymentsUnavailable` if something may
    still have been counted twice after `LANDING_S`, and what `PaymentProtocol.verify` raises.
    """
    committed = claim.committed
    until_s = needs.clock.monotonic_s() + LANDING_S
    while True:
        balances = await protocol.verify(payment, needs, sighting)
        if balances is None or _is_covered(balances, claim.entry, committed):
            return
        committed = await _changed(committed, claim.entry, ledger, needs.clock, until_s)


async def _changed(
    seen: InFlightAmount, entry: LedgerEntry, ledger: SqlLedgerStore, clock: Clock, until_s: float
) -> InFlightAmount:
    """Return what is in flight once it has changed: while it is the same, it is still short."""
    pause_s = 0.0
    while True:
        await asyncio.sleep(pause_s)
        found = await ledger.committed(entry)
        if found == seen and not found.sent:
            message = "The payer's balance does not cover its other payments in flight as well."
            raise PaymentRefused("insufficient_funds", message)
        if clock.monotonic_s() > until_s:
            message = "Other payments of this payer are being settled: send this one again."
            raise PaymentsUnavailable(message, retry_after_s=2)
        if found != seen:
            return found
        pause_s = min(PAUSE_S + 2 * pause_s, PAUSE_MAX_S)


def _is_covered(balances: Balances, entry: LedgerEntry, committed: InFlightAmount) -> bool:
    """Return whether there is enough for the entry and its fees, and for all that is in flight."""
    fees, needed = entry.fees, committed.amount + entry.amount
    if fees.token == entry.asset:
        needed += fees.most
    elif fees.most and balances.get(fees.token, 0) < committed.fees + fees.most:
        return False
    return balances.get(entry.asset, 0) >= needed


_USED = "invalid_exact_evm_nonce_already_used"
_ELSEWHERE = (
    "This payment was used by somebody else. Its buyer comes from the address it came from, or"
    " with the 402's token, or with a session of the payer."
)


@dataclass(frozen=True, slots=True)
class PaymentSpent:
    """A payment that is shown again: its ledger entry, and what its sender knows."""

    entry: LedgerEntry
    digest: str
    token: str


FAILURES_WINDOW: Final = timedelta(hours=1)
FAILURES_MAX: Final = 5
"""Most failed settlements of one payer in an hour, with calls that their payments cut short: each
can burn our gas, or an upstream's work. Source: payment-safety.md#gas-griefing."""


class PaymentService:
    """What wrappers use of payments."""

    def __init__(
        self, settlement: Settlement, idempotency_keys: MacKeys, rows: UnpaidRows | None = None
    ) -> None:
        """Create it; `idempotency_keys` derive upstreams' keys; without `rows` no quota."""
        self._settlement = settlement
        self._idempotency_keys = idempotency_keys
        self._protocols, self._needs = settlement.protocols, settlement.needs
        self._ledger, self._clock = settlement.ledger, settlement.clock
        self._rows = rows or UnpaidRows(CostLedger(settlement.clock))

    def is_attached(self, quote: Quote, headers: HeaderPairs) -> bool:
        """Return whether a payment is attached, valid or not."""
        return self._of(quote).is_attached(headers)

    def is_any_attached(self, headers: HeaderPairs) -> bool:
        """Return whether a payment of any protocol is attached, valid or not."""
        return bool(self._attached(headers))

    async def presented(self, headers: HeaderPairs) -> Sequence[PresentedPayment]:
        """Return the attached payments, parsed but not verified: one for each protocol."""
        protocols = self._attached(headers)
        found = [await one.present(headers, self._needs) for one in protocols]
        return [one for one in found if one is not None]

    def is_payable(self, quote: Quote, presented: PresentedPayment) -> bool:
        """Return whether a payment claims to pay the quote, and is valid for long enough."""
        needed_s = self._of(quote).needed_s(quote, self._needs)
        left_s = presented.expires_s - self._clock.now().timestamp()
        return presented.pays(quote) and left_s >= needed_s

    def quote_life_s(self, quote: Quote) -> float:
        """Return how long a quote may be paid after it was asked for, in seconds."""
        return self._of(quote).quote_life_s(quote, self._needs)

    async def refused(self, quote: Quote, refusal: PaymentRefused) -> ServiceError:
        """Return the 402 of a payment that does not pay, to be raised."""
        demand = await self._of(quote).demand(
            quote, self._needs, refusal.reason, refusal.transaction
        )
        return PaymentRequired(refusal.message, demand)

    def binds_body(self, quote: Quote) -> bool:
        """Return whether the 402 is bound to the body of the call."""
        return self._of(quote).binds_body

    async def demand(self, quote: Quote) -> PaymentRequired:
        """Return the 402 of a call without payment, to be raised."""
        needs = self._needs
        demand = await self._of(quote).demand(quote, needs, "payment_required")
        return PaymentRequired("This call has to be paid for.", demand)

    async def read(self, quote: Quote, request: PaidRequest) -> Payment:
        """Return the attached payment. Raises `PaymentRequired` and `PaymentsUnavailable`."""
        try:
            return await self._of(quote).read(request, quote, self._needs)
        except PaymentRefused as refusal:
            network = quote.network.id
            spent = refusal.digest and await self.find_spent(
                network, refusal.digest, is_refused=True
            )
            if spent:  # claimed meanwhile, while it was valid
                raise self._settlement.pending(spent.entry) from refusal
            raise await self.refused(quote, refusal) from refusal

    async def find_spent(
        self, network: str, digest: str, token: str = "", *, is_refused: bool = False
    ) -> PaymentSpent | None:
        """Return the entry of a payment that is claimed or spent; None if it may buy now.

        The wrapper and its present terms do not matter: they may have changed, or be gone.
        `is_refused` says that the payment would be refused if it may buy. Raises `PaymentPending`.
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

    async def find_bought(self, spent: PaymentSpent, request: PaidRequest) -> Replay | None:
        """Return what a spent payment has bought, before anything is counted or checked.

        None if its answer is not there yet for its buyer: `resume` continues. A spent credential
        may be public. It proves nobody's identity, so it must use up nobody's rate limit. Raises
        `PaymentRefused` if it buys nothing more, and `PaymentPending`.
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
        """Finish a settled payment whose answer is not there yet; its wrapper must serve it.

        Raises `PaymentRefused`, and `PaymentPending` while another process works on it.
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

    async def hold(
        self, payment: Payment, request: PaidRequest, agent_id: str = ""
    ) -> ClaimedPayment | Replay:
        """Claim and verify a payment, counted for that agent. Nothing has moved yet.

        Raises `PaymentRequired`, `PaymentPending` while another process works on it, and
        `PaymentsUnavailable`; then the claim is released. Raises `QuotaExceeded` before the claim.
        """
        bearer = await self._rows.bearer(payment, request.caller)
        settlement, now = self._settlement, self._clock.now()
        publishes, work_s = self._of(payment.quote).publishes, payment.quote.work_s
        fresh = fresh_entry(payment, request, self._idempotency_keys, now, publishes=publishes)
        fresh = changed(fresh, agent_id=agent_id, lease_until=settlement.lease(work_s))
        async with self._gas(payment.quote) as gas:
            claim = await self._ledger.claim(fresh, now - FAILURES_WINDOW, gas.terms)
            if claim.is_ours:
                return await self._verified_claim(payment, claim, gas, bearer)
            gas.drop()
        return await self._claimed_meanwhile(claim.entry, payment, request)

    async def settle(self, claimed: ClaimedPayment, stored: StoredResponse | None) -> LedgerEntry:
        """Take the money; first keep `stored`, which is what it bought.

        Raises `PaymentRequired` if it was refused (what was bought is withheld), and
        `PaymentPending` if nobody can say yet.
        """
        lease = self._settlement.lease(claimed.quote.work_s if stored is None else 0.0)
        try:
            with self._rows.unless_it_holds(claimed.bearer, stored, is_new=claimed.is_new):
                entry = await self._settlement.moved(
                    claimed.entry, PaymentState.SETTLING, lease_until=lease, stored=stored
                )
                settled = await self._settlement.settle(entry)
        except PaymentRefused as refusal:
            raise await self.refused(claimed.quote, refusal) from refusal
        return settled if stored is not None else await self._renewed(settled, claimed.quote)

    async def keep(self, entry: LedgerEntry, stored: StoredResponse) -> LedgerEntry:
        """Keep what a settled payment bought."""
        return await self._settlement.moved(
            entry, PaymentState.SETTLED, lease_until=self._settlement.lease(), stored=stored
        )

    async def delivered(self, entry: LedgerEntry) -> None:
        """Record that the answer has been sent."""
        if entry.state is PaymentState.SETTLED:
            await self._ledger.move(entry, PaymentState.DELIVERED)

    async def release(self, claimed: ClaimedPayment, reason: str) -> None:
        """Release it: nobody was served, and the payment may be used again.

        A payment that has settled stays settled, and its request may be sent again.
        """
        state = claimed.entry.state if claimed.entry.has_paid else PaymentState.RELEASED
        if state is PaymentState.RELEASED:
            self._rows.count(claimed.bearer, is_new=claimed.is_new)
        now = self._clock.now()
        entry = changed(claimed.entry, look=claimed.entry.look.due(now))
        await self._ledger.move(entry, state, reason=reason, lease_until=now)

    def is_good(self, claimed: ClaimedPayment, work_s: float) -> bool:
        """Return whether it could be sent again now, to be served within `work_s`."""
        protocol, quote = self._of(claimed.quote), changed(claimed.quote, work_s=work_s)
        return protocol.is_good(claimed.entry, quote, self._needs)

    def receipt(self, entry: LedgerEntry, *, is_refusal: bool = False) -> HeaderPairs:
        """Return the headers that confirm it; on a refusal, if the protocol has any there."""
        protocol = self._protocols[entry.protocol]
        if is_refusal and not protocol.receipts_refusals:
            return ()
        return protocol.receipt(entry, self._needs)

    def _of(self, quote: Quote) -> PaymentProtocol:
        """Return the protocol of a quote."""
        return self._protocols[quote.network.protocol]

    def _attached(self, headers: HeaderPairs) -> Sequence[PaymentProtocol]:
        """Return the protocols of attached payments, valid or not."""
        return [one for one in self._protocols.values() if one.is_attached(headers)]

    @asynccontextmanager
    async def _gas(self, quote: Quote) -> AsyncGenerator[GasOffer]:
        """Hold what a claim of this quote reserves for gas; drop it on any error."""
        gas = self._needs.gas if self._of(quote).spends_gas else None
        offer = GasOffer() if gas is None else await gas.offer(quote)
        try:
            yield offer
        except BaseException:
            offer.drop()
            raise

    async def _verified_claim(
        self, payment: Payment, claim: PaymentClaim, gas: GasOffer, bearer: str
    ) -> ClaimedPayment:
        """Verify a claim of ours; on failure release and count it."""
        is_new = not claim.entry.moves  # one that was taken over has been counted
        with self._rows.unless_it_holds(bearer, is_new=is_new):
            entry = await self._proven(payment, claim, gas)
            protocol = self._of(payment.quote)
            work_s = protocol.work_s(payment, self._needs)  # it may have waited
            quote = changed(payment.quote, work_s=work_s)
            return ClaimedPayment(await self._renewed(entry, quote), quote, bearer, is_new)

    async def _proven(self, payment: Payment, claim: PaymentClaim, gas: GasOffer) -> LedgerEntry:
        if payment.paid_by:
            return await self._settlement.arrived(claim.entry, payment.paid_by)
        sighting = PaymentSighting(was_unused=claim.entry.look.at is not None)
        try:
            return await self._verified(payment, claim, gas, sighting)
        except PaymentRefused as refusal:
            # This says nothing of a claim that another process has taken over: it may be paid.
            ended = self._unserved(claim.entry, sighting)
            await self._settlement.moved(ended, PaymentState.RELEASED, reason=refusal.reason)
            raise await self.refused(payment.quote, refusal) from refusal
        except BaseException as error:  # also if the caller goes away meanwhile
            reason = error.code if isinstance(error, Unavailable) else type(error).__name__
            ended = self._unserved(claim.entry, sighting)
            await self._ledger.move(ended, PaymentState.RELEASED, reason=reason)
            raise

    async def _verified(
        self, payment: Payment, claim: PaymentClaim, gas: GasOffer, sighting: PaymentSighting
    ) -> LedgerEntry:
        """Return the entry of a claim that is verified, or that somebody else's sending has paid.

        A payment that was here before is refused only after every node has been asked. Raises
        `PaymentRefused`, and `PaymentPending` if the chain does not decide.
        """
        look = claim.entry.look
        try:
            await self._verify(payment, claim, gas, sighting)
        except PaymentRefused:
            was_shown = look.at is not None or sighting.may_have_moved
            if not (sighting.was_unused and was_shown):
                raise
            if not look.has_left(EVERY_NODE):  # the watcher asks once its authorisation has ended
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
            sighting.was_unused = not isinstance(found, Rejected)  # so it can never move
            raise
        return claim.entry

    def _unserved(self, entry: LedgerEntry, sighting: PaymentSighting) -> LedgerEntry:
        """Return an entry that is about to be released, with its look."""
        look = entry.look.due(self._clock.now(), sighting.answers)
        return changed(entry, look=look if sighting.was_unused else AT_ONCE)

    async def _claimed_meanwhile(
        self, entry: LedgerEntry, payment: Payment, request: PaidRequest
    ) -> Replay:
        """Return what another claim bought: the same caller's, or a thief's.

        Raises like `hold`.
        """
        try:
            spent = PaymentSpent(entry, payment.digest, payment.token)
            replay = await self.find_bought(spent, request)
        except PaymentRefused as refusal:
            raise await self.refused(payment.quote, refusal) from refusal
        if replay is None:  # it is finished where it was claimed, when it is sent again
            raise self._settlement.pending(entry)
        return replay

    async def _verify(
        self, payment: Payment, claim: PaymentClaim, gas: GasOffer, sighting: PaymentSighting
    ) -> None:
        """Run the protocol's own checks, and require that the balance covers all in flight."""
        await gas.require_paid()
        if claim.failures >= FAILURES_MAX:
            message = "Too many settlements of this payer failed: try again in an hour."
            raise PaymentRefused("too_many_failed_settlements", message)
        protocol = self._of(payment.quote)
        await require_cover(payment, claim, protocol, self._needs, self._ledger, sighting)

    async def _renewed(self, entry: LedgerEntry, quote: Quote) -> LedgerEntry:
        """Return the entry with a lease for as long as the upstream may work.

        Raises `PaymentPending` if another process has taken it over already.
        """
        if self._clock.now() + timedelta(seconds=quote.work_s) + WORK_SLACK <= entry.lease_until:
            return entry
        lease = self._settlement.lease(quote.work_s)
        return await self._settlement.moved(entry, entry.state, lease_until=lease)

    def _is_buyer(self, spent: PaymentSpent, request: PaidRequest) -> bool:
        """Return whether the sender of the credential has paid; the chain publishes some."""
        is_public = self._protocols[spent.entry.protocol].publishes
        return not is_public or is_buyer(spent.entry, spent.token, request)

    async def _handed_out(self, spent: PaymentSpent, request: PaidRequest) -> Replay | None:
        """Return what was bought, for its buyer; None while it is not there yet."""
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
