"""The Python client pays over MPP: what it declines, and that it pays a call once."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from mpp import Challenge
from mpp.client import Expires

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
from tests.support.fake_seller import OFFER, FakeSeller, selling
from tests.support.quiet_server import QuietHandler, serving
from tests.support.tempo import KEY, MAINNET, MODERATO, PATH_USD, PAYER, Tempo
from tests.support.tempo_shop import CENT, SELLER, TempoShop, opened

pytestmark = pytest.mark.e2e
NOWHERE = "http://127.0.0.1:9/?key=hidden"
NETWORK = f"eip155:{MODERATO}"
PATIENT = Retries(attempts=20, wait_s=0.1, wait_s_max=5)
ASKED: dict[str, Any] = {
    "amount": "10000",
    "currency": PATH_USD,
    "recipient": SELLER,
    "methodDetails": {"chainId": MODERATO},
}
OTHER = "0x" + "cd" * 20


def challenge(request: dict[str, Any], **changed: Any) -> str:
    made = {"method": "tempo", "intent": "charge", "expires": Expires.seconds(25), **changed}
    return Challenge.create(
        secret_key="s" * 32, realm="shop.test", request=request, **made
    ).to_www_authenticate("shop.test")


def details(**changed: Any) -> dict[str, Any]:
    return {"methodDetails": {"chainId": MODERATO, **changed}}


def split(amount: str = "500", to: str = OTHER, **more: Any) -> dict[str, Any]:
    return {"amount": amount, "recipient": to, **more}


def payer(tempo: Tempo | None = None) -> Payer:
    return Payer.from_key(KEY, tempo_rpc_urls={NETWORK: tempo.url if tempo else NOWHERE})


def bought(seller: FakeSeller, by: Payer, **more: Any) -> PaidResponse:
    with Assay("http://127.0.0.1:9", retries=Retries(wait_s=0.01)) as assay:
        return assay.pay(seller.url, by, **{"max_price": "0.01", **more})


@pytest.mark.parametrize(
    "changed",
    [
        {"amount": "10001"},
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": 10000},
        {"amount": "1e3"},
        {"amount": "1" * 31},
        {"currency": OTHER},
        {"currency": None},
        {"recipient": "0x1"},
        {"recipient": "0x" + "0" * 40},
        {"recipient": PATH_USD},
        {"recipient": None},
        {"methodDetails": None},
        details(chainId=1),
        details(chainId=str(MODERATO)),
        details(chainId=MAINNET),
        details(feePayer=True),
        details(supportedModes=["push"]),
        details(splits=[split("10000")]),
        details(splits=[split("6000"), split("6000")]),
        details(splits=[split("-1")]),
        details(splits=[split(to="0x1")]),
        details(splits=[split(memo="0x12")]),
        details(splits=[split("1")] * 11),
        details(splits=7),
        details(splits=[7]),
    ],
)
def test_nothing_is_signed_for_a_challenge_that_may_not_be_paid(changed: dict[str, Any]) -> None:
    seller = FakeSeller()
    seller.challenge = challenge({**ASKED, **changed})
    with selling(seller):
        with pytest.raises(PaymentDeclined):
            bought(seller, payer())
        assert (seller.calls, seller.payments) == (1, [])


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "stripe"},
        {"intent": "session"},
        {"header": "Payment-Authorization"},
        {"expires": None},
    ],
)
def test_nothing_is_signed_for_another_method_or_without_an_end(changed: dict[str, Any]) -> None:
    seller = FakeSeller()
    seller.challenge = challenge(ASKED, **changed)
    with selling(seller):
        with pytest.raises(PaymentDeclined):
            bought(seller, payer())
        assert (seller.calls, seller.payments) == (1, [])


@pytest.mark.parametrize(
    "header",
    ["Payment id=", "Payment x=1, Payment", "Basic realm=x", 'Payment id="' + "x" * 60_000 + '"'],
)
def test_a_402_that_cannot_be_read_is_declined(header: str) -> None:
    seller = FakeSeller()
    seller.challenge = header
    with selling(seller), pytest.raises(PaymentDeclined):
        bought(seller, payer())


def test_a_call_with_an_authorization_of_its_own_is_not_paid_in_its_place() -> None:
    seller = FakeSeller()
    seller.challenge = challenge(ASKED)
    with selling(seller), pytest.raises(PaymentDeclined, match="Authorization"):
        bought(seller, payer(), headers={"authorization": "Bearer mine"})


def test_the_caller_names_the_networks_of_mpp_too() -> None:
    seller = FakeSeller()
    seller.challenge = challenge(ASKED)
    with selling(seller), pytest.raises(PaymentDeclined):
        bought(seller, payer(), networks=("eip155:84532", f"eip155:{MAINNET}"))


def test_without_a_node_nothing_is_signed_and_its_address_is_not_shown() -> None:
    seller = FakeSeller()
    seller.challenge = challenge(ASKED)
    with selling(seller):
        with pytest.raises(ConnectionFailed) as raised:
            bought(seller, payer())
        assert (seller.calls, raised.value.sent) == (1, False)
        assert "hidden" not in str(raised.value)


@contextmanager
def tempo_node(**answers: int) -> Iterator[str]:
    """A node that answers so; every other method with zero."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found = hex(answers.get(asked["method"], 0))
            body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as url:
        yield url


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        ({"eth_chainId": MODERATO, "eth_gasPrice": 10**10}, 1),
        ({"eth_chainId": MODERATO, "eth_gasPrice": 10**11 + 1}, 0),
        ({"eth_chainId": MODERATO, "eth_gasPrice": 10**30}, 0),
        ({"eth_chainId": MAINNET, "eth_gasPrice": 10**10}, 0),
    ],
)
def test_a_node_does_not_decide_what_is_paid(answers: dict[str, int], sent: int) -> None:
    """Nothing is sent for a high fee of the network, nor on another chain than the seller's."""
    seller = FakeSeller()
    seller.challenge = challenge(ASKED)
    with tempo_node(**answers) as url, selling(seller):
        by = Payer.from_key(KEY, tempo_rpc_urls={NETWORK: url})
        if sent:
            assert bought(seller, by).status == 200
        else:
            with pytest.raises(ConnectionFailed, match="nothing was sent"):
                bought(seller, by)
        assert len(seller.payments) == sent


def test_without_the_library_of_mpp_x402_is_paid_and_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mpp", None)
    with selling(FakeSeller(OFFER)) as seller:
        assert bought(seller, payer()).status == 200
    seller = FakeSeller()
    seller.challenge = challenge(ASKED)
    with selling(seller), pytest.raises(MissingExtra, match=r"assay-client\[mpp\]"):
        bought(seller, payer())


@pytest.mark.slow
def test_lost_responses_and_refusals_bring_the_same_payment_or_an_error(tempo: Tempo) -> None:
    """It is signed once, for the first challenge that may be paid, with its splits."""
    by, seller = payer(tempo), FakeSeller(answers=(0, 503, 200))
    dear = challenge({**ASKED, "amount": "999999"})
    parts = challenge({**ASKED, **details(splits=[split(memo="0x" + "12" * 32)], x=1)})
    seller.challenge = f"{dear}, {parts}"
    with selling(seller):
        found = bought(seller, by, method="POST", body=b"{}")
    assert len(seller.payments) == 3
    assert len(set(seller.payments)) == 1
    assert found.payment is not None
    assert (found.payment.amount, found.payment.network) == (CENT, NETWORK)
    assert (found.payment.pay_to, found.payment.payer.lower()) == (SELLER, PAYER)
    assert KEY.removeprefix("0x") not in repr(by) + repr(found)
    assert found.payment.header not in repr(found)
    seller = FakeSeller(answers=(402, 0, 0, 0))
    seller.challenge = challenge(ASKED)
    with selling(seller):
        with pytest.raises(PaymentRefused):
            bought(seller, by)
        with pytest.raises(PaymentUnresolved) as raised:
            bought(seller, by)
        with pytest.raises(InvalidInput):  # it is of a call without a body
            bought(seller, by, payment=raised.value.payment, method="POST", body=b"other")
    assert len(seller.payments) == 4
    assert set(seller.payments[1:]) == {raised.value.payment.header}


@pytest.fixture(scope="module")
def store(tempo: Tempo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TempoShop]:
    with opened(tempo, tmp_path_factory.mktemp("mpp")) as shop:
        yield shop


@pytest.mark.slow
def test_a_wrapper_is_paid_once_over_mpp_and_its_receipt_is_on_the_chain(store: TempoShop) -> None:
    url, by = store.wrap("/echo/client", method="*"), payer(store.tempo)
    before = store.tempo.balance(SELLER)
    call: dict[str, Any] = {"method": "POST", "body": b'{"hello": "world"}'}
    with Assay(store.shop.server.address, retries=PATIENT) as assay:
        found = assay.pay(url, by, max_price=Decimal("0.01"), **call)
        assert (found.status, found.json()["path"]) == (200, "/echo/client")
        again = assay.pay(url, by, max_price="0.01", payment=found.payment, **call)
    assert (again.body, again.transaction) == (found.body, found.transaction)
    mined = store.tempo.request("eth_getTransactionReceipt", found.transaction)
    assert mined["status"] == "0x1"
    assert store.tempo.balance(SELLER) - before == CENT
    assert store.up.calls("/echo/client") == 1


@pytest.mark.slow
def test_the_asynchronous_client_pays_over_mpp_and_declines_what_is_dearer(
    store: TempoShop,
) -> None:
    url, dear = store.wrap("/echo/async"), store.wrap("/echo/dear", price=0.02)
    before = store.tempo.balance(SELLER)

    async def buy() -> PaidResponse:
        async with AsyncAssay(store.shop.server.address, retries=PATIENT) as assay:
            with pytest.raises(PaymentDeclined, match=r"0\.02"):
                await assay.pay(dear, payer(store.tempo), max_price="0.01")
            return await assay.pay(url, payer(store.tempo), max_price="0.01")

    found = asyncio.run(buy())
    assert (found.status, store.tempo.balance(SELLER) - before) == (200, CENT)
    assert found.payment is not None
    assert found.payment.asset == PATH_USD
