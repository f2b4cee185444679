"""What a reorganisation of 1 to 10 blocks takes back is sent again, or its revenue taken back."""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from sqlalchemy import func, select

from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_rollups import SqlRollupProof
from assay.common.errors import Unavailable
from assay.db.engine import Database
from assay.db.schema.everything import payments
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.networks import FINAL_ON_BASE as FINAL
from assay.payments.store import SqlLedgerStore
from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_payment_attacks import fresh_account, send_away
from tests.payments.ledger.room import CENT, Room, room
from tests.support.cases import first_then_slow
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.reorganised_chain import Anvil, anvil
from tests.support.shop import SELLER

pytestmark = pytest.mark.slow


@pytest.fixture
def base() -> Iterator[Anvil]:
    with anvil() as chain:
        yield chain


@pytest.fixture
def proxy(base: Anvil) -> Iterator[NodeProxy]:
    with node_proxy(base.url) as made:
        yield made


@pytest.fixture
def payer(base: Anvil) -> LocalAccount:
    account = fresh_account()
    base.mint(account.address, 10 * CENT)
    base.mine(12)  # so deep that no reorganisation here takes it back
    return account


@pytest.fixture
async def shop(database: Database, proxy: NodeProxy) -> AsyncGenerator[Room]:
    made = room(database, [proxy.url])
    yield made
    await made.aclose()


async def revenue(database: Database) -> tuple[int, int]:
    """What analytics count, and how many of its rows are not what the ledger says."""
    stats = await SqlAnalyticsStore(database).stats("op", 0)
    differences = await SqlRollupProof(database).differences()
    return stats.total.revenue, sum(differences.values())


@pytest.mark.parametrize("depth", first_then_slow(range(1, 11)))
async def test_a_transfer_that_is_taken_back_is_made_again(
    shop: Room, base: Anvil, payer: LocalAccount, database: Database, depth: int
) -> None:
    before = base.balance(SELLER.address)
    entry = await shop.settled(payer)
    if depth % 2:  # after it was delivered, and before
        moved = await shop.ledger.move(entry, PaymentState.DELIVERED)
        assert moved is not None
        entry = moved
    base.mine(depth - 1)
    base.reorganise(depth)
    assert base.balance(SELLER.address) == before
    await shop.look()
    assert base.balance(SELLER.address) == before + CENT
    found = await shop.read(entry)
    assert found.state is entry.state
    assert base.wallet.request("eth_getTransactionReceipt", found.attempt.transaction)
    assert await revenue(database) == (CENT, 0)
    assert await shop.look(600) == []


async def test_one_whose_time_has_passed_meanwhile_is_reversed_and_its_revenue_taken_back(
    shop: Room, base: Anvil, payer: LocalAccount, database: Database
) -> None:
    entry = await shop.settled(payer, valid_s=30)
    base.reorganise(1)
    assert await revenue(database) == (CENT, 0)
    base.pass_time(300)
    (moved,) = await shop.look(300)
    assert (moved.state, moved.reason) == (PaymentState.REVERSED, "expired_unused")
    assert await revenue(database) == (0, 0)
    assert base.balance(payer.address) == 10 * CENT
    assert await shop.look(10_000) == []
    assert (await shop.read(entry)).state is PaymentState.REVERSED


async def test_one_payment_that_cannot_be_written_holds_up_no_other(
    shop: Room, base: Anvil, payer: LocalAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up, other = await shop.settled(payer, valid_s=30), await shop.settled(payer, valid_s=30)
    base.reorganise(2)
    base.pass_time(300)
    move = SqlLedgerStore.move

    async def refused(
        self: SqlLedgerStore, entry: LedgerEntry, *args: Any, **kw: Any
    ) -> LedgerEntry | None:
        if entry.id == held_up.id:
            raise Unavailable("The database is away.")
        return await move(self, entry, *args, **kw)

    with monkeypatch.context() as patched:
        patched.setattr(SqlLedgerStore, "move", refused)
        assert [one.id for one in await shop.look(300)] == [other.id]
    assert [one.id for one in await shop.look(300)] == [held_up.id]  # its lease has ended


async def test_one_whose_payer_has_spent_its_money_meanwhile_ends_with_its_time(
    shop: Room, base: Anvil, payer: LocalAccount, database: Database
) -> None:
    entry = await shop.settled(payer, valid_s=3600)
    base.reorganise(1)
    send_away(base.wallet, payer)
    assert [one.state for one in await shop.look()] in ([], [PaymentState.SETTLED])
    assert (await shop.read(entry)).state is PaymentState.SETTLED
    base.pass_time(4000)
    (moved,) = await shop.look(4000)
    assert moved.state is PaymentState.REVERSED
    assert await revenue(database) == (0, 0)


async def test_a_transaction_forgotten_while_it_is_waited_for_is_sent_again(
    shop: Room, base: Anvil, payer: LocalAccount, proxy: NodeProxy
) -> None:
    """Reorganised between being mined and being seen: nobody is told that it failed."""
    reorganised = list[str]()

    def before(method: str) -> None:
        if method == "eth_getTransactionReceipt" and not reorganised:
            reorganised.append(method)
            base.reorganise(1)

    proxy.before = before
    entry = await shop.claimed(payer)
    start = base.balance(SELLER.address)
    assert await shop.tried(entry) == PaymentState.PENDING
    for _ in range(3):  # what was sent again is looked at with the next
        await shop.reconcile()
    found = await shop.read(entry)
    assert found.state is PaymentState.SETTLED
    assert base.balance(SELLER.address) == start + CENT


async def test_looks_are_few_and_end_when_it_is_final(
    shop: Room, base: Anvil, payer: LocalAccount, proxy: NodeProxy
) -> None:
    await shop.settled(payer)
    asked = list[str]()
    proxy.before = asked.append
    for seconds in (11, 180, 1500, 1500, 1500):
        base.mine(400)
        assert await shop.look(seconds) == []
    receipts = [method for method in asked if method == "eth_getTransactionReceipt"]
    assert len(receipts) == 2  # at eleven seconds, and at three minutes: it is 800 blocks deep then


async def watched(database: Database) -> int:
    """How many payments are not final."""
    statement = select(func.count()).where(payments.c.watch_us.is_not(None))
    async with database.read() as connection:
        return (await connection.execute(statement)).scalar_one()


def dates_back(asked: Any, base: Anvil) -> Any:
    """The chain's answers, with every receipt in the first block."""

    def one(request: Any) -> Any:
        result = base.wallet.request(request["method"], *request["params"])
        if request["method"] == "eth_getTransactionReceipt" and result:
            result = {**result, "blockNumber": "0x1"}
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    return [one(each) for each in asked] if isinstance(asked, list) else one(asked)


@pytest.mark.parametrize("liar", first_then_slow([0, 1]))
async def test_a_payment_is_final_by_the_word_of_both_nodes(
    base: Anvil, payer: LocalAccount, database: Database, liar: int
) -> None:
    """It may be given back and paid out then: one node that dates it back does not decide that."""
    with node_proxy(base.url) as first, node_proxy(base.url) as second:
        shop = room(database, [first.url, second.url])
        proxies = [first, second]
        proxies[liar].instead = lambda asked: dates_back(asked, base)
        base.mine(FINAL)  # the first block is that far away from now on
        await shop.settled(payer)
        for seconds in (6, 180, 1500, 1500):
            await shop.look(seconds)
        assert await watched(database) == 1
        with proxies[1 - liar].failing("eth_getTransactionReceipt"):
            await shop.look(1500)
        assert await watched(database) == 1
        proxies[liar].instead = lambda _asked: None
        base.mine(FINAL)
        await shop.look(1500)
        assert await watched(database) == 0
        await shop.aclose()


async def test_many_are_looked_at_in_one_exchange(
    shop: Room, payer: LocalAccount, proxy: NodeProxy
) -> None:
    for _ in range(5):
        await shop.settled(payer)
    exchanges = list[Any]()

    def instead(asked: Any) -> None:
        exchanges.append(asked)

    proxy.instead = instead
    assert await shop.look(11) == []
    assert len([asked for asked in exchanges if isinstance(asked, list)]) == 1
    assert len(exchanges) <= 2  # its height may be asked for once more


async def test_confirmations_are_waited_for_and_a_shallow_payment_is_no_payment(
    database: Database, base: Anvil, proxy: NodeProxy, payer: LocalAccount
) -> None:
    shop = room(database, [proxy.url], confirmations=3, settlement_s=1.0)
    try:
        entry = await shop.claimed(payer)
        assert await shop.tried(entry) == PaymentState.PENDING
        assert (await shop.read(entry)).reason == "1 of 3 confirmations"
        assert await revenue(database) == (0, 0)
        base.reorganise(1)
        await shop.reconcile()  # it is sent again
        assert (await shop.read(entry)).state is PaymentState.PENDING
        base.mine(2)
        await shop.reconcile()
        assert (await shop.read(entry)).state is PaymentState.SETTLED
        assert await revenue(database) == (CENT, 0)
    finally:
        await shop.aclose()
