"""Processes that settle with one key promise together what it holds, on every database."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from assay.accounts.model import Operator, Plan, Role
from assay.accounts.store_operators import SqlOperatorStore
from assay.common.keyring import MacKeys
from assay.db.engine import Database
from assay.payments.gas import GAS_MAX, GasBudget, GasRules, fee_per_gas
from assay.payments.model import (
    ClaimedPayment,
    Payment,
    PaymentSighting,
    PaymentState,
    PaymentsUnavailable,
)
from assay.payments.outcomes import SettlementAttempt
from assay.payments.ports import ProtocolDependencies
from assay.payments.service import PaymentService
from assay.payments.settlement import Settlement
from assay.payments.store import SqlLedgerStore
from assay.payments.store_gas import SqlGasStore
from assay.payments.x402.protocol import PROTOCOL
from assay.payments.x402.transaction_sender import KNOWN_S, GasPrices
from tests.simulation.chain import NETWORK, Signers
from tests.simulation.payers import purchase_of
from tests.simulation.process import CHAIN, EPOCH
from tests.support.databases import migrated_postgresql, migrated_sqlite
from tests.support.fakes.calls import counted_ledger
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.witness import lone_witness

KEY = "0x" + "0e" * 20
RULES = GasRules(10_000, 10_000, {}, Decimal(0), {NETWORK.id: Decimal(1)})
PRICE = 5_000_000
MOST = fee_per_gas(PRICE, 10**18).most * GAS_MAX
"""What one settlement may cost."""


@dataclass
class Node:
    """One that both processes ask: what the key holds."""

    balance: int

    async def request_all(self, *_: object) -> list[str]:
        return [hex(PRICE), hex(self.balance)]


class Verified:
    """A facilitator that finds every payment good."""

    async def verify(self, payment: Payment, _: PaymentSighting) -> int:
        return payment.quote.amount


@dataclass
class Seller:
    """Processes over one database, and what the key of them all holds."""

    node: Node
    clock: FrozenClock
    services: list[PaymentService]
    ledger: SqlLedgerStore
    operator_id: str
    number: int = 0

    async def hold(self, payment_service: PaymentService) -> ClaimedPayment | PaymentsUnavailable:
        self.number += 1
        name, payer = f"p{self.number}", f"0x{self.number:040x}"
        made = purchase_of(name, payer, self.clock.monotonic_s(), Random(self.number))
        made.quote = replace(made.quote, operator_id=self.operator_id)
        request = made.request(made.caller, made.token)
        try:
            held = await payment_service.hold(
                await payment_service.read(made.quote, request), request
            )
        except PaymentsUnavailable as refusal:
            return refusal
        assert isinstance(held, ClaimedPayment)
        return held


@pytest.fixture(params=["sqlite", "postgresql"])
async def seller(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Seller]:
    is_sqlite = request.param == "sqlite"
    url = migrated_sqlite(tmp_path / "assay.db") if is_sqlite else migrated_postgresql()
    databases = [await Database.open(url) for _ in range(2)]
    clock, node = FrozenClock(EPOCH), Node(0)
    now = clock.now()
    owner = Operator("o" * 36, "o@x.example", "n", Role.ADMIN, Plan.FREE, Decimal(0), now, now)
    await SqlOperatorStore(databases[0]).add(owner, "hash", None, None)
    ledgers = [counted_ledger(database, clock) for database in databases]
    services = [
        _payments(node, ledger, SqlGasStore(database), clock)
        for ledger, database in zip(ledgers, databases, strict=True)
    ]
    yield Seller(node, clock, services, ledgers[0], owner.id)
    for database in databases:
        await database.close()


def _payments(
    node: Any, ledger: SqlLedgerStore, store: SqlGasStore, clock: FrozenClock
) -> PaymentService:
    prices = GasPrices(node, {NETWORK.id: CHAIN}, KEY, RULES, clock)
    facilitator: Any = Verified()
    budget = GasBudget(RULES, prices, store, clock)
    needs = ProtocolDependencies(Signers(), facilitator, facilitator, clock, 86_400.0, budget)
    witness = lone_witness({"x402": PROTOCOL}, needs, clock)
    lease = timedelta(seconds=5)
    settlement = Settlement({"x402": PROTOCOL}, needs, ledger, clock, lease, witness)
    return PaymentService(settlement, MacKeys(b"assay.idempotency|", ("0" * 32,)))


async def test_two_processes_promise_what_their_key_holds_once(seller: Seller) -> None:
    """Each counted its own claims since it had read the balance: they promised it twice."""
    seller.node.balance = 6 * MOST
    found = [await seller.hold(seller.services[number % 2]) for number in range(14)]
    assert sum(isinstance(one, ClaimedPayment) for one in found) == 6
    refusals = [one for one in found if isinstance(one, PaymentsUnavailable)]
    assert all(one.retry_after_s for one in refusals)
    states = [row.state for row in await seller.ledger.list(None, (), 100)]
    assert (states.count(PaymentState.CLAIMED), states.count(PaymentState.RELEASED)) == (
        6,
        len(states) - 6,
    )


async def test_claims_at_once_of_two_processes_promise_no_more_than_the_key_holds(
    seller: Seller,
) -> None:
    """Two that see each other may both be refused: never may both be served."""
    seller.node.balance = 5 * MOST
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(seller.hold(seller.services[n % 2])) for n in range(20)]
    assert sum(isinstance(task.result(), ClaimedPayment) for task in tasks) <= 5


async def test_what_was_settled_since_the_balance_was_read_is_no_more_in_it(
    seller: Seller,
) -> None:
    seller.node.balance = 3 * MOST
    one, other = seller.services
    assert isinstance(await seller.hold(other), ClaimedPayment)
    for _ in range(2):
        held = await seller.hold(one)
        assert isinstance(held, ClaimedPayment)
        sent = SettlementAttempt("0x" + "ee" * 32, "0xraw")
        moved = await seller.ledger.move(held.entry, PaymentState.SETTLING, attempt=sent)
        assert moved is not None
        spent = replace(sent, spent=1)
        assert await seller.ledger.move(moved, PaymentState.SETTLED, attempt=spent) is not None
    assert isinstance(await seller.hold(other), PaymentsUnavailable)
    seller.clock.move(4 * KNOWN_S)  # and read again, without what was spent
    seller.node.balance = 2 * MOST
    assert isinstance(await seller.hold(other), ClaimedPayment)
