"""What is asked for a call, and which payments answer it: those of now, and of a while ago."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assay.payments.model import PaymentState
from assay.payments.ports import PaidRequest
from assay.payments.settlement import PaymentPending
from assay.payments.x402.codec import encoded
from tests.payments.outside import HOME, PATH, PAYEE, PRICE, Payer, incoming, payment
from tests.payments.sales import ELSEWHERE, Sale, nothing, sale
from tests.payments.service import ADDRESS, Process, Reply
from tests.payments.world import Terms

Paying = Callable[[Sale], tuple[bytes, bytes]]


def answered(reply: Reply | None) -> Reply:
    assert reply is not None
    return reply


def asked(reply: Reply) -> Any:
    """The requirement in a 402."""
    return json.loads(base64.b64decode(reply.headers[b"payment-required"]))["accepts"][0]


def changed(made: Sale, **fields: Any) -> tuple[bytes, bytes]:
    """The payment's header with other members on top."""
    name, value = payment(made.signed)
    return name, encoded({**json.loads(base64.b64decode(value)), **fields})


def accepted(made: Sale, **fields: Any) -> tuple[bytes, bytes]:
    _, value = payment(made.signed)
    known = json.loads(base64.b64decode(value))["accepted"]
    return changed(made, accepted={**known, **fields})


def signed_by_another(made: Sale) -> tuple[bytes, bytes]:
    other = Payer("0x" + "0d" * 32).signs(made.world.now_s() + 60)
    return payment(replace(made.signed, signature=other.signature))


def signed(made: Sale, ends_s: float = 60, **fields: Any) -> tuple[bytes, bytes]:
    return payment(made.payer.signs(made.world.now_s() + ends_s, **fields))


def by_the_payee(made: Sale) -> tuple[bytes, bytes]:
    return payment(made.payer.signs(made.world.now_s() + 60, to=made.payer.address))


_INVALID = "invalid_exact_evm_payload_"
REFUSED: Mapping[str, tuple[Paying, str]] = {
    "malformed": (lambda _: (b"payment-signature", b"no base64"), "invalid_payload"),
    "no version": (lambda m: changed(m, x402Version=3), "invalid_x402_version"),
    "scheme": (lambda m: accepted(m, scheme="upto"), "unsupported_scheme"),
    "network": (lambda m: accepted(m, network="eip155:1"), "invalid_network"),
    "amount": (lambda m: accepted(m, amount="1"), "invalid_payment_requirements"),
    "asset": (lambda m: accepted(m, asset=7), "invalid_payment_requirements"),
    "resource": (
        lambda m: changed(m, resource={"url": "https://elsewhere.test/"}),
        "invalid_payment_requirements",
    ),
    "no URL": (lambda m: changed(m, resource={"url": 7}), "invalid_payment_requirements"),
    "signer": (signed_by_another, f"{_INVALID}signature"),
    "payee": (
        lambda m: payment(replace(m.signed, to=ELSEWHERE)),
        "invalid_payment_requirements",
    ),
    "value": (
        lambda m: accepted(replace_signed(m, value=PRICE + 1), amount=str(PRICE)),
        f"{_INVALID}authorization_value_mismatch",
    ),
    "recipient": (
        lambda m: accepted(replace_signed(m, to=ELSEWHERE), payTo=PAYEE),
        f"{_INVALID}recipient_mismatch",
    ),
    "too early": (
        lambda m: payment(replace(m.signed, valid_after=int(m.world.now_s()) + 50)),
        f"{_INVALID}signature",
    ),
    "too short": (lambda m: signed(m, 5), f"{_INVALID}authorization_valid_before"),
    "too long": (lambda m: signed(m, 4000), f"{_INVALID}authorization_valid_before"),
}


def replace_signed(made: Sale, **fields: Any) -> Sale:
    made.signed = made.payer.signs(made.world.now_s() + 60, **fields)
    return made


@pytest.mark.parametrize("what", REFUSED)
def test_a_payment_that_does_not_pay_is_refused_with_its_reason_and_leaves_no_row(
    folder: Path, what: str
) -> None:
    paying, reason = REFUSED[what]
    with sale(folder, Terms(), nothing) as made:
        reply = answered(made.process().call(incoming(paying(made))))
        assert (reply.status, reply.reason) == (402, reason)
        assert made.world.rows() == []
        assert made.world.upstream.keys == []
        assert asked(reply)["amount"] == str(PRICE)


def test_a_payment_to_the_payer_is_none(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        made.world.change_terms(payout_address=made.payer.address)
        reply = answered(made.process().call(incoming(by_the_payee(made))))
        assert (reply.status, reply.reason) == (402, f"{_INVALID}recipient_mismatch")


def test_two_payments_of_a_name_are_none(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        one = payment(made.signed)
        reply = answered(made.process().call(incoming(one, one)))
        assert (reply.status, reply.reason) == (402, "invalid_payload")


def test_a_call_without_payment_is_told_its_price_and_is_not_forwarded(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        reply = answered(made.process().call(incoming()))
        assert (reply.status, asked(reply)["payTo"]) == (402, PAYEE)
        assert made.world.upstream.keys == []


def test_the_price_of_a_head_is_that_of_its_get(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        made.world.change_terms(method="*")
        reply = answered(made.process().call(incoming(method="HEAD")))
        assert reply.status == 402


def test_a_free_call_is_forwarded_and_its_payment_left_alone(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        made.world.change_terms(price=0)
        reply = answered(made.process().call(incoming(payment(made.signed))))
        assert reply.status == 200
        assert (made.world.taken(), made.world.rows()) == (0, [])


def test_a_wrapper_that_nobody_could_be_paid_for_asks_for_no_payment(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        made.world.change_terms(payout_address=None)
        reply = answered(made.process().call(incoming()))
        assert (reply.status, reply.code) == (502, "wrapper_request_failed")


def test_a_payment_of_the_terms_of_a_while_ago_is_taken_at_them(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        process.call(incoming())
        made.world.change_terms(price=2 * PRICE, payout_address=ELSEWHERE)
        assert asked(answered(process.call(incoming())))["amount"] == str(2 * PRICE)
        made.is_served_and_paid_once(answered(made.show(process)))


def test_terms_do_not_hold_longer_than_a_quote_of_theirs(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        made.world.change_terms(price=2 * PRICE)
        made.world.wait(100)
        reply = answered(process.call(incoming(signed(made, 120, nonce=2))))
        assert (reply.status, asked(reply)["amount"]) == (402, str(2 * PRICE))
        assert made.world.rows() == []


@pytest.mark.parametrize("what", ["another payee", "never in force", "too short", "free"])
def test_what_was_never_asked_for_is_not_taken(folder: Path, what: str) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        if what == "free":
            made.world.change_terms(price=0)
        made.world.change_terms(price=2 * PRICE)
        paying = {
            "another payee": lambda: signed(made, to=ELSEWHERE),
            "never in force": lambda: signed(made, value=PRICE - 1),
            "too short": lambda: signed(made, 5),
            "free": lambda: signed(made, value=0),
        }[what]()
        assert answered(process.call(incoming(paying))).status == 402
        assert made.world.rows() == []


def test_a_payment_identifier_stands_for_one_payment(folder: Path) -> None:
    named = {"payment-identifier": {"info": {"id": "pay_0123456789abcdef"}}}
    with sale(folder, Terms(), nothing) as made:
        made.world.chain.fund(made.payer.address, PRICE)
        process = made.process()
        assert answered(process.call(incoming(changed(made, extensions=named)))).status == 200
        replace_signed(made, nonce=2)
        reply = answered(process.call(incoming(changed(made, extensions=named))))
        assert (reply.status, reply.code) == (409, "conflict")
        assert made.world.taken() == PRICE


def test_an_authorisation_that_ended_while_it_was_claimed_is_pending_and_no_refusal(
    folder: Path,
) -> None:
    """Two copies of one call: the second is read when the first's payment has just ended."""
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        quote = quote_of(process)
        request = request_of(made)
        payment_ = made.world.run(process.payment_service.read(quote, request))
        made.world.run(process.payment_service.hold(payment_, request))
        made.world.wait(110)
        row = made.world.row()
        assert row.state is PaymentState.CLAIMED
        lease = made.world.clock.now() + timedelta(minutes=1)
        made.world.run(process.ledger.move(row, PaymentState.CLAIMED, lease_until=lease))
        with pytest.raises(PaymentPending):
            made.world.run(process.payment_service.read(quote, request))


def quote_of(process: Process) -> Any:
    matched = process.match(incoming())
    found = process.pay.quote(matched)
    assert found is not None
    return found


def request_of(made: Sale) -> PaidRequest:
    headers = (payment(made.signed),)
    target = f"/wrap/op{PATH}"
    return PaidRequest("GET", ADDRESS + target, headers, b"", HOME, target=target)


def test_a_payment_presented_to_another_protocol_is_a_mistake_of_ours(folder: Path) -> None:
    with sale(folder, Terms(), nothing) as made:
        process = made.process()
        request = request_of(made)
        (presented,) = made.world.run(process.payment_service.presented(request.headers))
        wrong = replace(request, presented=replace(presented, parsed=object()))
        with pytest.raises(TypeError):
            made.world.run(process.payment_service.read(quote_of(process), wrong))
