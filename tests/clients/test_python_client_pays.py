"""The Python client pays: what it signs, what it declines, and that it pays a call once."""

import asyncio
import base64
import json
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from assay_client import (
    Assay,
    AsyncAssay,
    ConnectionFailed,
    InvalidInput,
    MissingExtra,
    PaidResponse,
    Payer,
    PaymentDeclined,
    PaymentRefused,
    PaymentUnresolved,
    Retries,
)
from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS
from tests.support.fake_seller import OFFER, FakeSeller, selling
from tests.support.quiet_server import QuietHandler, serving
from tests.support.shop import SELLER, Dollars, Shop, shop, upstream

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
BUYER = ACCOUNTS[21]
CENT = 10_000
PATIENT = Retries(attempts=20, wait_s=0.1, wait_s_max=5)


@pytest.fixture(scope="module")
def payer() -> Payer:
    return Payer.from_key(BUYER.key)


def bought(seller: FakeSeller, payer: Payer, **more: Any) -> PaidResponse:
    with Assay("http://127.0.0.1:9", retries=Retries(wait_s=0.01)) as assay:
        return assay.pay(seller.url, payer, **{"max_price": "0.01", **more})


@pytest.mark.parametrize(
    "changed",
    [
        {"amount": "10001"},
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": 10000},
        {"amount": "1" * 31},
        {"scheme": "upto"},
        {"network": "eip155:1"},
        {"network": "eip155:8453"},
        {"network": ["eip155:84532"]},
        {"asset": "0x" + "11" * 20},
        {"payTo": "0x" + "0" * 40},
        {"payTo": dollars.BASE_SEPOLIA_USDC},
        {"payTo": "0x1"},
        {"maxTimeoutSeconds": 3601},
        {"maxTimeoutSeconds": 0},
        {"maxTimeoutSeconds": True},
        {"extra": {**OFFER["extra"], "assetTransferMethod": "permit2"}},
        {"extra": {"name": "Permit2", "version": "2"}},
        {"extra": None},
    ],
)
def test_nothing_is_signed_for_an_offer_that_may_not_be_paid(
    payer: Payer, changed: dict[str, Any]
) -> None:
    with selling(FakeSeller({**OFFER, **changed}, None, "x")) as seller:
        with pytest.raises(PaymentDeclined):
            bought(seller, payer)
        assert (seller.calls, seller.payments) == (1, [])


def test_an_offer_that_may_be_paid_is_found_among_others(payer: Payer) -> None:
    """Other spellings of its members, which libraries read too, change nothing."""
    spelled = {**OFFER, "pay_to": "0x" + "11" * 20, "max_timeout_seconds": 10**12}
    with selling(FakeSeller({**OFFER, "amount": "999999"}, None, spelled)) as seller:
        found = bought(seller, payer)
    assert found.payment is not None
    assert (found.status, found.payment.price) == (200, Decimal("0.01"))
    assert (found.payment.pay_to, found.payment.payer) == (SELLER.address, payer.address)
    paid = json.loads(base64.b64decode(seller.payments[0]))["payload"]["authorization"]
    assert (paid["to"], paid["value"]) == (SELLER.address, "10000")
    assert len(paid["validBefore"]) == 10  # not 10**12 seconds from now


def test_the_caller_names_the_networks(payer: Payer) -> None:
    with selling(FakeSeller(OFFER)) as seller:
        with pytest.raises(PaymentDeclined):
            bought(seller, payer, networks=("eip155:8453",))
        assert seller.payments == []


@pytest.mark.parametrize("price", ["-1", "NaN", "inf", "1e999999999", "", 0.01, True, None])
def test_a_price_that_is_no_exact_amount_is_refused(payer: Payer, price: Any) -> None:
    with selling(FakeSeller(OFFER)) as seller:
        with pytest.raises(InvalidInput):
            bought(seller, payer, max_price=price)
        assert seller.calls == 0


@pytest.mark.parametrize(
    "headers", [{"Payment-Signature": "x"}, {"x": "a\r\nb"}, {"a b": "c"}, {"Host": "h"}]
)
def test_headers_that_would_change_the_call_are_refused(
    payer: Payer, headers: dict[str, str]
) -> None:
    with selling(FakeSeller(OFFER)) as seller:
        with pytest.raises(InvalidInput):
            bought(seller, payer, headers=headers)
        assert seller.calls == 0


def test_lost_responses_and_503_bring_the_same_payment_again(payer: Payer) -> None:
    with selling(FakeSeller(OFFER, answers=(0, 503, 200))) as seller:
        assert bought(seller, payer, method="POST", body=b"{}").status == 200
    assert len(seller.payments) == 3
    assert len(set(seller.payments)) == 1


def test_an_unresolved_payment_is_sent_again_and_not_signed_again(payer: Payer) -> None:
    with selling(FakeSeller(OFFER, answers=(0, 0, 0, 200))) as seller:
        with pytest.raises(PaymentUnresolved) as raised:
            bought(seller, payer)
        payment = raised.value.payment
        assert payment.header not in repr(raised.value.payment) + str(raised.value)
        with pytest.raises(InvalidInput):  # it is of a call without a body
            bought(seller, payer, payment=payment, method="POST", body=b"other")
        assert bought(seller, payer, payment=payment).status == 200
    assert set(seller.payments) == {payment.header}


@pytest.mark.parametrize("status", [500, 502, 504])
def test_after_an_answer_that_says_nothing_of_the_payment_it_is_unresolved(
    payer: Payer, status: int
) -> None:
    """A proxy in front of the service gives such answers while the payment is being settled."""
    with selling(FakeSeller(OFFER, answers=(status, 200))) as seller:
        with pytest.raises(PaymentUnresolved) as raised:
            bought(seller, payer)
        assert len(seller.payments) == 1
        assert bought(seller, payer, payment=raised.value.payment).status == 200
    assert set(seller.payments) == {raised.value.payment.header}


def test_after_an_answer_that_cannot_be_read_a_payment_is_unresolved(payer: Payer) -> None:
    seller = FakeSeller(OFFER, answers=(200, 200))
    with selling(seller), Assay("http://127.0.0.1:9", response_bytes_max=1) as assay:
        seller.unpaid_body = b""
        with pytest.raises(PaymentUnresolved, match="longer than 1 bytes"):
            assay.pay(seller.url, payer, max_price="0.01")
        assert len(seller.payments) == 1


def test_a_refused_payment_is_an_error_and_no_second_one_is_signed(payer: Payer) -> None:
    with selling(FakeSeller(OFFER, answers=(402,))) as seller:
        with pytest.raises(PaymentRefused):
            bought(seller, payer)
        assert len(seller.payments) == 1


def test_a_402_without_x402_is_declined(payer: Payer) -> None:
    for header in ("", "!", "e30=", base64.b64encode(b"[" * 30_000).decode()):
        seller = FakeSeller()

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                self.send_response(402)
                self.send_header("payment-required", header)  # noqa: B023 - used at once
                self.send_header("content-length", "0")
                self.end_headers()

        with serving(Handler) as seller.url, pytest.raises(PaymentDeclined):
            bought(seller, payer)


def test_a_key_is_never_shown_and_a_wrong_one_is_an_error() -> None:
    assert BUYER.key.removeprefix("0x") not in repr(Payer.from_key(BUYER.key))
    with pytest.raises(InvalidInput) as raised:
        Payer.from_key("0xabc")
    assert "abc" not in str(raised.value)


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "x402.mechanisms.evm.signers", None)
    with pytest.raises(MissingExtra, match=r"assay-client\[pay\]"):
        Payer.from_key(BUYER.key)


def test_a_call_that_could_not_be_made_signs_nothing(payer: Payer) -> None:
    nowhere = FakeSeller()
    nowhere.url = "http://127.0.0.1:9/paid"
    with pytest.raises(ConnectionFailed):
        bought(nowhere, payer)


@pytest.fixture(scope="module")
def store(dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    dollar_chain.mint(BUYER.address, 10**9)
    with upstream() as up, shop(tmp_path_factory.mktemp("shop"), dollar_chain, up) as made:
        yield made


@pytest.mark.slow
def test_a_wrapper_is_paid_once_and_its_receipt_is_on_the_chain(store: Shop, payer: Payer) -> None:
    url = store.wrap("/echo/once", method="*")
    before = store.chain.balance(SELLER.address), store.chain.balance(BUYER.address)
    with Assay(store.server.address, retries=PATIENT) as assay:
        found = assay.pay(
            url,
            payer,
            max_price=Decimal("0.01"),
            method="POST",
            headers={"content-type": "application/json"},
            body=b'{"hello": "world"}',
        )
        assert (found.status, found.json()["path"]) == (200, "/echo/once")
        again = assay.pay(
            url,
            payer,
            max_price="0.01",
            payment=found.payment,
            method="POST",
            body=b'{"hello": "world"}',
        )
    assert again.body == found.body
    assert again.transaction == found.transaction
    sent = store.chain.wallet.request("eth_getTransactionReceipt", found.transaction)
    assert int(sent["status"], 16) == 1
    after = store.chain.balance(SELLER.address), store.chain.balance(BUYER.address)
    assert (after[0] - before[0], before[1] - after[1]) == (CENT, CENT)
    assert store.upstream.seen[-1].body == b'{"hello": "world"}'


@pytest.mark.slow
def test_the_asynchronous_client_pays_and_a_free_call_costs_nothing(
    store: Shop, payer: Payer
) -> None:
    paid, free = store.wrap("/echo/async"), store.wrap("/echo/free", price=0)
    before = store.chain.balance(BUYER.address)

    async def buy() -> tuple[PaidResponse, PaidResponse]:
        async with AsyncAssay(store.server.address, retries=PATIENT) as assay:
            return (
                await assay.pay(paid, payer, max_price="0.01"),
                await assay.pay(free, payer, max_price="0.01"),
            )

    found, nothing = asyncio.run(buy())
    assert (found.status, nothing.status, nothing.payment) == (200, 200, None)
    assert before - store.chain.balance(BUYER.address) == CENT
    with Assay(store.server.address) as assay, pytest.raises(PaymentDeclined):
        assay.pay(store.wrap("/echo/dear", price=0.02), payer, max_price="0.01")


@pytest.mark.slow
def test_the_example_of_the_page_pays(store: Shop) -> None:
    text = (ROOT / "docs/clients.md").read_text("utf-8")
    [example] = [
        one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "pay(" in one
    ]
    names = {"ASSAY_URL": store.server.address, "PRIVATE_KEY": BUYER.key}
    before = store.chain.balance(SELLER.address)
    made: dict[str, Any] = {**names, "PAID_URL": store.wrap("/echo/example")}
    exec(example, made)  # noqa: S102 - our own page
    assert made["answer"].status == 200
    assert store.chain.balance(SELLER.address) - before == CENT
