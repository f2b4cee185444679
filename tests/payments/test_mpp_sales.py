"""Sales over MPP, by the protocol's own library, over a node in memory and a real ledger."""

import base64
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from assay.common.errors import Unavailable
from assay.payments.model import (
    ClaimedPayment,
    DirectFee,
    PaymentRefused,
    PaymentRequired,
    PaymentState,
    Quote,
)
from assay.payments.mpp.protocol import PROTOCOL
from assay.payments.outcomes import SettlementAttempt, Undecided
from assay.payments.ports import PaidRequest
from assay.payments.settlement import PaymentPending
from tests.payments.boundary import Fault, ProcessKilled
from tests.payments.mpp_service import QUOTE, STORED, Service, World
from tests.payments.outside import PRICE
from tests.payments.tempo import PAYER, credential


@pytest.fixture
async def world(folder: Path) -> AsyncGenerator[World]:
    made = World(folder)
    yield made
    await made.aclose()


async def test_a_sale_is_paid_once_and_handed_out_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    assert await service.buy(header) == STORED
    assert await service.buy(header) == STORED
    assert world.taken() == PRICE
    row = await service.row()
    assert (row.state, row.payer) == (PaymentState.DELIVERED, PAYER)
    assert service.payment_service.receipt(row)
    assert service.payment_service.receipt(row, is_refusal=True) == ()


async def told(service: Service, header: str, quote: Quote = QUOTE) -> str:
    """What its payer is told: `sold`, `refused`, `later`, or nothing by a process that died."""
    try:
        assert await service.buy(header, quote) == STORED
    except PaymentRequired as refusal:
        return f"refused {refusal.extras.get('reason')}"
    except PaymentRefused as refusal:
        return f"refused {refusal.reason}"
    except Unavailable:
        return "later"
    except ProcessKilled:
        return ""
    return "sold"


async def comes_again(world: World, service: Service, header: str) -> str:
    """What the buyer is told in the end."""
    for _ in range(20):
        if (found := await told(service, header)) != "later":
            return found
        world.clock.ahead += timedelta(seconds=3)
        await service.settlement.reconcile()
    raise AssertionError("never told")


async def steps_of(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a sale asks of the database and the chain."""
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    before = len(service.boundary.steps)
    assert await told(service, header) == "sold"
    return service.boundary.steps[before:]


@pytest.mark.parametrize("kind", ["killed", "lost"])
async def test_a_sale_is_whole_wherever_it_is_cut(
    folder: Path, world: World, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    """Its transaction may end before its claim is free again: then it was never sent."""
    steps = await steps_of(world, monkeypatch)
    sent = steps.index("eth_sendRawTransactionSync")
    for step in range(len(steps)):
        for is_after in (False, True) if kind == "lost" else (True,):
            one = World(folder)
            service = await one.start()
            header = await credential(one.tempo, monkeypatch, await service.demanded())
            cut = await one.start(Fault(kind, step, is_after))
            await told(cut, header)
            assert cut.boundary.has_failed
            found = await comes_again(one, service, header)
            if found != "sold":
                assert (step, is_after) < (sent, True)
                assert found == "refused payment-expired"
                await service.settlement.reconcile(is_due_only=False)
            assert one.taken() == (PRICE if found == "sold" else 0)
            states = PaymentState.SETTLED, PaymentState.DELIVERED
            assert ((await service.row()).state in states) is (found == "sold")
            await one.aclose()


async def test_an_answer_that_nobody_waited_for_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node takes the transaction, and no answer comes: nobody is told a refusal."""
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    world.tempo.holds = True
    assert await told(service, header) == "later"
    assert (await service.row()).state is PaymentState.PENDING
    world.tempo.mine()
    assert await comes_again(world, service, header) == "sold"
    assert world.taken() == PRICE


async def test_what_the_node_does_not_take_ends_unpaid(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    world.tempo.refuses = "insufficient funds"
    found = await told(service, header)
    assert found.startswith("refused") or found == "later"
    for _ in range(8):
        world.clock.ahead += timedelta(minutes=4)
        await service.settlement.reconcile()
    row = await service.row()
    assert (row.state, world.taken()) == (PaymentState.FAILED, 0)
    assert (await told(service, header)).startswith("refused")


async def test_who_has_spent_the_money_meanwhile_gets_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    quote, request = QUOTE, request_of(header)
    payment = await service.payment_service.read(quote, await presented(service, request))
    held = await service.payment_service.hold(payment, request)
    assert isinstance(held, ClaimedPayment)
    world.tempo.balances[PAYER] = 1
    with pytest.raises((PaymentRequired, PaymentPending)):
        await service.payment_service.settle(held, STORED)
    await service.settlement.reconcile(is_due_only=False)
    assert (await service.row()).state is PaymentState.FAILED
    assert world.taken() == 0


async def test_a_payer_without_money_is_refused_before_anything_is_served(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    world.tempo.balances[PAYER] = PRICE
    assert await told(service, header) == "refused insufficient_funds"  # the fees are his as well
    assert (await service.row()).state is PaymentState.RELEASED


async def test_while_no_node_answers_nobody_is_refused_or_charged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    world.tempo.is_down = True
    assert await told(service, header) == "later"
    world.tempo.is_down = False
    assert await comes_again(world, service, header) == "sold"
    assert world.taken() == PRICE


@pytest.mark.parametrize(
    "other",
    [
        {"amount": PRICE + 1},
        {"pay_to": "0x" + "e1" * 20},
        {"path": "/wrap/op/other", "url": "https://assay.test/wrap/op/other"},
        {"wrapper_id": "other"},
        {"body": b"another body"},
    ],
)
async def test_a_credential_pays_what_its_challenge_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    found = await told(service, header, replace(QUOTE, **other))
    assert found.startswith("refused")
    assert await service.ledger.list(None, (), 10) == []


async def test_a_challenge_of_the_secret_before_is_still_paid(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await world.start(), await world.start()
    first.loader._secrets = first.loader._secrets[1:]
    header = await credential(world.tempo, monkeypatch, await first.demanded())
    assert await told(second, header) == "sold"


async def test_a_challenge_that_has_ended_is_refused_and_what_was_claimed_of_it_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    world.clock.ahead += timedelta(hours=1)
    assert await told(service, header) == "refused payment-expired"


async def test_the_platforms_part_is_paid_beside_the_seller(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fee = DirectFee("0x" + "fe" * 20, PRICE // 10)
    quote = replace(QUOTE, fee_rate=Decimal("0.1"), direct_fee=fee)
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded(quote))
    assert await told(service, header, quote) == "sold"
    assert world.taken() == PRICE - fee.amount
    assert world.tempo.balances[fee.payee] == fee.amount


@pytest.mark.parametrize("value", [b"Payment %%%", b"Payment e30", b"Bearer x", b"Payment "])
async def test_what_is_no_credential_is_refused(world: World, value: bytes) -> None:
    service = await world.start()
    headers = ((b"authorization", value),)
    assert list(await service.payment_service.presented(headers)) == []
    if PROTOCOL.is_attached(headers):
        with pytest.raises(PaymentRequired):
            await service.payment_service.read(QUOTE, replace(request_of(""), headers=headers))


async def test_a_transaction_that_is_taken_back_is_not_made_again_by_us(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the payer's own: the one that was signed is sent once more, and no other."""
    service = await world.start()
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    assert await told(service, header) == "sold"
    row = await service.row()
    world.tempo.receipts.clear()
    found = await PROTOCOL.resend(row, no_note, service.needs)
    assert isinstance(found, Undecided)
    assert row.attempt.transaction in world.tempo.receipts
    world.tempo.is_down = True
    assert isinstance(await PROTOCOL.resend(row, no_note, service.needs), Undecided)
    assert isinstance(await PROTOCOL.outcome(row, service.needs), Undecided)


async def no_note(_attempt: SettlementAttempt) -> None:
    raise AssertionError("nothing new is signed")


def request_of(header: str) -> PaidRequest:
    headers = ((b"authorization", header.encode()),)
    return PaidRequest("GET", QUOTE.url, headers, b"", "192.0.2.7", target=QUOTE.path)


async def presented(service: Service, request: PaidRequest) -> PaidRequest:
    (found,) = await service.payment_service.presented(request.headers)
    return replace(request, presented=found)


async def by_hash(world: World, service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """The credential of a payer who has sent the transaction, or is about to."""
    header = await credential(world.tempo, monkeypatch, await service.demanded())
    text = header.partition(" ")[2]
    parts = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    transaction, _ = world.tempo._sent(parts["payload"]["signature"])
    parts["payload"] = {"type": "hash", "hash": transaction}
    made = base64.urlsafe_b64encode(json.dumps(parts).encode()).rstrip(b"=").decode()
    return f"Payment {made}"


async def test_who_has_sent_the_money_is_served_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    header = await by_hash(world, service, monkeypatch)
    assert await told(service, header) == "sold"
    assert world.taken() == PRICE
    assert (await service.row()).state is PaymentState.DELIVERED


async def test_money_that_was_sent_to_nobody_of_ours_buys_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await world.start()
    world.tempo.balances[PAYER] = 1
    header = await by_hash(world, service, monkeypatch)
    assert (await told(service, header)).startswith("refused")
    assert await service.ledger.list(None, (), 10) == []
