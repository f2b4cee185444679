"""One of two nodes lies, believably, in what it says: nothing is free for good, nothing is lost."""

from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from assay.chains.evm.abi import address_word, word
from assay.common.addresses import keccak256
from assay.db.engine import Database
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import NONCES_MAX, RENEWED_AFTER_S, Look
from assay.payments.settlement import find_out
from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_payment_attacks import fresh_account, submit
from tests.payments.ledger.room import CENT, Room, entry_of, room
from tests.payments.ledger.test_reorganisations import revenue
from tests.support.cases import first_then_slow
from tests.support.lying_facilitator import LyingFacilitator, Reply, lying
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import ENGINE, SELLER, USDC, Dollars

pytestmark = pytest.mark.slow

USED = "0x" + keccak256(b"AuthorizationUsed(address,bytes32)").hex()
MOVED = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
STATE = "0x" + keccak256(b"authorizationState(address,bytes32)")[:4].hex()
Answers = Callable[[dict[str, Any]], Any]
"""A method's lie; `...`: none of its own."""


@pytest.fixture
def first(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as made:
        yield made


@pytest.fixture
def second(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as made:
        yield made


@pytest.fixture
async def shop(database: Database, first: NodeProxy, second: NodeProxy) -> AsyncGenerator[Room]:
    made = room(database, [first.url, second.url], settlement_s=1.0)
    yield made
    await made.aclose()


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, 10 * CENT)
    return account


def lies(proxy: NodeProxy, chain: Dollars, answers: Answers, later_s: int = 0) -> None:
    """The node answers by itself what `answers` gives, and passes on the rest.

    Its blocks are `later_s` seconds later than the chain's.
    """

    def one(asked: dict[str, Any]) -> Any:
        result = answers(asked)
        if result is ...:
            result = chain.wallet.request(asked["method"], *asked["params"])
        if asked["method"] == "eth_getBlockByNumber":
            result = {**result, "timestamp": hex(int(result["timestamp"], 16) + later_s)}
        return {"jsonrpc": "2.0", "id": asked["id"], "result": result}

    def instead(asked: Any) -> Any:
        return [one(each) for each in asked] if isinstance(asked, list) else one(asked)

    proxy.instead = instead


def honest(_asked: dict[str, Any]) -> Any:
    """What the chain says."""
    return ...


def sees_nothing(asked: dict[str, Any]) -> Any:
    """No receipt, no log, and the authorisation is unused."""
    if asked["method"] == "eth_getTransactionReceipt":
        return None
    if asked["method"] == "eth_getLogs":
        return []
    if asked["method"] == "eth_call" and asked["params"][0]["data"].startswith(STATE):
        return "0x" + "00" * 32
    return ...


def nonces(chain: Dollars) -> int:
    """How many transactions of the settling key are mined."""
    return int(chain.wallet.request("eth_getTransactionCount", ENGINE.address, "latest"), 16)


async def released(shop: Room, payer: LocalAccount) -> LedgerEntry:
    """A payment that was seen unused, and served nobody."""
    fresh = entry_of(payer, shop.clock.now(), 600)
    claimed = (await shop.ledger.claim(fresh, shop.clock.now())).entry
    seen = replace(claimed, look=Look(shop.clock.now()))
    moved = await shop.ledger.move(seen, PaymentState.RELEASED, lease_until=shop.clock.now())
    assert moved is not None
    return moved


async def passes(shop: Room, seconds: int) -> None:
    """What the background does in so much time, a pass of both every 5 seconds."""
    for _ in range(seconds // 5):
        shop.clock.move(5)
        await shop.settlement.reconcile(is_due_only=True)
        await shop.look(0)


async def settled_at_last(shop: Room, entry: LedgerEntry) -> bool:
    return (await shop.read(entry)).state is PaymentState.SETTLED


def makes_up(entry: Any) -> Answers:
    """It takes the transaction, sends nothing, and shows a receipt as good as a real one."""

    def answers(asked: dict[str, Any]) -> Any:
        if asked["method"] == "eth_sendRawTransaction":
            return "0x" + keccak256(bytes.fromhex(asked["params"][0][2:])).hex()
        if asked["method"] != "eth_getTransactionReceipt":
            return ...
        payer = "0x" + address_word(entry.payer).hex()
        topics = [MOVED, payer, "0x" + address_word(entry.pay_to).hex()]
        return {
            "status": "0x1",
            "transactionHash": asked["params"][0],
            "blockNumber": "0x1",
            "logs": [
                {"address": USDC, "topics": [USED, payer, entry.nonce], "data": "0x"},
                {"address": USDC, "topics": topics, "data": "0x" + word(CENT).hex()},
            ],
        }

    return answers


async def test_a_payment_that_goes_well_asks_no_more_than_it_must(
    shop: Room, first: NodeProxy, second: NodeProxy, payer: LocalAccount
) -> None:
    asked, elsewhere = list[str](), list[str]()
    first.before, second.before = asked.append, elsewhere.append
    assert (await shop.settled(payer)).state is PaymentState.SETTLED
    assert sorted(set(asked)) == [
        "eth_blockNumber",
        "eth_chainId",
        "eth_gasPrice",
        "eth_getBalance",
        "eth_getTransactionCount",
        "eth_getTransactionReceipt",
        "eth_sendRawTransaction",
    ]
    assert asked.count("eth_sendRawTransaction") == 1
    assert elsewhere == []


async def test_a_receipt_that_is_made_up_is_found_out_and_the_money_taken_all_the_same(
    shop: Room, first: NodeProxy, dollar_chain: Dollars, payer: LocalAccount, database: Database
) -> None:
    entry = await shop.claimed(payer)
    lies(first, dollar_chain, makes_up(entry))
    assert (
        await shop.tried(entry) == PaymentState.SETTLED
    )  # with one node's word: nothing is slower
    assert dollar_chain.balance(payer.address) == 10 * CENT
    await shop.look(6)
    await shop.look(6)
    assert dollar_chain.balance(payer.address) == 9 * CENT
    found = await shop.read(entry)
    assert found.state is PaymentState.SETTLED
    receipt = dollar_chain.wallet.request("eth_getTransactionReceipt", found.attempt.transaction)
    assert receipt["status"] == "0x1"
    assert await revenue(database) == (CENT, 0)


@pytest.mark.parametrize("liar", first_then_slow(["first", "second"]))
async def test_one_that_sees_nothing_does_not_end_a_payment_whose_money_has_moved(
    shop: Room,
    first: NodeProxy,
    second: NodeProxy,
    dollar_chain: Dollars,
    payer: LocalAccount,
    liar: str,
) -> None:
    entry = await shop.claimed(payer, valid_s=30)
    nodes = {"first": first, "second": second}
    lies(nodes[liar], dollar_chain, sees_nothing)
    await shop.tried(entry)
    assert dollar_chain.balance(payer.address) == 9 * CENT
    shop.clock.move(300)  # its authorisation has ended long ago
    for name, node in nodes.items():
        lies(node, dollar_chain, sees_nothing if name == liar else honest, later_s=300)
    for _ in range(3):  # what was sent again is looked at with the next
        await shop.reconcile()
    await shop.look(300)
    found = await shop.read(entry)
    assert found.state is PaymentState.SETTLED, found
    assert dollar_chain.balance(payer.address) == 9 * CENT


@pytest.mark.parametrize("liar", first_then_slow(["first", "second"]))
async def test_money_that_a_stranger_moved_is_its_buyers_whichever_node_shows_nothing(
    shop: Room,
    first: NodeProxy,
    second: NodeProxy,
    dollar_chain: Dollars,
    payer: LocalAccount,
    liar: str,
) -> None:
    """Its claim has served nobody: before it is refused, and after its end, every node is asked."""
    nodes = {"first": first, "second": second}
    lies(nodes[liar], dollar_chain, sees_nothing)
    before_refusal, after_end = [await released(shop, payer) for _ in range(2)]
    for entry in (before_refusal, after_end):
        submit(dollar_chain.wallet, entry.credential)
    found = await find_out(shop.settlement, before_refusal, is_refused=True)
    assert found is not None
    assert found.state is PaymentState.SETTLED
    for name, node in nodes.items():
        lies(node, dollar_chain, sees_nothing if name == liar else honest, later_s=800)
    assert after_end.id in {one.id for one in await shop.look(800)}
    assert await settled_at_last(shop, after_end)


async def test_money_that_no_node_shows_is_nobodys(
    shop: Room, first: NodeProxy, dollar_chain: Dollars, payer: LocalAccount
) -> None:
    """A node that says that it is used, and shows neither event nor receipt, gives nothing away."""

    def says_used(asked: dict[str, Any]) -> Any:
        is_state = asked["method"] == "eth_call" and asked["params"][0]["data"].startswith(STATE)
        return "0x" + word(1).hex() if is_state else ...

    lies(first, dollar_chain, says_used)
    entry = await released(shop, payer)
    found = await find_out(shop.settlement, entry, is_refused=True)
    assert found is not None
    assert found.state is PaymentState.RELEASED


@pytest.mark.parametrize(("liar", "most"), first_then_slow([("first", 1), ("second", 2)]))
async def test_one_that_sees_nothing_burns_no_gas_on_what_the_other_shows(
    shop: Room,
    first: NodeProxy,
    second: NodeProxy,
    dollar_chain: Dollars,
    payer: LocalAccount,
    liar: str,
    most: int,
) -> None:
    lies({"first": first, "second": second}[liar], dollar_chain, sees_nothing)
    before = nonces(dollar_chain)
    entry = await shop.claimed(payer)
    await shop.tried(entry)
    await passes(shop, 900)
    assert 1 <= nonces(dollar_chain) - before <= most
    assert await settled_at_last(shop, entry)
    assert dollar_chain.balance(payer.address) == 9 * CENT


async def test_nodes_that_all_see_nothing_burn_gas_a_few_times(
    shop: Room, first: NodeProxy, second: NodeProxy, dollar_chain: Dollars, payer: LocalAccount
) -> None:
    for node in (first, second):
        lies(node, dollar_chain, sees_nothing)
    before = nonces(dollar_chain)
    entry = await shop.claimed(payer)
    await shop.tried(entry)
    await passes(shop, 30)
    assert nonces(dollar_chain) - before <= 2
    await passes(shop, 900)
    assert nonces(dollar_chain) - before <= 1 + len(RENEWED_AFTER_S)
    for node in (first, second):
        lies(node, dollar_chain, honest)
    await passes(shop, 1200)
    assert await settled_at_last(shop, entry)


async def test_a_node_that_sends_on_and_says_the_nonce_is_taken_is_believed_a_few_times(
    shop: Room, first: NodeProxy, second: NodeProxy, dollar_chain: Dollars, payer: LocalAccount
) -> None:
    def instead(asked: Any) -> Any:
        if isinstance(asked, list) or asked["method"] != "eth_sendRawTransaction":
            return None
        dollar_chain.wallet.request(asked["method"], *asked["params"])
        error = {"code": -32000, "message": "nonce too low"}
        return {"jsonrpc": "2.0", "id": asked["id"], "error": error}

    first.instead = instead
    lies(second, dollar_chain, sees_nothing)
    before = nonces(dollar_chain)
    entry = await shop.claimed(payer)
    await shop.tried(entry)
    await passes(shop, 900)
    assert nonces(dollar_chain) - before <= NONCES_MAX


async def test_one_whose_nonce_another_has_taken_is_sent_again(
    shop: Room, first: NodeProxy, dollar_chain: Dollars, payer: LocalAccount
) -> None:
    """As after a reorganisation: it is not mined, and never will be under its nonce."""

    def swallows(asked: Any) -> Any:
        if isinstance(asked, list) or asked["method"] != "eth_sendRawTransaction":
            return None
        hash_ = "0x" + keccak256(bytes.fromhex(asked["params"][0][2:])).hex()
        return {"jsonrpc": "2.0", "id": asked["id"], "result": hash_}

    first.instead = swallows
    entry = await shop.claimed(payer)
    assert await shop.tried(entry) == PaymentState.PENDING
    first.instead = lambda _asked: None
    other = await shop.settled(payer)
    assert (await shop.read(entry)).attempt.raw != other.attempt.raw
    await passes(shop, 60)
    assert await settled_at_last(shop, entry)
    assert dollar_chain.balance(payer.address) == 8 * CENT


async def test_while_the_second_is_down_nothing_ends(
    shop: Room, first: NodeProxy, second: NodeProxy, dollar_chain: Dollars, payer: LocalAccount
) -> None:
    entry = await shop.claimed(payer, valid_s=30)
    lies(first, dollar_chain, sees_nothing)
    everything = ("eth_chainId", "eth_blockNumber", "eth_call", "eth_getTransactionReceipt")
    with second.failing(*everything):
        await shop.tried(entry)
        shop.clock.move(300)
        lies(first, dollar_chain, sees_nothing, later_s=300)
        await shop.reconcile()
        assert (await shop.read(entry)).state is PaymentState.PENDING
    shop.clock.move(60)
    for _ in range(3):
        await shop.reconcile()
    assert (await shop.read(entry)).state is PaymentState.SETTLED


async def test_a_facilitator_that_refuses_and_submits_later_costs_nobody_anything(
    database: Database, dollar_chain: Dollars, payer: LocalAccount
) -> None:
    """The answer was withheld and the money has come: the entry is paid, its answer is kept."""
    kept = list[Any]()
    refusal = {"success": False, "transaction": "", "errorReason": "insufficient_funds"}

    def told(liar: LyingFacilitator, payload: Any) -> Reply:
        del liar
        kept.append(payload)
        return Reply(refusal)

    with lying(lambda payload: submit(dollar_chain.wallet, payload)) as liar:
        shop = room(database, [dollar_chain.url], facilitator_url=liar.url)
        try:
            entry = await shop.claimed(payer, valid_s=600)
            await shop.verified(entry)
            liar.answers = told
            assert await shop.tried(entry) == PaymentState.FAILED
            assert await revenue(database) == (0, 0)
            submit(dollar_chain.wallet, kept[0])
            (moved,) = await shop.look(800)
            assert moved.state is PaymentState.SETTLED
            assert await revenue(database) == (CENT, 0)
            assert dollar_chain.balance(SELLER.address) >= CENT
        finally:
            await shop.aclose()
