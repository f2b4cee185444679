"""What served nobody, and was submitted by somebody else: the ledger follows the chain."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from assay.db.engine import Database
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import ANSWERS_MAX, AT_END, Look
from assay.payments.settlement import find_out
from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from tests.e2e.test_e2e_payment_attacks import submit
from tests.payments.ledger.room import CENT, Room, entry_of, room
from tests.payments.ledger.test_reorganisations import base, payer, revenue
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.reorganised_chain import Anvil
from tests.support.shop import USDC

pytestmark = pytest.mark.slow

__all__ = ["base", "payer"]
VALID_S = 600
LATER_S = VALID_S + 131


@pytest.fixture
def proxy(base: Anvil) -> Iterator[NodeProxy]:
    with node_proxy(base.url) as made:
        yield made


@pytest.fixture
async def shop(database: Database, base: Anvil, proxy: NodeProxy) -> AsyncGenerator[Room]:
    made = room(database, [proxy.url, base.url])
    yield made
    await made.aclose()


async def claimed(shop: Room, payer: LocalAccount) -> LedgerEntry:
    fresh = entry_of(payer, shop.clock.now(), VALID_S)
    found = await shop.ledger.claim(fresh, shop.clock.now() - timedelta(hours=1))
    assert found.is_ours
    return found.entry


async def released(shop: Room, payer: LocalAccount, *, was_unused: bool = True) -> LedgerEntry:
    """Claimed and verified, and then its upstream has failed."""
    entry = await claimed(shop, payer)
    look = Look(shop.clock.now()) if was_unused else Look()
    moved = await shop.ledger.move(
        replace(entry, look=look), PaymentState.RELEASED, lease_until=shop.clock.now()
    )
    assert moved is not None
    return moved


def submitted(base: Anvil, entry: LedgerEntry) -> None:
    submit(base.wallet, entry.credential)


def no_logs(asked: Any) -> Any:
    """What a node answers that searches none."""
    is_search = isinstance(asked, dict) and asked["method"] == "eth_getLogs"
    return {"jsonrpc": "2.0", "id": asked["id"], "result": []} if is_search else None


async def test_what_was_submitted_after_all_is_settled_after_its_end_and_counted(
    shop: Room, base: Anvil, payer: LocalAccount, database: Database
) -> None:
    entry = await released(shop, payer)
    submitted(base, entry)
    assert await shop.look(60) == []
    base.pass_time(LATER_S)
    (moved,) = await shop.look(LATER_S)
    assert (moved.id, moved.state) == (entry.id, PaymentState.SETTLED)
    assert await revenue(database) == (CENT, 0)


async def test_an_abandoned_claim_is_looked_at_as_well(
    shop: Room, base: Anvil, payer: LocalAccount, database: Database
) -> None:
    """Its process was killed: nobody has released it."""
    entry = await claimed(shop, payer)
    submitted(base, entry)
    base.pass_time(LATER_S)
    (moved,) = await shop.look(LATER_S)
    assert (moved.id, moved.state) == (entry.id, PaymentState.SETTLED)
    assert await revenue(database) == (CENT, 0)


async def test_what_nobody_submitted_costs_one_look_after_its_end(
    shop: Room, base: Anvil, payer: LocalAccount, proxy: NodeProxy
) -> None:
    some = [await released(shop, payer) for _ in range(20)]
    base.pass_time(LATER_S)
    asked = list[str]()
    proxy.before = asked.append
    assert await shop.look(LATER_S) == []
    assert asked.count("eth_getBlockByNumber") == 1  # for all of them
    assert await shop.look(100_000) == []
    found = await shop.read(some[0])
    assert (found.state, found.look.at) == (PaymentState.RELEASED, None)
    asked.clear()
    assert await find_out(shop.settlement, found) is None
    assert asked == []


async def test_what_was_used_before_it_came_here_is_not_looked_at(
    shop: Room, base: Anvil, payer: LocalAccount, proxy: NodeProxy
) -> None:
    entry = await released(shop, payer, was_unused=False)
    submitted(base, entry)
    asked = list[str]()
    proxy.before = asked.append
    assert await find_out(shop.settlement, await shop.read(entry)) is None
    base.pass_time(LATER_S)
    assert await shop.look(LATER_S) == []
    assert asked == []


async def test_its_buyer_who_comes_again_finds_it_settled(
    shop: Room, base: Anvil, payer: LocalAccount
) -> None:
    entry = await released(shop, payer)
    assert await find_out(shop.settlement, await shop.read(entry)) is None  # unused: it may buy
    submitted(base, entry)
    found = await find_out(shop.settlement, await shop.read(entry))
    assert found is not None
    assert found.state is PaymentState.SETTLED
    assert base.wallet.request("eth_getTransactionReceipt", found.attempt.transaction)


async def test_one_that_has_paid_somebody_else_is_asked_about_once(
    shop: Room, base: Anvil, payer: LocalAccount, proxy: NodeProxy
) -> None:
    entry = await released(shop, payer)
    requirement: dict[str, object] = {
        "amount": "1",
        "payTo": ACCOUNTS[33].address,
        "asset": USDC,
        "extra": {"name": "USDC", "version": "2"},
    }
    nonce = bytes.fromhex(entry.nonce[2:])
    submit(base.wallet, dollars.authorize(payer.key, requirement, 84532, nonce=nonce))
    assert await find_out(shop.settlement, await shop.read(entry)) is None
    asked = list[str]()
    proxy.before = asked.append
    for _ in range(5):
        shop.clock.move(700)
        assert await find_out(shop.settlement, await shop.read(entry)) is None
    assert asked == []


async def test_answers_that_decide_nothing_are_few(
    database: Database, base: Anvil, payer: LocalAccount, proxy: NodeProxy
) -> None:
    """A node that finds no logs: its buyer waits until the watcher knows, and is not refused."""
    shop = room(database, [proxy.url])
    try:
        entry = await released(shop, payer)
        submitted(base, entry)
        asked = list[str]()
        proxy.before = asked.append
        proxy.instead = no_logs
        for _ in range(60):
            shop.clock.move(10)
            found = await find_out(shop.settlement, await shop.read(entry))
            assert found is not None
            assert found.state is PaymentState.RELEASED
        proxy.instead = lambda _asked: None
        assert asked.count("eth_call") <= ANSWERS_MAX - AT_END
        base.pass_time(LATER_S)
        (moved,) = await shop.look(LATER_S)
        assert moved.state is PaymentState.SETTLED
    finally:
        await shop.aclose()
