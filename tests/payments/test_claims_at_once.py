"""A claim is one process's and one caller's, and who fails again and again is refused first."""

import asyncio
from pathlib import Path

import pytest

from assay.payments.model import (
    ClaimedPayment,
    Payment,
    PaymentRequired,
    Quote,
    Replay,
    StoredResponse,
)
from assay.payments.ports import PaidRequest
from assay.payments.service import FAILURES_MAX
from assay.payments.settlement import PaymentPending
from tests.payments.facilitator import said_so
from tests.payments.outside import HOME, PATH, PRICE, SOLD, incoming, payment
from tests.payments.sales import Sale, nothing, sale
from tests.payments.service import ADDRESS, Process
from tests.payments.world import Terms

STORED = StoredResponse(200, (), SOLD, HOME)


def read(made: Sale, process: Process, caller: str = HOME) -> tuple[Payment, PaidRequest]:
    """The payment as one copy of the call has read it, before it is claimed."""
    target = f"/wrap/op{PATH}"
    headers = (payment(made.signed),)
    request = PaidRequest("GET", ADDRESS + target, headers, b"", caller, target=target)
    quote: Quote | None = process.pay.quote(process.match(incoming()))
    assert quote is not None
    return made.world.run(process.payment_service.read(quote, request)), request


def test_a_copy_that_was_read_before_the_first_was_claimed_waits_and_is_handed_the_same(
    folder: Path,
) -> None:
    with sale(folder, Terms(), nothing) as made:
        run, process = made.world.run, made.process()
        copies = [read(made, process) for _ in range(3)]
        held = run(process.payment_service.hold(*copies[0]))
        assert isinstance(held, ClaimedPayment)
        with pytest.raises(PaymentPending):
            run(process.payment_service.hold(*copies[1]))
        run(process.payment_service.delivered(run(process.payment_service.settle(held, STORED))))
        replay = run(process.payment_service.hold(*copies[2]))
        assert isinstance(replay, Replay)
        assert replay.stored.body == SOLD
        assert made.world.taken() == PRICE


def test_a_thief_that_was_quick_is_refused_what_the_buyer_has_claimed(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        run, process = made.world.run, made.process()
        buyer, thief = read(made, process), read(made, process, "198.51.100.9")
        held = run(process.payment_service.hold(*buyer))
        assert isinstance(held, ClaimedPayment)
        run(process.payment_service.settle(held, STORED))
        with pytest.raises(PaymentRequired) as refused:
            run(process.payment_service.hold(*thief))
        assert refused.value.extras["reason"] == "invalid_exact_evm_nonce_already_used"


def test_of_two_processes_that_claim_at_once_one_has_it(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        first, second = made.process(), made.process()
        asked = [(one, *read(made, one)) for one in (first, second)]

        async def both() -> list[object]:
            claims = [one.payment_service.hold(paying, request) for one, paying, request in asked]
            return await asyncio.gather(*claims, return_exceptions=True)  # noqa: TID251

        kinds = {type(one) for one in made.world.run(both())}
        assert kinds == {ClaimedPayment, PaymentPending}
        (row,) = made.world.rows()
        assert row.nonce == made.signed.nonce


def test_a_payer_whose_settlements_fail_again_and_again_is_refused_for_an_hour(
    folder: Path,
) -> None:
    with sale(folder, Terms(has_facilitator=True), nothing) as made:
        process, world = made.process(), made.world
        refusal = {"success": False, "errorReason": "insufficient_funds"}
        world.facilitator.script = lambda path, _: said_so(refusal) if path == "/settle" else None
        for nonce in range(2, FAILURES_MAX + 2):
            one = payment(made.payer.signs(world.now_s() + 60, nonce=nonce))
            failed = process.call(incoming(one))
            assert failed is not None
            assert (failed.status, failed.reason) == (402, "insufficient_funds")
        worked = len(world.upstream.keys)
        reply = made.show(process)
        assert reply is not None
        assert (reply.status, reply.reason) == (402, "too_many_failed_settlements")
        assert len(world.upstream.keys) == worked
        world.facilitator.script = lambda _path, _body: None
        world.wait(3700)
        later = payment(made.payer.signs(world.now_s() + 60, nonce=99))
        served = process.call(incoming(later))
        assert served is not None
        assert served.status == 200


def test_an_overtaken_claim_says_nothing_of_who_overtook_it(folder: Path) -> None:
    """Its process was so slow that another one has claimed, and served, what it had verified."""
    with sale(folder, Terms(), nothing) as made:
        run = made.world.run
        slow, quick = made.process(), made.process()
        held = run(slow.payment_service.hold(*read(made, slow)))
        assert isinstance(held, ClaimedPayment)
        made.world.wait(20)
        made.is_served_and_paid_once(made.comes_again(quick))
        with pytest.raises(PaymentPending):
            run(slow.payment_service.settle(held, STORED))
        run(slow.payment_service.release(held, "upstream 500"))
        assert made.world.taken() == PRICE
        assert made.world.row().has_paid
