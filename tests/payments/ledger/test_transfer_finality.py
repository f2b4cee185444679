"""No node's word alone pays a transfer, and none is done before it is final."""

from collections.abc import Callable
from typing import Any

import pytest

from assay.common.addresses import keccak256
from assay.common.errors import Conflict
from assay.payments import transfers
from assay.payments.statement import NotOwed, Transfer, TransferState
from assay.payments.store_watches import SqlWatchStore
from assay.payments.watcher import plan_of
from tests.payments.ledger.transfer_stage import (
    ANOTHER,
    FINAL,
    NETWORK,
    OWN,
    SELLER,
    USDC,
    WALLET,
    Process,
    Stage,
    owed,
    settled,
)
from tests.support.fakes.calls import PAYER
from tests.support.token_chain import Answer, TokenNode, raised

TRANSFERRED = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()


def honest(*_: Any) -> None:
    return None


def makes_up_receipts(method: str, params: list[Any], _honest: Callable[[], Answer]) -> Any:
    """Whatever is asked about is a transfer of 1,000 to the payer, a long time ago."""
    if method != "eth_getTransactionReceipt":
        return None
    parties = ["0x" + one[2:].rjust(64, "0") for one in (WALLET, PAYER)]
    log = {"address": USDC, "topics": [TRANSFERRED, *parties], "data": hex(1000)}
    shown = {"transactionHash": params[0], "status": "0x1", "blockNumber": "0x1", "logs": [log]}
    return {"result": shown}


def makes_up_everything(method: str, params: list[Any], asked: Callable[[], Answer]) -> Any:
    """And swallows what it is sent."""
    if method == "eth_sendRawTransaction":
        return {"result": "0x" + "12" * 32}
    return makes_up_receipts(method, params, asked)


def is_down(*_: Any) -> Answer:
    return raised("internal error")


def lies(node: TokenNode, lie: Callable[..., Any]) -> None:
    node.lie = lie


async def shown(process: Process, made: Transfer) -> Transfer:
    every = await process.transfers.list_for_admin(None, 100)
    return next(one for one in every if one.id == made.id)


@pytest.mark.parametrize("liar", [0, 1])
async def test_a_receipt_that_one_of_two_nodes_makes_up_pays_nothing(
    stage: Stage, liar: int
) -> None:
    """Not at once, not later, and the transfer is made all the same."""
    lies(stage.nodes[liar], makes_up_receipts)
    stage.chain.is_mining = False
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    assert made.state is TransferState.SIGNED
    assert all("eth_sendRawTransaction" in node.asked for node in stage.nodes)
    assert (await settled(stage, process, made)).state is TransferState.SIGNED
    stage.chain.is_mining = True
    stage.chain.mine()
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_it_is_sent_before_anybody_is_asked_whether_it_arrived(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    await process.transfers.refund(entry.id)
    for node in stage.nodes:
        sent, asked = map(node.asked.index, ("eth_sendRawTransaction", "eth_getTransactionReceipt"))
        assert sent < asked


async def test_where_every_node_made_it_up_it_is_sent_when_the_lie_ends(stage: Stage) -> None:
    """And the wallet goes on paying: no nonce is left out."""
    for node in stage.nodes:
        lies(node, makes_up_everything)
    stage.chain.height = 1  # so that what they make up is not final
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    assert made.state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 0
    for node in stage.nodes:
        lies(node, honest)
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1
    again = await process.transfers.refund((await stage.paid()).id)
    assert (again.nonce, again.state) == (1, TransferState.PAID)
    assert stage.chain.transfers_to(PAYER) == 2


async def test_while_one_of_two_nodes_is_down_nothing_is_paid(stage: Stage) -> None:
    lies(stage.nodes[0], is_down)
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    assert (await settled(stage, process, made)).state is TransferState.SIGNED
    lies(stage.nodes[0], honest)
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_confirmations_are_waited_for(stage: Stage) -> None:
    stage.confirmations = {NETWORK: 3}
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    stage.chain.height += 1
    assert (await settled(stage, process, made)).state is TransferState.SIGNED
    stage.chain.height += 1
    assert (await settled(stage, process, made)).state is TransferState.PAID


async def test_one_that_a_reorganisation_takes_back_is_sent_again_the_same(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    assert made.state is TransferState.PAID
    stage.chain.reorganise()
    stage.chain.is_mining = False
    stage.clock.move(10)
    (moved,) = await process.transfers.resume()
    assert (moved.state, moved.transaction) == (TransferState.SIGNED, made.transaction)
    assert await owed(process) == 0  # it is under way again: nobody else gets it
    with pytest.raises(Conflict):
        await process.transfers.refund(entry.id)
    with pytest.raises(Conflict):
        await process.transfers.cancel(made.id)
    stage.chain.mine()
    again = await settled(stage, process, made)
    assert (again.state, again.transaction) == (TransferState.PAID, made.transaction)
    assert (again.nonce, stage.chain.transfers_to(PAYER)) == (made.nonce, 1)


async def test_one_node_that_shows_no_receipt_takes_nothing_back(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)

    def hides(method: str, *_: Any) -> Answer | None:
        hidden: Answer = {"eth_getTransactionReceipt": None, "eth_getTransactionCount": "0x0"}
        return {"result": hidden[method]} if method in hidden else None

    lies(stage.nodes[1], hides)
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_all_that_are_taken_back_are_paid_again_in_order(stage: Stage) -> None:
    process = await stage.process()
    made = [await process.transfers.refund((await stage.paid()).id) for _ in range(3)]
    assert [one.state for one in made] == [TransferState.PAID] * 3
    stage.chain.reorganise()
    for one in made:
        assert (await settled(stage, process, one)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 3
    again = await process.transfers.refund((await stage.paid()).id)
    assert (again.nonce, again.state) == (3, TransferState.PAID)


async def test_what_is_final_is_asked_about_no_more(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    stage.chain.height += FINAL - 2
    await settled(stage, process, made)
    stage.chain.height += 1
    await settled(stage, process, made)
    for node in stage.nodes:
        node.asked.clear()
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert [node.asked for node in stage.nodes] == [[], []]


async def test_one_that_is_paid_and_not_final_holds_up_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are watched, those on their way are looked at first."""
    monkeypatch.setattr(transfers, "CHECKED_AT_ONCE", 1)
    process = await stage.process()
    await process.transfers.refund((await stage.paid()).id)
    stage.chain.is_mining = False
    made = await process.transfers.refund((await stage.paid()).id)
    stage.chain.mine()
    stage.clock.move(10)
    assert [one.id for one in await process.transfers.resume()] == [made.id]


async def test_one_that_reverted_has_failed_when_that_is_final(stage: Stage) -> None:
    """In another block it may go through: a person who had given it up would pay twice."""
    process, entry = await stage.process(), await stage.paid()
    stage.chain.is_mining = False
    made = await process.transfers.refund(entry.id)
    stage.chain.reverts = True
    stage.chain.mine()
    assert (await settled(stage, process, made)).state is TransferState.SIGNED
    stage.chain.reverts, stage.chain.is_mining = False, True
    stage.chain.reorganise()
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_a_payment_that_is_not_final_is_not_given_back(stage: Stage) -> None:
    """What a reorganisation takes back was never received."""
    process, entry = await stage.process(), await stage.paid(is_final=False)
    with pytest.raises(Conflict, match=r"not final .* Try again at 2026-03-01T12:25:00"):
        await process.transfers.refund(entry.id)
    stage.clock.move(1600)  # nobody has looked at it yet
    with pytest.raises(Conflict, match=r"not final .* Try again in a minute; `assay serve`"):
        await process.transfers.refund(entry.id)
    assert await process.transfers.list_for_admin(None, 10) == []
    await SqlWatchStore(process.database).plan([plan_of(entry, None)])
    assert (await process.transfers.refund(entry.id)).state is TransferState.PAID


@pytest.mark.parametrize("rate", ["0.05", None])
async def test_a_payout_is_of_payments_that_are_final(stage: Stage, rate: str | None) -> None:
    process, kept = await stage.process(), 0 if rate is None else 50
    later = await stage.paid(rate=rate, is_final=False)
    with pytest.raises(NotOwed, match=f"0 base units, and {1000 - kept} .* again in 25 min"):
        await process.transfers.payout("op", NETWORK, SELLER)
    await stage.paid(rate=rate)
    with pytest.raises(NotOwed):
        await process.transfers.payout("op", NETWORK, SELLER, 1001 - kept)
    made = await process.transfers.payout("op", NETWORK, SELLER)
    assert (made.amount, await owed(process)) == (1000 - kept, 1000 - kept)
    await SqlWatchStore(process.database).plan([plan_of(later, None)])
    assert (await process.transfers.payout("op", NETWORK, SELLER)).amount == 1000 - kept


async def test_a_final_payment_is_not_given_back_out_of_one_that_is_not(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    await process.transfers.payout("op", NETWORK, SELLER)
    await stage.paid(is_final=False)
    with pytest.raises(NotOwed):
        await process.transfers.refund(entry.id)


async def test_what_a_person_sent_is_recorded_when_it_is_final(stage: Stage) -> None:
    """By the word of every node: nobody here could send it again."""
    process, entry = await stage.process(), await stage.paid(rate=None, pay_to=OWN)
    made = await process.transfers.refund(entry.id)
    stage.chain.pay(OWN, PAYER, 1000, ANOTHER)
    with pytest.raises(Conflict, match="1 of 600 blocks deep; try again in 25 min"):
        await process.transfers.record(made.id, ANOTHER)
    stage.chain.height += FINAL
    lies(stage.nodes[0], is_down)
    with pytest.raises(Conflict, match="not every node"):
        await process.transfers.record(made.id, ANOTHER)
    lies(stage.nodes[0], honest)
    assert (await process.transfers.record(made.id, ANOTHER)).state is TransferState.PAID
    for node in stage.nodes:
        node.asked.clear()
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert [node.asked for node in stage.nodes] == [[], []]
