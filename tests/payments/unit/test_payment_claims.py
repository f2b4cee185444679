"""A claim that somebody has taken over says nothing of the payment any more."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from typing_extensions import override

from assay.common.costs import Bearer, Cost, CostLedger
from assay.common.keyring import MacKeys
from assay.payments.model import (
    CUT_SHORT,
    ENDED,
    ClaimedPayment,
    LedgerEntry,
    Payment,
    PaymentRefused,
    PaymentRequired,
    PaymentSighting,
    PaymentState,
    Replay,
    StoredResponse,
)
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided
from assay.payments.ports import ProtocolDependencies
from assay.payments.service import PaymentService, UnpaidRows
from assay.payments.settlement import EVERY_NODE, PaymentPending, Settlement
from assay.payments.x402.protocol import PROTOCOL
from tests.simulation.chain import Signers
from tests.simulation.payers import Purchase, purchase_of
from tests.simulation.process import EPOCH
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger import MemoryLedgerStore
from tests.support.fakes.witness import lone_witness

PAID_BY = "0x" + "77" * 32
UNUSED = Undecided("not used yet", is_unused=True, answers=1)


class Overtaken:
    """A facilitator that is slow: meanwhile another copy of the call has taken over, and paid."""

    def __init__(self, ledger: MemoryLedgerStore, clock: FrozenClock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def verify(self, *_: object) -> int:
        ((key, row),) = self._ledger.rows.items()
        self._clock.move(60)
        later = self._clock.now()
        fresh = replace(row, created_at=later, lease_until=later + timedelta(seconds=30))
        assert (await self._ledger.claim(fresh, later)).is_ours
        assert self._ledger.rows[key].moves == row.moves + 1
        raise PaymentRefused("invalid_exact_evm_nonce_already_used", "It was used already.")


class GoneOnceItIsKept(MemoryLedgerStore):
    """A ledger whose caller goes away while what was bought is written down."""

    @override
    async def move(
        self, entry: LedgerEntry, state: PaymentState, **more: Any
    ) -> LedgerEntry | None:
        moved = await super().move(entry, state, **more)
        if more.get("stored") is not None:
            raise asyncio.CancelledError
        return moved


class Slow:
    """A facilitator that says yes, after a minute."""

    def __init__(self, clock: FrozenClock) -> None:
        self._clock = clock

    async def verify(self, payment: Payment, _: PaymentSighting) -> int:
        self._clock.move(60)
        return payment.quote.amount


class Refusing:
    """A facilitator that finds every payment good, and settles none."""

    def __init__(self, said: PaymentOutcome = UNUSED) -> None:
        self._said = said

    async def verify(self, payment: Payment, _: PaymentSighting) -> int:
        return payment.quote.amount

    async def settle(self, *_: object) -> PaymentOutcome:
        return Rejected("insufficient_funds")

    async def outcomes(self, *_: object, **__: object) -> Sequence[PaymentOutcome]:
        return [self._said]


class Blind:
    """A facilitator whose first node shows nothing of a payment that has left the wallet."""

    def __init__(self, *said: PaymentOutcome) -> None:
        self._said = list(said)
        self.asked = 0

    async def verify(self, _: Payment, sighting: PaymentSighting) -> int:
        sighting.read(is_used=False)
        raise PaymentRefused("insufficient_funds", "The payer does not have the amount.")

    async def outcomes(self, _: object, *, every_node: bool = False) -> Sequence[PaymentOutcome]:
        if not every_node:
            return [UNUSED]
        self.asked += 1
        return [self._said.pop(0)]


def payment_service_of(
    facilitator: Any,
    ledger: MemoryLedgerStore,
    clock: FrozenClock,
    rows: UnpaidRows | None = None,
    *,
    nodes: int = 1,
) -> tuple[PaymentService, Purchase]:
    """A payment service on a network with so many nodes, and what is bought."""
    needs = ProtocolDependencies(Signers(), facilitator, facilitator, clock)
    lease = timedelta(seconds=5)
    purchase = purchase_of("p", "0x" + "c0" * 20, 100.0, Random(1))
    several = [purchase.quote.network.id] if nodes > 1 else []
    witness = lone_witness({"x402": PROTOCOL}, needs, clock, several)
    settlement = Settlement({"x402": PROTOCOL}, needs, ledger, clock, lease, witness)
    return PaymentService(settlement, MacKeys(b"assay.idempotency|", ("0" * 32,)), rows), purchase


async def hold(payment_service: PaymentService, purchase: Purchase) -> ClaimedPayment | Replay:
    request = purchase.request(purchase.caller, purchase.token)
    return await payment_service.hold(await payment_service.read(purchase.quote, request), request)


async def held(
    facilitator: Any, ledger: MemoryLedgerStore, clock: FrozenClock, *, nodes: int = 1
) -> ClaimedPayment | Replay:
    """Hold a fresh payment, on a network with so many nodes."""
    return await hold(*payment_service_of(facilitator, ledger, clock, nodes=nodes))


async def test_who_has_lost_his_claim_is_told_to_wait_and_not_to_pay() -> None:
    clock = FrozenClock(EPOCH)
    ledger = MemoryLedgerStore(clock)
    with pytest.raises(PaymentPending):
        await held(Overtaken(ledger, clock), ledger, clock)


async def test_a_claim_that_was_verified_slowly_is_renewed_before_the_upstream_is_asked() -> None:
    """Somebody else could take it over while the upstream works, and it would work twice."""
    clock = FrozenClock(EPOCH)
    ledger = MemoryLedgerStore(clock)
    claimed = await held(Slow(clock), ledger, clock)
    assert isinstance(claimed, ClaimedPayment)
    assert [row.state for row in ledger.rows.values()] == [PaymentState.CLAIMED]
    assert claimed.entry.lease_until > clock.now() + timedelta(seconds=claimed.quote.work_s)
    assert await ledger.move(claimed.entry, PaymentState.SETTLING) is not None


async def test_an_answer_kept_for_a_payment_that_came_again_and_failed_is_counted() -> None:
    """Its row was counted when it was released: the answer was not there then."""
    clock, costs = FrozenClock(EPOCH), CostLedger(FrozenClock(EPOCH))
    payment_service, purchase = payment_service_of(
        Refusing(), MemoryLedgerStore(clock), clock, UnpaidRows(costs)
    )
    first = await hold(payment_service, purchase)
    assert isinstance(first, ClaimedPayment)
    await payment_service.release(first, "the upstream has failed")
    again = await hold(payment_service, purchase)
    assert isinstance(again, ClaimedPayment)
    with pytest.raises(PaymentRequired):
        await payment_service.settle(again, StoredResponse(200, (), b"x" * 600))
    address = Bearer(f"address {purchase.caller}")
    assert (costs.used(Cost.ROWS, address), costs.used(Cost.DISK_BYTES, address)) == (2, 600)


async def test_an_answer_kept_for_a_caller_that_goes_away_meanwhile_is_counted() -> None:
    clock, costs = FrozenClock(EPOCH), CostLedger(FrozenClock(EPOCH))
    payment_service, purchase = payment_service_of(
        Refusing(), GoneOnceItIsKept(clock), clock, UnpaidRows(costs)
    )
    claimed = await hold(payment_service, purchase)
    assert isinstance(claimed, ClaimedPayment)
    with pytest.raises(asyncio.CancelledError):
        await payment_service.settle(claimed, StoredResponse(200, (), b"x" * 600))
    address = Bearer(f"address {purchase.caller}")
    assert (costs.used(Cost.ROWS, address), costs.used(Cost.DISK_BYTES, address)) == (2, 600)


@pytest.mark.parametrize("said", [Rejected("payment-expired"), Undecided("no node", answers=1)])
async def test_a_call_that_its_payment_cut_short_counts_though_its_payment_is_shown_again(
    said: PaymentOutcome,
) -> None:
    """Whoever showed it once it had ended was not counted, and could cut calls short for ever."""
    clock = FrozenClock(EPOCH)
    ledger = MemoryLedgerStore(clock)
    payment_service, purchase = payment_service_of(Refusing(said), ledger, clock)
    claimed = await hold(payment_service, purchase)
    assert isinstance(claimed, ClaimedPayment)
    await payment_service.release(claimed, CUT_SHORT)
    clock.move(60)
    entry = claimed.entry
    await payment_service.find_spent(entry.network, entry.digest)
    other = replace(entry, id="other", nonce="0xother", digest="other", moves=0)
    assert (await ledger.claim(other, EPOCH)).failures == 1


async def refused(
    facilitator: Blind, ledger: MemoryLedgerStore, clock: FrozenClock, *, nodes: int = 1
) -> str:
    """What its buyer is told who comes with a payment."""
    try:
        claimed = await held(facilitator, ledger, clock, nodes=nodes)
    except (PaymentRequired, PaymentPending) as error:
        return error.code
    assert isinstance(claimed, ClaimedPayment)
    return claimed.entry.state


async def test_a_first_refusal_asks_nothing_and_the_second_every_node() -> None:
    clock = FrozenClock(EPOCH)
    ledger, node = MemoryLedgerStore(clock), Blind(Settled(PAID_BY))
    assert await refused(node, ledger, clock) == "payment_required"
    assert node.asked == 0  # nobody had been shown it before: made-up payments cost no more
    assert await refused(node, ledger, clock) == PaymentState.SETTLED
    (row,) = ledger.rows.values()
    assert (row.attempt.transaction, node.asked) == (PAID_BY, 1)


@pytest.mark.parametrize(("nodes", "then"), [(1, "payment_required"), (2, "settlement_pending")])
async def test_refusals_that_ask_every_node_are_few_and_then_it_waits_if_another_node_may_know_more(
    nodes: int, then: str
) -> None:
    clock = FrozenClock(EPOCH)
    ledger, node = MemoryLedgerStore(clock), Blind(UNUSED)
    assert await refused(node, ledger, clock, nodes=nodes) == "payment_required"
    assert await refused(node, ledger, clock, nodes=nodes) == "payment_required"
    for _ in range(20):
        clock.move(1)
        assert await refused(node, ledger, clock, nodes=nodes) == then
    assert node.asked == 1
    (row,) = ledger.rows.values()
    assert (row.state, row.look.questions) == (PaymentState.RELEASED, EVERY_NODE)
    assert looks_at(ledger) == [row.expires_at + ENDED]


async def test_while_a_node_cannot_say_nobody_is_refused() -> None:
    clock = FrozenClock(EPOCH)
    ledger, node = MemoryLedgerStore(clock), Blind(Undecided("one node alone says so", answers=1))
    assert await refused(node, ledger, clock) == "payment_required"
    assert await refused(node, ledger, clock) == "settlement_pending"


def looks_at(ledger: MemoryLedgerStore) -> list[datetime]:
    """When the watcher looks."""
    return list(ledger.looks.values())
