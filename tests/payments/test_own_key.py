"""Settling with our own key: whatever the nodes do, one transfer is made, and is told as it is."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assay.chains.rpc import Returned, Reverted
from assay.payments.model import PaymentState, PaymentsUnavailable
from assay.payments.outcomes import SettlementAttempt, Undecided
from assay.payments.x402.engine import X402Engine
from tests.payments.outside import PRICE, FakeReply, incoming, payment
from tests.payments.sales import Sale, nothing, sale
from tests.payments.service import Process, Reply
from tests.payments.world import COIN, Terms
from tests.simulation.chain import GWEI, NETWORK, TRANSFER_GAS
from tests.simulation.process import CHAIN


def answered(reply: Reply | None) -> Reply:
    assert reply is not None
    return reply


def pending(reply: Reply | None) -> None:
    found = answered(reply)
    assert (found.status, found.code) == (503, "settlement_pending")


def unavailable(reply: Reply | None) -> None:
    found = answered(reply)
    assert (found.status, found.code) == (503, "payments_unavailable")


async def no_note(_attempt: SettlementAttempt) -> None:
    raise AssertionError("nothing is signed")


def test_without_a_key_nothing_is_taken_until_there_is_one(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process, world = made.process(), made.world
        made.comes_again(process)
        row, chains = world.row(), {NETWORK.id: CHAIN}
        engine = X402Engine(process.rpc, chains, None, None, world.clock, 8.0)
        unasked: Any = None
        assert not engine.has_key
        with pytest.raises(PaymentsUnavailable):
            world.run(engine.verify(unasked, unasked))
        for work in (engine.settle(row, no_note), engine.resend(row, no_note)):
            assert isinstance(world.run(work), Undecided)
        engine.take_up(world.signer)
        engine.take_up(unasked)  # it has one
        assert engine.has_key


@pytest.mark.parametrize(
    "answers",
    [
        [Returned(b""), Returned(bytes(32)), Returned(b"")],
        [Reverted(b"", "paused"), Returned(bytes(32)), Returned(b"")],
        [Returned(bytes(32)), Reverted(b"", "paused"), Returned(b"")],
    ],
)
def test_a_token_that_does_not_answer_refuses_nobody(folder: Path, answers: Any) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        for node in made.world.nodes.values():
            node.call = lambda _calls: answers  # type: ignore[method-assign]
        unavailable(made.show(process))
        for node in made.world.nodes.values():
            del node.call
        made.is_served_and_paid_once(made.comes_again(process))


def test_what_the_contract_refuses_is_refused_before_the_seller_works(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        made.world.chain.is_signed = lambda _signed: False  # its wallet is a contract, say
        reply = answered(made.show(made.process()))
        assert (reply.status, reply.reason) == (402, "invalid_transaction_state")
        assert made.world.upstream.keys == []


def test_while_no_node_answers_nothing_is_forwarded_or_refused(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        made.world.down.update(NETWORK.rpc_urls)
        unavailable(made.show(process))
        assert made.world.upstream.keys == []
        made.world.down.clear()
        made.is_served_and_paid_once(made.comes_again(process))


def once_sent(made: Sale, act: Any) -> None:
    """Do that when the first transaction has reached a node."""

    def arrived(_raw: str) -> None:
        for node in made.world.nodes.values():
            node.arrived = lambda _raw: None
        act()

    for node in made.world.nodes.values():
        node.arrived = arrived


def test_a_settlement_that_became_too_cheap_is_replaced_under_its_nonce(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process, chain = made.process(), made.world.chain
        once_sent(made, lambda: setattr(chain, "base_fee", 40 * GWEI))
        made.is_served_and_paid_once(made.comes_again(process))
        assert chain.state.nonces[made.world.signer.address] == 1
        assert len(made.world.row().attempt.earlier) == 1


def test_a_settlement_that_is_not_mined_in_time_is_pending_and_never_a_refusal(
    folder: Path,
) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        made.world.chain.inclusion = 0.0
        pending(made.show(process))
        assert made.world.row().state is PaymentState.PENDING
        made.world.chain.inclusion = 1.0
        made.is_served_and_paid_once(made.comes_again(process))
        made.ends(process)
        made.books_agree(process)


def test_an_outage_while_a_settlement_is_waited_for_loses_nothing(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        once_sent(made, lambda: made.world.down.update(NETWORK.rpc_urls))
        pending(made.show(process))
        made.world.down.clear()
        made.is_served_and_paid_once(made.comes_again(process))
        assert made.world.chain.state.nonces[made.world.signer.address] == 1


@pytest.mark.parametrize("what", ["no gas", "gas is too dear"])
def test_what_our_key_cannot_send_now_is_sent_later(folder: Path, what: str) -> None:
    with sale(folder, Terms(), nothing) as made:
        process, world = made.process(), made.world
        if what == "no gas":
            world.chain.fund_gas(world.signer.address, -COIN)
        else:
            world.chain.base_fee = 900 * GWEI
        pending(made.show(process))
        world.chain.base_fee = 10 * GWEI
        world.chain.fund_gas(world.signer.address, COIN)
        made.is_served_and_paid_once(made.comes_again(process))


def test_two_processes_with_one_key_settle_each_their_own(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        world = made.world
        world.chain.fund(made.payer.address, 5 * PRICE)
        first, second = made.process(), made.process()
        signed = [made.payer.signs(world.now_s() + 60, nonce=n) for n in range(2, 8)]

        async def all_at_once() -> list[Reply | None]:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(process._called(incoming(payment(one))))
                    for one, process in zip(signed, (first, second) * 3, strict=True)
                ]
            return [task.result() for task in tasks]

        replies = [answered(one) for one in world.run(all_at_once())]
        assert [one.status for one in replies] == [200] * 6
        assert world.taken() == 6 * PRICE
        assert {row.state for row in world.rows()} == {PaymentState.DELIVERED}


# Gas, charged to the seller


def credit(made: Sale, amount: int) -> None:
    with closing(sqlite3.connect(made.world.path)) as connection, connection:
        values = ("op", NETWORK.id, amount)
        connection.execute(
            "INSERT INTO gas_accounts (operator_id, currency, balance) VALUES (?, ?, ?)", values
        )


def balance(made: Sale) -> int:
    with closing(sqlite3.connect(made.world.path)) as connection:
        ((found,),) = connection.execute("SELECT balance FROM gas_accounts").fetchall()
        return int(found)


MUCH = 10**9


def test_a_seller_without_a_budget_for_gas_sells_nothing_and_charges_nobody(folder: Path) -> None:
    with sale(folder, Terms(is_gas_charged=True, free_settlements=0), nothing) as made:
        unavailable(made.show(made.process()))
        assert made.world.rows() == []
        assert made.world.upstream.keys == []


def test_what_was_burnt_is_charged_to_the_seller_once(folder: Path) -> None:
    with sale(folder, Terms(is_gas_charged=True, free_settlements=0), nothing) as made:
        credit(made, MUCH)
        process = made.process()
        made.is_served_and_paid_once(made.comes_again(process))
        burnt = COIN - made.world.chain.state.coins[made.world.signer.address]
        spent = made.world.row().gas.spent
        assert spent is not None
        assert spent == -(-burnt // GWEI)
        assert burnt >= TRANSFER_GAS * 10 * GWEI
        assert balance(made) == MUCH - spent
        made.ends(process)
        assert balance(made) == MUCH - spent


def test_what_served_nobody_gives_back_what_was_reserved(folder: Path) -> None:
    with sale(folder, Terms(is_gas_charged=True, free_settlements=0), nothing) as made:
        credit(made, MUCH)
        made.world.upstream.script = [FakeReply(404)]
        assert answered(made.show(made.process())).status == 404
        assert balance(made) == MUCH
        assert not made.world.row().gas.payer


def test_what_a_killed_process_had_reserved_is_given_back_in_time(folder: Path) -> None:
    with sale(folder, Terms(is_gas_charged=True, free_settlements=0), nothing) as made:
        credit(made, MUCH)
        first = made.process()
        made.world.upstream.asked = first.kill
        assert made.show(first) is None
        assert balance(made) < MUCH
        second: Process = made.process()
        made.ends(second)
        made.ends(second)
        assert (made.world.row().state, balance(made)) == (PaymentState.RELEASED, MUCH)


def test_free_settlements_are_counted_and_come_back_where_nothing_was_sent(folder: Path) -> None:
    with sale(folder, Terms(is_gas_charged=True, free_settlements=1), nothing) as made:
        process = made.process()
        made.world.upstream.script = [FakeReply(404)]
        assert answered(made.show(process)).status == 404
        made.is_served_and_paid_once(made.comes_again(process))
        made.world.chain.fund(made.payer.address, PRICE)
        another = payment(made.payer.signs(made.world.now_s() + 60, nonce=2))
        unavailable(process.call(incoming(another)))


@pytest.mark.parametrize("what", ["no gas", "gas is too dear", "no node"])
def test_what_our_key_cannot_pay_for_is_refused_before_the_seller_works(
    folder: Path, what: str
) -> None:
    with sale(folder, Terms(is_gas_charged=True), nothing) as made:
        process, world = made.process(), made.world
        if what == "no gas":
            world.chain.fund_gas(world.signer.address, -COIN)
        elif what == "no node":
            world.down.update(NETWORK.rpc_urls)
        else:
            world.chain.base_fee = 900 * GWEI
        unavailable(made.show(process))
        assert world.upstream.keys == []
        world.chain.base_fee = 10 * GWEI
        world.chain.fund_gas(world.signer.address, COIN)
        world.down.clear()
        made.goes_on(8, process)
        made.is_served_and_paid_once(made.comes_again(process))


def test_a_key_that_holds_little_pays_for_no_more_calls_than_it_can(folder: Path) -> None:
    with sale(folder, Terms(is_gas_charged=True), nothing) as made:
        process, world = made.process(), made.world
        most = 2 * 10 * GWEI + GWEI + 1
        world.chain.fund_gas(world.signer.address, -COIN + most * 200_000)
        world.chain.fund(made.payer.address, PRICE)
        other = made.payer.signs(world.now_s() + 60, nonce=2)
        world.upstream.script = [2.0]

        async def one_after_the_other() -> list[Reply | None]:
            async with asyncio.TaskGroup() as group:
                first = group.create_task(process._called(incoming(payment(made.signed))))
                await asyncio.sleep(0.5)
                second = await process._called(incoming(payment(other)))
            return [first.result(), second]

        replies = [answered(one) for one in world.run(one_after_the_other())]
        assert [one.status for one in replies] == [200, 503]
        assert world.taken() == PRICE
