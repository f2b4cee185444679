"""Taking payments: claim, serve, settle, and whatever a retry makes of it.

    claimed -> settling(tx) -> settled -> delivered        (released, failed, pending)

Every step is in the ledger before it is taken. A caller with the same
credential and request gets what it bought, whatever has become of its wrapper since; nobody pays
for what was not served.
Source: conventions.md#wrapper; payment-safety.md#attacks-and-faults, #order-of-a-payment; ADR 0020.

A payer's balance has to cover a payment and everything of his that is in flight. The balance and
the ledger are two clocks: what was sent may have left the balance while the ledger still counts it,
and then it is counted twice. Source: payment-safety.md#over-commitment.

Rows of payments that move nothing are counted for the caller's network, and refused beyond its
quota. Anybody can sign payments without having the money, and each is a row of the ledger before
its balance is known. Payers who have paid before are counted by themselves once strangers have used
up the quota of their address.
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
    """Who bears the row of a payment, and counting it."""

    def __init__(self, costs: CostLedger, payers: SqlLedgerStore | None = None) -> None:
        self._costs = costs
        self._payers = payers

    async def bearer(self, payment: Payment, caller: str) -> str:
        """Who bears the row of a claim that is about to be made.

        Raises `QuotaExceeded` where nobody can; nothing is stored then.
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
        """Count the row if what is done meanwhile fails, whatever becomes of it later."""
        try:
            yield
        except BaseException:
            self.count(bearer, stored, is_new=is_new)
            raise


LANDING_S: Final = 10.0
"""How long what was sent is waited for: several blocks, and a look at their receipts."""
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
    """The protocol's own checks of a payment, and that nothing is promised twice.

    Raises `PaymentRefused` where the count is exact, at once; `PaymentsUnavailable` when something
    may still have been counted twice after `LANDING_S`; and what `PaymentProtocol.verify` raises.
    """
    committed = claim.committed
    until_s = needs.clock.monotonic_s() + LANDING_S
    while True:
        balances = await protocol.verify(payment, needs, sighting)
        if balances is None or _cover(balances, claim.entry, committed):
            return
        committed = await _changed(committed, claim.entry, ledger, needs.clock, until_s)


async def _changed(
    seen: InFlightAmount, entry: LedgerEntry, ledger: SqlLedgerStore, clock: Clock, until_s: float
) -> InFlightAmount:
    """What is in flight now that it is something else: while it is the same, it is still short."""
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


def _cover(balances: Balances, entry: LedgerEntry, committed: InFlightAmount) -> bool:
    """Whether there is enough for the entry and its fees, and for all that is in flight."""
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
    """A payment that is shown again: the ledger's entry of it, and what its sender knows."""

    entry: LedgerEntry
    digest: str
    token: str


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
        self._protocols, self._needs = settlement.protocols, settlement.needs
        self._ledger, self._clock = settlement.ledger, settlement.clock
        self._rows = rows or UnpaidRows(CostLedger(settlement.clock))

    def is_attached(self, quote: Quote, headers: HeaderPairs) -> bool:
        """Whether a payment is attached, good or bad."""
        return self._of(quote).is_attached(headers)

    def is_any_attached(self, headers: HeaderPairs) -> bool:
        """Whether a payment of any protocol is attached, good or bad."""
        return bool(self._attached(headers))

    async def presented(self, headers: HeaderPairs) -> Sequence[PresentedPayment]:
        """The attached payments that can be taken apart, believed in nothing: one a protocol."""
        protocols = self._attached(headers)
        found = [await one.present(headers, self._needs) for one in protocols]
        return [one for one in found if one is not None]

    def is_payable(self, quote: Quote, presented: PresentedPayment) -> bool:
        """Whether a payment says that it pays the quote, and is good for long enough."""
        needed_s = self._of(quote).needed_s(quote, self._needs)
        left_s = presented.expires_s - self._clock.now().timestamp()
        return presented.pays(quote) and left_s >= needed_s

    def quote_life_s(self, quote: Quote) -> float:
        """How long after it was asked for a quote may be paid, in seconds."""
        return self._of(quote).quote_life_s(quote, self._needs)

    async def refused(self, quote: Quote, refusal: PaymentRefused) -> ServiceError:
        """The 402 of a payment that does not pay; to be raised."""
        demand = await self._of(quote).demand(
            quote, self._needs, refusal.reason, refusal.transaction
        )
        return PaymentRequired(refusal.message, demand)

    def binds_body(self, quote: Quote) -> bool:
        """Whether the 402 is bound to the body of the call."""
        return self._of(quote).binds_body

    async def demand(self, quote: Quote) -> PaymentRequired:
        """The 402 of a call without payment; to be raised."""
        needs = self._needs
        demand = await self._of(quote).demand(quote, needs, "payment_required")
        return PaymentRequired("This call has to be paid for.", demand)

    async def read(self, quote: Quote, request: PaidRequest) -> Payment:
        """The attached payment. Raises `PaymentRequired` and `PaymentsUnavailable`."""
        try:
            return await self._of(quote).read(request, quote, self._needs)
        except PaymentRefused as refusal:
            network = quote.network.id
            spent = refusal.digest and await self.find_spent(
                network, refusal.digest, is_refused=True
            )
            if spent:  # claimed meanwhile, in its time
                raise self._settlement.pending(spent.entry) from refusal
            raise await self.refused(quote, refusal) from refusal

    async def find_spent(
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

    async def find_bought(self, spent: PaymentSpent, request: PaidRequest) -> Replay | None:
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

    async def hold(
        self, payment: Payment, request: PaidRequest, agent_id: str = ""
    ) -> ClaimedPayment | Replay:
        """Claim and verify a payment; it is counted for that agent. Nothing has moved yet.

        Raises `PaymentRequired`, `PaymentPending` while somebody else works on it, and
        `PaymentsUnavailable`; the claim is released then. Before it, `QuotaExceeded`.
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
        """Take the money; `stored`, what it bought, is kept first.

        Raises `PaymentRequired` when it was refused (what was bought is withheld) and
        `PaymentPending` when nobody can say yet.
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
        """The answer has been handed over."""
        if entry.state is PaymentState.SETTLED:
            await self._ledger.move(entry, PaymentState.DELIVERED)

    async def release(self, claimed: ClaimedPayment, reason: str) -> None:
        """Nobody was served: the payment may be used again.

        One that has settled already stays settled, and its request may be sent again.
        """
        state = claimed.entry.state if claimed.entry.has_paid else PaymentState.RELEASED
        if state is PaymentState.RELEASED:
            self._rows.count(claimed.bearer, is_new=claimed.is_new)
        now = self._clock.now()
        entry = changed(claimed.entry, look=claimed.entry.look.due(now))
        await self._ledger.move(entry, state, reason=reason, lease_until=now)

    def is_good(self, claimed: ClaimedPayment, work_s: float) -> bool:
        """Whether it could be sent again now, to be served within `work_s`."""
        protocol, quote = self._of(claimed.quote), changed(claimed.quote, work_s=work_s)
        return protocol.is_good(claimed.entry, quote, self._needs)

    def receipt(self, entry: LedgerEntry, *, is_refusal: bool = False) -> HeaderPairs:
        """The headers that say it was paid; on a refusal, where the protocol has any there."""
        protocol = self._protocols[entry.protocol]
        if is_refusal and not protocol.receipts_refusals:
            return ()
        return protocol.receipt(entry, self._needs)

    def _of(self, quote: Quote) -> PaymentProtocol:
        """The protocol of a quote."""
        return self._protocols[quote.network.protocol]

    def _attached(self, headers: HeaderPairs) -> Sequence[PaymentProtocol]:
        """The protocols of which a payment is attached, good or bad."""
        return [one for one in self._protocols.values() if one.is_attached(headers)]

    @asynccontextmanager
    async def _gas(self, quote: Quote) -> AsyncGenerator[GasOffer]:
        """What a claim of this quote reserves for gas; dropped when anything is raised."""
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
        """A claim that is ours once it is verified; released, and counted, when it is not."""
        is_new = not claim.entry.moves  # one taken over has been counted
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
            # Of a claim that somebody has taken over meanwhile this says nothing: he may be paid.
            ended = self._unserved(claim.entry, sighting)
            await self._settlement.moved(ended, PaymentState.RELEASED, reason=refusal.reason)
            raise await self.refused(payment.quote, refusal) from refusal
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
            replay = await self.find_bought(spent, request)
        except PaymentRefused as refusal:
            raise await self.refused(payment.quote, refusal) from refusal
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
        protocol = self._of(payment.quote)
        await require_cover(payment, claim, protocol, self._needs, self._ledger, sighting)

    async def _renewed(self, entry: LedgerEntry, quote: Quote) -> LedgerEntry:
        """The entry, for as long as the upstream may work: nobody takes it over meanwhile.

        Raises `PaymentPending` when somebody has already.
        """
        if self._clock.now() + timedelta(seconds=quote.work_s) + WORK_SLACK <= entry.lease_until:
            return entry
        lease = self._settlement.lease(quote.work_s)
        return await self._settlement.moved(entry, entry.state, lease_until=lease)

    def _is_buyer(self, spent: PaymentSpent, request: PaidRequest) -> bool:
        """Whether who shows the credential is who paid; the chain shows some to everybody."""
        is_public = self._protocols[spent.entry.protocol].publishes
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
