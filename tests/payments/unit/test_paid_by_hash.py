"""A payment that its payer has sent already counts when it is as deep as its network wants it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from assay.common.keyring import MacKeys
from assay.payments.finality import View, Witness
from assay.payments.model import ClaimedPayment, LedgerEntry, Payment, PaymentState, WatchedPayment
from assay.payments.mpp.protocol import PROTOCOL
from assay.payments.networks import ROWS
from assay.payments.outcomes import PaymentOutcome, Settled
from assay.payments.ports import PaidRequest, ProtocolDependencies
from assay.payments.service import PaymentService
from assay.payments.settlement import PaymentPending, Settlement
from tests.simulation.payers import quote_of
from tests.simulation.process import EPOCH
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger import MemoryLedgerStore

PAID_BY = "0x" + "77" * 32
TEMPO = next(row for row in ROWS if row.protocol == "mpp")
DIGEST = "d" * 64


@dataclass
class Node:
    """Shows a receipt of the transaction, and so many blocks as `height` says."""

    height: int
    asked: int = 0

    async def depths(self, _network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        self.asked += 1
        assert [one.transaction for one in watched] == [PAID_BY]
        return [self.height]

    def work_s(self, payment: Payment) -> float:
        return payment.quote.work_s

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool
    ) -> Sequence[PaymentOutcome]:
        assert not every_node
        return [Settled(PAID_BY) for _ in entries]


@dataclass
class Service:
    """What holds payments, over one node."""

    node: Node
    confirmations: int
    clock: FrozenClock = field(default_factory=lambda: FrozenClock(EPOCH))

    def __post_init__(self) -> None:
        self.ledger = MemoryLedgerStore(self.clock)
        self.network = replace(TEMPO, confirmations=self.confirmations)
        node: Any = self.node
        needs = ProtocolDependencies(node, node, node, self.clock)
        networks, protocols = {self.network.id: self.network}, {"mpp": PROTOCOL}
        witness = Witness(networks, protocols, View(needs, node), {}, self.clock, 0.0)
        lease = timedelta(seconds=5)
        self.settlement = Settlement(protocols, needs, self.ledger, self.clock, lease, witness)
        self.payment_service = PaymentService(
            self.settlement, MacKeys(b"assay.idempotency|", ("0" * 32,))
        )

    async def hold(self) -> Any:
        quote = replace(quote_of("p", Random(1)), network=self.network)
        payment = Payment(
            quote=quote,
            payer="0x" + "c0" * 20,
            nonce="challenge",
            digest=DIGEST,
            expires_at=self.clock.now() + timedelta(minutes=10),
            credential={"authorization": "Payment x", "payload": {"type": "hash"}},
            paid_by=PAID_BY,
        )
        return await self.payment_service.hold(payment, PaidRequest("GET", quote.url, [], b""))


async def test_a_receipt_is_enough_where_one_confirmation_is() -> None:
    service = Service(Node(height=0), confirmations=1)
    held = await service.hold()
    assert isinstance(held, ClaimedPayment)
    assert (held.entry.state, held.entry.attempt.transaction) == (PaymentState.SETTLED, PAID_BY)
    assert service.node.asked == 0


async def test_where_more_are_wanted_nothing_is_given_away_before_they_are_there() -> None:
    """One node's made-up receipt gave the answer away."""
    service = Service(Node(height=1), confirmations=3)
    with pytest.raises(PaymentPending):
        await service.hold()
    (row,) = service.ledger.rows.values()
    assert (row.state, row.reason) == (PaymentState.PENDING, "1 of 3 confirmations")
    service.clock.move(60)
    assert await service.settlement.reconcile(is_due_only=False) == []
    service.node.height = 3
    service.clock.move(60)
    (settled,) = await service.settlement.reconcile(is_due_only=False)
    assert (settled.state, settled.attempt.transaction) == (PaymentState.SETTLED, PAID_BY)


async def test_one_that_is_deep_enough_is_served_at_once() -> None:
    service = Service(Node(height=3), confirmations=3)
    held = await service.hold()
    assert held.entry.state is PaymentState.SETTLED
    assert held.entry.lease_until > service.clock.now() + timedelta(seconds=held.quote.work_s)
