"""A quote holds for its life, whatever its wrapper asks for meanwhile; nothing else ever does.

No chain answers here: a payment whose terms are accepted gets as far as asking it, and is answered
503 `payments_unavailable`; every other one is a 402 before that.
"""

import base64
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.payments.networks import ROWS
from assay.payments.ports import Authorization
from assay.payments.x402.codec import credential_of
from assay.payments.x402.eip3009 import sign_authorization
from tests.support.live_service import OWNER_KEY, TestService, address, refused, start_test_service

NETWORKS = {row.id: row for row in ROWS}
NOBODY = ["http://127.0.0.1:9"]
ONE, TWO = "0x" + "5e" * 20, "0x" + "6f" * 20
LIFE_S = 15 + 1 + 45
"""Of a quote of a wrapper with a second's work: `maxTimeoutSeconds`."""

HEARD_S = 5
"""How long another process may go on asking for what was."""


class Seller:
    def __init__(self, service: TestService, owner: str, token: dict[str, str]) -> None:
        self.service, self.token = service, token
        self.url = f"/wrap/{owner}/quote"
        self.wrapper_id = ""

    async def sell(self, **fields: Any) -> None:
        body = {
            "path": "/quote",
            "pricePerCall": 0.01,
            "targetUrl": "http://127.0.0.1:20009",
            "paymentNetwork": "eip155:84532",
            "payoutAddress": ONE,
            "timeoutMs": 1000,
            **fields,
        }
        made = await self.service.http.post("/operator/endpoints", json=body, headers=self.token)
        assert made.status_code == 200, made.text
        self.wrapper_id = made.json()["id"]

    async def change(self, **fields: Any) -> None:
        place = f"/operator/endpoints/{self.wrapper_id}"
        answer = await self.service.http.patch(place, json=fields, headers=self.token)
        assert answer.status_code == 200, answer.text

    async def delete(self) -> None:
        place = f"/operator/endpoints/{self.wrapper_id}"
        answer = await self.service.http.delete(place, headers=self.token)
        assert answer.status_code == 200, answer.text

    async def quote(self, url: str | None = None) -> dict[str, Any]:
        answer = await self.service.http.get(url or self.url)
        assert answer.status_code == 402, answer.text
        return json.loads(base64.b64decode(answer.headers["payment-required"]))

    async def pay(
        self, payment: dict[str, Any], service: TestService | None = None
    ) -> httpx2.Response:
        header = base64.b64encode(json.dumps(payment).encode()).decode()
        http = (service or self.service).http
        return await http.get(self.url, headers={"payment-signature": header})

    def payment(self, required: dict[str, Any], **changed: Any) -> dict[str, Any]:
        """What a stock client makes of a quote; valid for long, unless that is `changed`."""
        accepted = {**required["accepts"][0], **changed}
        network = NETWORKS[accepted["network"]]
        now = int(self.service.clock.now().timestamp())
        valid_s = accepted.pop("valid_s", 3600)
        signed = sign_authorization(
            OWNER_KEY,
            Authorization(
                payer=address(OWNER_KEY),
                to=accepted["payTo"],
                value=int(accepted["amount"]),
                valid_after=0,
                valid_before=now + valid_s,
                nonce="0x" + "f3" * 32,
                signature="",
            ),
            network,
        )
        payload = credential_of(signed)
        resource = required["resource"]
        return {"x402Version": 2, "resource": resource, "accepted": accepted, "payload": payload}


@pytest.fixture
async def seller(tmp_path: Path) -> AsyncGenerator[Seller]:
    rpc = {row.id: NOBODY for row in ROWS}
    async with start_test_service(tmp_path / "data", payment_rpc=rpc, x402_clock_s=7200) as service:
        await service.operator()
        token = await service.token()
        me = (await service.http.get("/operator/me", headers=token)).json()
        yield Seller(service, me["operator"]["id"], token)


def accepted(answer: httpx2.Response) -> None:
    """As far as a payment gets without a chain: it pays, if there is the money."""
    refused(answer, 503, "payments_unavailable")


def is_refused(answer: httpx2.Response, price: str | None = None) -> None:
    """A 402 for what it costs now."""
    body = refused(answer, 402, "payment_required")
    if price is not None:
        assert body["accepts"][0]["maxAmountRequired"] == price


@pytest.mark.parametrize(
    "fields",
    [
        {"pricePerCall": 0.02},
        {"pricePerCall": 0.005},
        {"payoutAddress": TWO},
        {"paymentNetwork": "eip155:8453"},
        {"paymentProtocol": "mpp"},
        {"pricePerCall": 0.02, "payoutAddress": TWO, "paymentNetwork": "eip155:8453"},
        {"targetUrl": "http://127.0.0.1:20019"},
        {"timeoutMs": 600_000},
        {"settle": "before"},
    ],
    ids="-".join,
)
async def test_a_quote_is_taken_for_its_life_whatever_changes(
    seller: Seller, fields: dict[str, Any]
) -> None:
    await seller.sell()
    quote = await seller.quote()
    assert quote["accepts"][0]["maxTimeoutSeconds"] == LIFE_S
    payment = seller.payment(quote)
    await seller.change(**fields)
    accepted(await seller.pay(payment))
    seller.service.clock.move(LIFE_S + HEARD_S - 1)
    accepted(await seller.pay(payment))
    seller.service.clock.move(2)
    answer = await seller.pay(payment)
    if fields.keys() <= {"targetUrl", "settle", "timeoutMs"}:
        accepted(answer)  # it pays what is asked for now as well
    else:
        is_refused(answer)


async def test_a_quote_for_less_work_is_not_refused_for_the_time_of_now(seller: Seller) -> None:
    """The client signed for what it was told; the wrapper's longer time is not its own."""
    await seller.sell()
    payment = seller.payment(await seller.quote(), valid_s=LIFE_S)
    await seller.change(timeoutMs=600_000)
    accepted(await seller.pay(payment))
    seller.service.clock.move(50)  # less than that quote needed is left
    is_refused(await seller.pay(payment))


async def test_what_was_never_asked_for_is_never_taken(seller: Seller) -> None:
    await seller.sell()
    quote = await seller.quote()
    await seller.change(pricePerCall=0.02, payoutAddress=TWO)
    for changed in (
        {"amount": "9999"},
        {"amount": "20000"},  # to the payee of before
        {"payTo": TWO},  # at the price of before
        {"payTo": "0x" + "77" * 20},
        {"network": "eip155:8453", "asset": NETWORKS["eip155:8453"].asset.address},
    ):
        is_refused(await seller.pay(seller.payment(quote, **changed)), "20000")
    accepted(await seller.pay(seller.payment(quote)))
    accepted(await seller.pay(seller.payment(await seller.quote())))


async def test_a_price_that_nobody_was_asked_for_is_no_quote(seller: Seller) -> None:
    """A wrapper that does not answer asks for nothing, whatever price it has."""
    await seller.sell(pricePerCall=1)
    quote = await seller.quote()
    await seller.change(active=False, pricePerCall=0.000001)
    await seller.change(active=True, pricePerCall=1)
    is_refused(await seller.pay(seller.payment(quote, amount="1")), "1000000")
    accepted(await seller.pay(seller.payment(quote)))


async def test_many_changes_forget_no_quote(seller: Seller) -> None:
    await seller.sell()
    payment = seller.payment(await seller.quote())
    for cents in range(2, 30):
        await seller.change(pricePerCall=cents / 100)
    accepted(await seller.pay(payment))


async def test_a_quote_ends_with_its_wrapper(seller: Seller) -> None:
    """Made anew at the same path it is another one, whatever it sells: nothing was charged."""
    await seller.sell()
    payment = seller.payment(await seller.quote())
    await seller.delete()
    refused(await seller.pay(payment), 404, "wrapper_not_found")
    await seller.sell(pricePerCall=0.02)
    is_refused(await seller.pay(payment), "20000")
    await seller.delete()
    await seller.sell()  # on the same terms it is paid, as any 402 of the same terms would be
    accepted(await seller.pay(payment))


async def test_a_refusal_on_terms_of_before_asks_for_those_of_now(seller: Seller) -> None:
    await seller.sell()
    payment = seller.payment(await seller.quote())
    payment["payload"]["signature"] = "0x" + "11" * 64 + "1b"
    await seller.change(pricePerCall=0.02)
    answer = await seller.pay(payment)
    is_refused(answer, "20000")
    assert answer.json()["reason"] == "invalid_exact_evm_payload_signature"


async def test_two_processes_take_each_others_quotes(tmp_path: Path) -> None:
    """Each says its own address where none is configured, and hears of changes later."""
    rpc = {row.id: NOBODY for row in ROWS}
    folder = tmp_path / "data"
    async with (
        start_test_service(folder, payment_rpc=rpc, port=8001, x402_clock_s=7200) as one,
        start_test_service(folder, payment_rpc=rpc, port=8002, x402_clock_s=7200) as two,
    ):
        await one.operator()
        token = await one.token()
        me = (await one.http.get("/operator/me", headers=token)).json()
        seller = Seller(one, me["operator"]["id"], token)
        await seller.sell()
        old = seller.payment(await seller.quote())
        assert old["resource"]["url"].startswith("http://127.0.0.1:8001/")
        accepted(await seller.pay(old, two))
        await seller.change(pricePerCall=0.02)
        new = seller.payment(await seller.quote())
        for payment in (old, new):
            for service in (one, two):  # the second has not heard yet
                accepted(await seller.pay(payment, service))


async def test_a_payment_for_another_path_is_for_another_resource(seller: Seller) -> None:
    await seller.sell()
    quote = await seller.quote()
    for url in ("http://127.0.0.1/wrap/other/quote", "", "x", 5):
        quote["resource"]["url"] = url
        is_refused(await seller.pay(seller.payment(quote)))


@pytest.mark.parametrize("method", ["HEAD"])
async def test_a_head_tells_the_price_and_is_never_paid(seller: Seller, method: str) -> None:
    await seller.sell()
    payment = seller.payment(await seller.quote())
    header = base64.b64encode(json.dumps(payment).encode()).decode()
    for headers in ({}, {"payment-signature": header}):
        answer = await seller.service.http.request(method, seller.url, headers=headers)
        assert answer.status_code == 402
        told = json.loads(base64.b64decode(answer.headers["payment-required"]))
        assert told["accepts"][0]["amount"] == "10000"
    assert await seller.service.app.ledger.list(None, (), 10) == []
