"""Payouts and refunds, on every database: sent once, whatever dies, races or lies."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from assay.common.errors import Conflict, InvalidRequest
from assay.payments.model import PaymentState, PaymentsUnavailable
from assay.payments.outcomes import SettlementAttempt
from assay.payments.statement import (
    NotOwed,
    SignedTransfer,
    Transfer,
    TransferNotFound,
    TransferState,
)
from assay.payments.store_transfers import SqlTransferStore
from tests.payments.ledger.transfer_stage import (
    ANOTHER,
    FINAL,
    NETWORK,
    OWN,
    PLATFORM,
    SELLER,
    USDC,
    WALLET,
    Process,
    Stage,
    owed,
    settled,
)
from tests.support.fakes.calls import PAYER, claimed, counted_ledger, payment
from tests.support.fakes.ledger_moves import moved_on
from tests.support.token_chain import raised

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """The process ends here."""


async def test_a_refund_is_sent_once_and_leaves_the_statement(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    made = await settled(stage, process, await process.transfers.refund(entry.id, 400))
    assert made.state is TransferState.PAID
    assert stage.chain.balances[PAYER] == 400
    assert await owed(process) == 600 - 30  # of what is given back no fee is taken
    with pytest.raises(Conflict):
        await process.transfers.refund(entry.id, 1)
    assert stage.chain.transfers_to(PAYER) == 1


@pytest.mark.parametrize("amount", [0, -1, 1001])
async def test_a_refund_is_at_most_what_was_received(stage: Stage, amount: int) -> None:
    process, entry = await stage.process(), await stage.paid()
    with pytest.raises(InvalidRequest):
        await process.transfers.refund(entry.id, amount)
    assert await process.transfers.list_for_admin(None, 10) == []


async def test_a_payment_that_has_not_arrived_is_not_given_back(stage: Stage) -> None:
    process = await stage.process()
    ledger = counted_ledger(process.database, stage.clock)
    pending = await claimed(ledger, payment("op", "w", stage.clock.now(), 10))
    assert await moved_on(ledger, pending, PaymentState.PENDING) is not None
    with pytest.raises(Conflict):
        await process.transfers.refund(pending.id)
    with pytest.raises(TransferNotFound):
        await process.transfers.refund("nothing")


async def test_a_payout_is_at_most_what_is_owed(stage: Stage) -> None:
    process = await stage.process()
    await stage.paid()
    for amount in (951, 0, -5):
        with pytest.raises(NotOwed):
            await process.transfers.payout("op", NETWORK, SELLER, amount)
    made = await settled(stage, process, await process.transfers.payout("op", NETWORK, SELLER))
    assert (made.amount, made.state) == (950, TransferState.PAID)
    assert (stage.chain.balances[SELLER], await owed(process)) == (950, 0)
    with pytest.raises(NotOwed):
        await process.transfers.payout("op", NETWORK, SELLER)


async def test_what_was_paid_out_cannot_be_given_back_from_the_platforms_money(
    stage: Stage,
) -> None:
    process, entry = await stage.process(), await stage.paid()
    await process.transfers.payout("op", NETWORK, SELLER)
    with pytest.raises(NotOwed):
        await process.transfers.refund(entry.id)
    assert stage.chain.transfers_to(PAYER) == 0


@pytest.mark.parametrize("kind", ["refund", "payout"])
async def test_of_processes_that_race_one_sends(stage: Stage, kind: str) -> None:
    entry = await stage.paid()
    processes = [await stage.process() for _ in range(4)]

    async def attempt(process: Process) -> bool:
        try:
            if kind == "refund":
                await process.transfers.refund(entry.id)
            else:
                await process.transfers.payout("op", NETWORK, SELLER)
        except Conflict:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(attempt(process)) for process in processes for _ in range(3)]
    assert [task.result() for task in tasks].count(True) == 1
    assert stage.chain.transfers_to(PAYER if kind == "refund" else SELLER) == 1


async def test_transfers_of_many_processes_take_a_nonce_each(stage: Stage) -> None:
    entries = [await stage.paid() for _ in range(8)]
    processes = [await stage.process() for _ in range(2)]
    async with asyncio.TaskGroup() as group:
        for place, entry in enumerate(entries):
            group.create_task(processes[place % 2].transfers.refund(entry.id))
    for _ in range(4):
        stage.clock.move(700)
        await processes[0].transfers.resume()
    made = await processes[0].transfers.list_for_admin(None, 100)
    assert sorted(one.nonce for one in made if one.nonce is not None) == list(range(8))
    assert {one.state for one in made} == {TransferState.PAID}
    assert stage.chain.transfers_to(PAYER) == 8


def killed_before(method: str) -> Callable[[Process], None]:
    """The process dies instead of asking a node for that."""

    def arm(process: Process) -> None:
        inner = process.rpc.request

        async def request(network: Any, asked: str, params: Any) -> Any:
            if asked == method:
                raise Killed
            return await inner(network, asked, params)

        process.rpc.request = request  # type: ignore[method-assign]

    return arm


def killed_after(method: str) -> Callable[[Process], None]:
    def arm(process: Process) -> None:
        inner = process.rpc.request

        async def request(network: Any, asked: str, params: Any) -> Any:
            answer = await inner(network, asked, params)
            if asked == method:
                raise Killed
            return answer

        process.rpc.request = request  # type: ignore[method-assign]

    return arm


POINTS = {
    "before it is written down": killed_before("eth_getTransactionCount"),
    "written down, nothing sent": killed_before("eth_sendRawTransaction"),
    "sent": killed_after("eth_sendRawTransaction"),
    "about to look": killed_before("eth_getTransactionReceipt"),
    "looked at": killed_after("eth_blockNumber"),
}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", ["refund", "payout"])
async def test_a_kill_at_any_point_sends_it_once(stage: Stage, kind: str, point: str) -> None:
    entry, first = await stage.paid(), await stage.process()
    POINTS[point](first)

    async def work(process: Process) -> Transfer:
        if kind == "refund":
            return await process.transfers.refund(entry.id)
        return await process.transfers.payout("op", NETWORK, SELLER)

    with pytest.raises(BaseExceptionGroup):
        await work(first)
    second = await stage.process()
    if point == "before it is written down":
        assert await second.transfers.list_for_admin(None, 10) == []
        await work(second)
    else:
        with pytest.raises(Conflict):
            await work(second)
    (made,) = await second.transfers.list_for_admin(None, 10)
    assert (await settled(stage, second, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER if kind == "refund" else SELLER) == 1


async def test_a_node_that_swallows_the_transaction_loses_nothing(stage: Stage) -> None:
    def swallows(method: str, params: list[Any], _honest: Any) -> Any:
        del params
        return {"result": "0x" + "12" * 32} if method == "eth_sendRawTransaction" else None

    for node in stage.nodes:
        node.lie = swallows
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    assert (await settled(stage, process, made)).state is TransferState.SIGNED
    assert await owed(process) == 0  # nobody may have it twice
    stage.nodes[1].lie = lambda *_: None
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_a_node_that_takes_it_and_says_no_makes_no_second_transfer(stage: Stage) -> None:
    def refuses(method: str, params: list[Any], honest: Callable[[], Any]) -> Any:
        del params
        if method != "eth_sendRawTransaction":
            return None
        honest()
        return raised("insufficient funds for gas * price + value")

    for node in stage.nodes:
        node.lie = refuses
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


def says_reverted(method: str, params: list[Any], honest: Callable[[], Any]) -> Any:
    del params
    if method != "eth_getTransactionReceipt":
        return None
    answer = honest()
    if answer["result"] is None:
        return None
    return {"result": {**answer["result"], "status": "0x0", "logs": []}}


async def test_one_node_that_says_it_failed_is_not_believed(stage: Stage) -> None:
    stage.nodes[0].lie = says_reverted
    process, entry = await stage.process(), await stage.paid()
    made = await settled(stage, process, await process.transfers.refund(entry.id))
    assert made.state is TransferState.SIGNED
    with pytest.raises(Conflict):
        await process.transfers.cancel(made.id)
    stage.nodes[0].lie = lambda *_: None
    assert (await settled(stage, process, made)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_when_every_node_says_it_failed_nothing_is_sent_again(stage: Stage) -> None:
    """And when they tell the truth again, the row does too."""
    for node in stage.nodes:
        node.lie = says_reverted
    process, entry = await stage.process(), await stage.paid()
    made = await process.transfers.refund(entry.id)
    stage.chain.height += FINAL
    stage.clock.move(10)
    await process.transfers.resume()
    (shown,) = await process.transfers.list_for_admin(None, 10)
    assert shown.state is TransferState.FAILED
    with pytest.raises(Conflict):
        await process.transfers.refund(entry.id)
    for node in stage.nodes:
        node.lie = lambda *_: None
    with pytest.raises(Conflict):  # it is looked at once more before it is given up
        await process.transfers.cancel(made.id)
    assert (await process.transfers.list_for_admin(None, 10))[0].state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_one_that_really_failed_is_given_up_by_a_person_and_made_anew(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    stage.chain.is_mining = False
    made = await process.transfers.refund(entry.id)
    stage.chain.reverts = True
    stage.chain.mine()
    stage.chain.height += FINAL
    stage.clock.move(10)
    await process.transfers.resume()
    stage.chain.reverts, stage.chain.is_mining = False, True
    assert (await process.transfers.cancel(made.id)).state is TransferState.CANCELLED
    again = await process.transfers.refund(entry.id)
    assert (again.nonce, again.id != made.id) == (1, True)
    assert (await settled(stage, process, again)).state is TransferState.PAID
    assert stage.chain.transfers_to(PAYER) == 1


async def test_a_node_that_says_a_nonce_of_the_future_is_overruled(stage: Stage) -> None:
    def ahead(method: str, params: list[Any], _honest: Any) -> Any:
        del params
        return {"result": hex(1000)} if method == "eth_getTransactionCount" else None

    stage.nodes[0].lie = ahead
    process, entry = await stage.process(), await stage.paid()
    made = await settled(stage, process, await process.transfers.refund(entry.id))
    assert (made.nonce, made.state) == (0, TransferState.PAID)


async def test_one_signed_too_cheap_is_signed_again_with_the_same_nonce(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    stage.chain.is_mining = False
    made = await process.transfers.refund(entry.id)
    stage.chain.gas_price *= 10
    stage.chain.mine()
    assert stage.chain.receipts == {}
    stage.chain.is_mining = True
    shown = await settled(stage, process, made)
    assert (shown.nonce, shown.state) == (made.nonce, TransferState.PAID)
    assert shown.transaction != made.transaction
    assert stage.chain.transfers_to(PAYER) == 1


async def test_a_price_of_gas_that_cannot_be_is_refused_before_anything_is_written(
    stage: Stage,
) -> None:
    process, entry = await stage.process(), await stage.paid()
    stage.chain.gas_price = 10**15
    with pytest.raises(PaymentsUnavailable):
        await process.transfers.refund(entry.id)
    assert await process.transfers.list_for_admin(None, 10) == []


async def test_a_wallet_without_the_money_or_the_gas_promises_nothing(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    stage.chain.balances[WALLET] = 999
    with pytest.raises(InvalidRequest, match="fewer than 1000"):
        await process.transfers.refund(entry.id)
    stage.chain.balances[WALLET], stage.chain.ether = 1000, 5
    with pytest.raises(InvalidRequest, match="too little for gas"):
        await process.transfers.refund(entry.id)
    assert await process.transfers.list_for_admin(None, 10) == []


async def test_a_payment_to_the_sellers_own_wallet_is_given_back_from_there(stage: Stage) -> None:
    """Never from the platform's wallet: the platform does not have the money."""
    process, entry = await stage.process(), await stage.paid(rate=None, pay_to=OWN)
    made = await process.transfers.refund(entry.id)
    assert (made.state, made.sender) == (TransferState.OPEN, OWN)
    assert stage.chain.receipts == {}
    said = process.transfers.instructions(made)
    assert said["data"] == "0x" + process.wallet.calldata(made).hex()
    stage.chain.pay(OWN, PAYER, 1000, ANOTHER)
    stage.chain.height += FINAL
    paid = await process.transfers.record(entry.id, ANOTHER.upper().replace("0X", "0x"))
    assert (paid.state, paid.transaction) == (TransferState.PAID, ANOTHER)
    assert await owed(process) == 0


@pytest.mark.parametrize(
    ("sender", "recipient", "amount"),
    [(OWN, PAYER, 999), (OWN, SELLER, 1000), (PAYER, OWN, 1000), (SELLER, PAYER, 1000)],
)
async def test_a_transaction_that_is_something_else_is_not_recorded(
    stage: Stage, sender: str, recipient: str, amount: int
) -> None:
    process, entry = await stage.process(), await stage.paid(rate=None, pay_to=OWN)
    made = await process.transfers.refund(entry.id)
    stage.chain.pay(sender, recipient, amount, ANOTHER)
    stage.chain.height += FINAL
    with pytest.raises(Conflict):
        await process.transfers.record(made.id, ANOTHER)
    with pytest.raises(Conflict):  # one the chain has never seen
        await process.transfers.record(made.id, "0x" + "01" * 32)
    with pytest.raises(InvalidRequest):
        await process.transfers.record(made.id, "<b>")


async def test_a_transaction_is_of_one_transfer(stage: Stage) -> None:
    process = await stage.process()
    entries = [await stage.paid(rate=None, pay_to=OWN) for _ in range(2)]
    first, second = [await process.transfers.refund(entry.id) for entry in entries]
    stage.chain.pay(OWN, PAYER, 1000, ANOTHER)
    stage.chain.height += FINAL
    await process.transfers.record(first.id, ANOTHER)
    with pytest.raises(Conflict):
        await process.transfers.record(second.id, ANOTHER)


async def test_a_transaction_that_bought_calls_gave_nothing_back(stage: Stage) -> None:
    """Two sellers who buy of each other in a circle: no payment is the refund of another."""
    process, entry = await stage.process(), await stage.paid(rate=None, pay_to=OWN)
    ledger = counted_ledger(process.database, stage.clock)
    back = payment("other", "w", stage.clock.now(), 1000)
    fields: dict[str, Any] = {"network": NETWORK, "asset": USDC, "pay_to": PAYER, "payer": OWN}
    back = await claimed(ledger, replace(back, **fields))
    assert (
        await ledger.move(back, PaymentState.SETTLED, attempt=SettlementAttempt(ANOTHER))
        is not None
    )
    stage.chain.pay(OWN, PAYER, 1000, ANOTHER)
    stage.chain.height += FINAL
    made = await process.transfers.refund(entry.id)
    with pytest.raises(Conflict):
        await process.transfers.record(made.id, ANOTHER)


async def test_without_a_key_a_transfer_waits_for_a_person(stage: Stage) -> None:
    process, entry = await stage.process(None), await stage.paid()
    made = await process.transfers.refund(entry.id)
    assert (made.state, made.sender, made.nonce) == (TransferState.OPEN, PLATFORM, None)
    assert await owed(process) == 0
    await process.transfers.cancel(made.id)
    assert await owed(process) == 950
    paying = await process.transfers.payout("op", NETWORK, SELLER, 950)
    stage.chain.pay(PLATFORM, SELLER, 950, ANOTHER)
    stage.chain.height += FINAL
    assert (await process.transfers.record(paying.id, ANOTHER)).state is TransferState.PAID
    assert await owed(process) == 0


async def test_a_payment_that_was_taken_back_leaves_the_statement(stage: Stage) -> None:
    """A state beyond the two in which money is there, whatever its name."""
    process, entry = await stage.process(), await stage.paid()
    assert await owed(process) == 950
    async with process.database.write() as connection:
        statement = text("UPDATE payments SET state = 'reversed' WHERE id = :id")
        await connection.execute(statement, {"id": entry.id})
    assert await owed(process) == 0
    with pytest.raises(NotOwed):
        await process.transfers.payout("op", NETWORK, SELLER)


async def test_every_payout_address_is_looked_at(stage: Stage) -> None:
    process = await stage.process()
    await stage.paid()
    for to in ("0x" + "00" * 20, USDC, "0x" + "00" * 18 + "dEaD", "0xAb" + "cd" * 19, PLATFORM):
        with pytest.raises(InvalidRequest):
            await process.transfers.payout("op", NETWORK, to)


async def test_what_is_signed_is_never_signed_with_another_nonce(stage: Stage) -> None:
    process, entry = await stage.process(), await stage.paid()
    stage.chain.is_mining = False
    made = await process.transfers.refund(entry.id)
    store = SqlTransferStore(process.database, {PLATFORM}, stage.clock)
    stale = replace(made, moves=made.moves - 1)
    assert await store.sign_again(stale, SignedTransfer("0x" + "0f" * 32, "0x", 1, 1)) is None
    assert len(await store.transactions(made.id)) == 1
