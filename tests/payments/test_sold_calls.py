"""A paid call from end to end: what is charged, to whom it is handed out, and what it carries."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.http1.model import UpstreamFailed
from assay.payments.model import PaymentState
from tests.payments.outside import PATH, PRICE, SOLD, FakeReply, incoming, payment
from tests.payments.sales import PAID, nothing, sale
from tests.payments.service import ADDRESS, Reply
from tests.payments.world import Terms

ELSEWHERE = "198.51.100.9"
TOKEN = "token-of-the-402-0123456789"
BEFORE = Terms("before")
LATER = timedelta(hours=1)


def answered(reply: Reply | None) -> Reply:
    assert reply is not None
    return reply


@pytest.mark.parametrize(
    ("answer", "is_sold"),
    [
        (FakeReply(200), True),
        (FakeReply(206), True),
        (FakeReply(302, ((b"location", b"https://elsewhere.example/file"),)), True),
        (FakeReply(302, ((b"location", f"{ADDRESS}/wrap/op/other".encode()),)), False),
        (FakeReply(302, ((b"location", b"/login"),)), False),
        (FakeReply(304), False),
        (FakeReply(404), False),
        (FakeReply(402), False),
        (FakeReply(500), False),
        (FakeReply(200, content=b"x" * (2**20 + 1)), False),
        (UpstreamFailed("It broke off."), False),
        (9.0, False),
    ],
)
@pytest.mark.parametrize("settle", ["after", "before"])
def test_charged_is_what_was_served_and_what_was_not_is_served_without_paying_again(
    folder: Path, settle: str, answer: Any, *, is_sold: bool
) -> None:
    with sale(folder, Terms(settle), nothing) as made:
        process = made.process()
        made.world.upstream.script = [answer]
        reply = answered(made.show(process))
        is_paid = is_sold or settle == "before"
        assert (made.world.taken() == PRICE) is is_paid
        assert made.world.row().state in (PAID if is_paid else {PaymentState.RELEASED})
        assert (b"payment-response" in reply.headers) is is_paid
        made.world.upstream.script.clear()
        if not is_sold:
            made.is_served_and_paid_once(made.comes_again(process))
        made.ends(process)
        made.books_agree(process)


@pytest.mark.parametrize(
    ("sent", "kept"), [(b"public, max-age=60", b"private"), (b"no-store", b"private, no-store")]
)
def test_what_was_bought_is_for_no_shared_cache(folder: Path, sent: bytes, kept: bytes) -> None:
    headers = ((b"cache-control", sent), (b"age", b"1"), (b"expires", b"0"))
    with sale(folder, Terms(), nothing) as made:
        made.world.upstream.script = [FakeReply(200, headers)]
        reply = answered(made.show(made.process()))
        assert reply.headers[b"cache-control"] == kept
        assert not {b"age", b"expires"} & set(reply.headers)


def test_what_was_bought_is_kept_and_the_same_for_its_buyer_alone(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        first = made.comes_again(process)
        made.world.upstream.script = [FakeReply(200, content=b"another")]
        assert made.show(made.process()) == first
        made.steal(process)
        assert len(made.world.upstream.keys) == 1


@pytest.mark.parametrize("version", [1, 2])
def test_both_versions_pay(folder: Path, version: int) -> None:
    with sale(folder, Terms(), nothing) as made:
        paying = payment(made.signed, version=version)
        reply = answered(made.process().call(incoming(paying)))
        made.is_served_and_paid_once(reply)


def test_its_buyer_comes_from_elsewhere_with_the_token_of_the_402_or_a_session(
    folder: Path,
) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        assert answered(process.call(incoming(payment(made.signed, token=TOKEN)))).status == 200
        with_token = incoming(payment(made.signed, token=TOKEN), client=ELSEWHERE)
        assert answered(process.call(with_token)).body == SOLD
        other = incoming(payment(made.signed, token=TOKEN + "x"), client=ELSEWHERE)
        assert answered(process.call(other)).status == 402
        process.identity.speaker = made.payer.address
        assert answered(process.call(other)).body == SOLD


@pytest.mark.parametrize(
    "other",
    [{"query": "a=1"}, {"path": PATH + "/more"}, {"method": "POST"}, {"content": b"another body"}],
)
def test_a_payment_buys_the_request_it_was_sent_with(folder: Path, other: dict[str, Any]) -> None:
    with sale(folder, Terms(), nothing) as made:
        made.world.change_terms(path="/*", method="*")
        process = made.process()
        made.comes_again(process)
        reply = answered(process.call(incoming(payment(made.signed), **other)))
        assert reply.status == 402
        assert len(made.world.upstream.keys) == 1


def test_of_two_copies_of_a_call_one_is_forwarded(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        made.world.upstream.script = [1.0]

        async def both() -> list[Reply | None]:
            calls = [process._called(incoming(payment(made.signed))) for _ in range(2)]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(call) for call in calls]
            return [task.result() for task in tasks]

        first, second = made.world.run(both())
        assert {answered(first).status, answered(second).status} == {200, 503}
        assert len(made.world.upstream.keys) == 1
        made.is_served_and_paid_once(made.comes_again(process))


def test_what_was_delivered_and_forgotten_buys_nothing_more(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        made.comes_again(process)
        made.world.run(process.ledger.purge_stored(made.world.clock.now() + LATER))
        assert answered(made.show(process)).status == 402
        assert made.world.row().state is PaymentState.DELIVERED


def test_what_settled_and_was_never_served_is_served_however_late(folder: Path) -> None:
    with sale(folder, BEFORE, nothing) as made:
        process = made.process()
        made.world.upstream.script = [FakeReply(500)]
        failed = answered(made.show(process))
        assert (failed.status, failed.code) == (502, "wrapper_request_failed")
        made.ends(process)
        made.ends(process)
        made.is_served_and_paid_once(answered(made.show(process)))


def test_what_was_paid_for_at_a_wrapper_that_is_gone_is_told_with_its_receipt(folder: Path) -> None:
    with sale(folder, BEFORE, nothing) as made:
        process = made.process()
        made.world.upstream.script = [FakeReply(500)]
        made.show(process)
        made.world.wrappers.past = [
            replace(one, config=replace(one.config, target_url=""))
            for one in made.world.wrappers.past
        ]
        made.world.change_terms(active=False)
        reply = answered(made.show(process))
        assert (reply.status, reply.code) == (404, "wrapper_not_found")
        assert b"payment-response" in reply.headers
        assert made.world.row().state is PaymentState.SETTLED


def test_a_payer_without_money_is_refused_before_anything_is_asked_of_the_seller(
    folder: Path,
) -> None:
    with sale(folder, Terms(), nothing) as made:
        made.world.chain.fund(made.payer.address, -1)
        reply = answered(made.show(made.process()))
        assert (reply.status, reply.reason) == (402, "insufficient_funds")
        assert made.world.upstream.keys == []


def test_money_for_one_call_pays_for_one_of_two_at_once(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        made.world.upstream.script = [1.0, 1.0]
        other = made.payer.signs(made.world.now_s() + 120, nonce=2)

        async def both() -> list[Reply | None]:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(process._called(incoming(payment(one))))
                    for one in (made.signed, other)
                ]
            return [task.result() for task in tasks]

        replies = [answered(one) for one in made.world.run(both())]
        assert sorted(one.status for one in replies) == [200, 402]
        assert made.world.taken() == PRICE
        assert len(made.world.upstream.keys) == 1


def test_a_sale_is_recorded_once_with_what_it_cost(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        made.comes_again(process)
        made.show(process)
        bought, replayed = process.recorded
        assert (bought.cost, bought.is_sale, bought.kind.payer) == (PRICE, True, made.payer.address)
        assert (replayed.cost, replayed.is_sale, replayed.outcome) == (0, False, "replayed")
