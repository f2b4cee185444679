"""Stock clients pay unmodified wrappers on a local chain; balances are read before and after."""

import base64
import json
from collections.abc import Iterator

import httpx
import pytest
import requests
from eth_account import Account
from x402 import x402Client, x402ClientSync
from x402.http.clients.httpx import x402HttpxClient
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm.exact import ExactEvmScheme
from x402.mechanisms.evm.signers import EthAccountSigner

from assay.payments.networks import ROWS
from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS
from tests.support import node
from tests.support.shop import (
    PLATFORM,
    SELLER,
    Dollars,
    Shop,
    dollars_on,
    encoded,
    shop,
    upstream,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
PAYER = ACCOUNTS[20]
CENT = 10_000
LISTED = "what it was sent"
"""A wrapper with a description has the extension `bazaar`, which stock clients repeat."""


@pytest.fixture(scope="module")
def store(
    dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, str]]:
    dollar_chain.mint(PAYER.address, 10**9)
    with upstream() as up, shop(tmp_path_factory.mktemp("shop"), dollar_chain, up) as made:
        yield made, made.wrap("/echo", method="*", description=LISTED)


@pytest.fixture(scope="module", params=["eip155:84532", "eip155:8453"])
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, str]]:
    """A shop on a chain of its own, of either network."""
    with (
        dollars_on(request.param) as chain,
        upstream() as up,
        shop(tmp_path_factory.mktemp("shop"), chain, up) as made,
    ):
        chain.mint(PAYER.address, 10**9)
        yield made, made.wrap("/echo", method="*", description=LISTED)


async def test_the_x402_client_for_httpx_pays(either: tuple[Shop, str]) -> None:
    made, url = either
    before = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    client = x402Client()
    client.register("eip155:*", ExactEvmScheme(EthAccountSigner(Account.from_key(PAYER.key))))
    async with x402HttpxClient(client) as http:
        answer = await http.get(url)
    assert answer.status_code == 200, answer.text
    assert "payment-response" in answer.headers
    after = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    assert (after[0] - before[0], before[1] - after[1]) == (CENT, CENT)


def test_the_x402_client_for_requests_pays(either: tuple[Shop, str]) -> None:
    made, url = either
    before = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    client = x402ClientSync()
    client.register("eip155:*", ExactEvmScheme(EthAccountSigner(Account.from_key(PAYER.key))))
    with x402_requests(client) as http:
        answer = http.post(url, json={"hello": "world"})
    assert answer.status_code == 200, answer.text
    after = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    assert (after[0] - before[0], before[1] - after[1]) == (CENT, CENT)
    assert made.upstream.seen[-1].body == b'{"hello": "world"}'


@pytest.mark.parametrize("client", ["x402_fetch_v2.mjs", "x402_fetch_v1.mjs"])
def test_the_x402_clients_for_fetch_pay(either: tuple[Shop, str], client: str) -> None:
    made, url = either
    before = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    answer = node.run(client, {"url": url, "method": "GET", "privateKey": PAYER.key})
    assert answer.status == 200, answer
    assert {"payment-response", "x-payment-response"} <= answer.headers.keys()
    after = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    assert (after[0] - before[0], before[1] - after[1]) == (CENT, CENT)


def test_a_client_that_cannot_pay_reads_how(store: tuple[Shop, str]) -> None:
    _, url = store
    assert requests.get(url, timeout=10).json()["code"] == "payment_required"
    assert httpx.get(url).json()["accepts"][0]["network"] == "base-sepolia"


def test_a_wrapper_without_a_wallet_pays_the_services_own(store: tuple[Shop, str]) -> None:
    made, _ = store
    url = made.wrap("/echo/platform", payoutAddress=None)
    before = made.chain.balance(PLATFORM.address)
    assert made.pay(url, made.payment(url, PAYER)).status_code == 200
    assert made.chain.balance(PLATFORM.address) - before == CENT


def test_either_network_is_paid_by_both_versions(either: tuple[Shop, str]) -> None:
    """Base's dollar has another signing name than its test network's."""
    made, url = either
    row = next(row for row in ROWS if row.id == made.chain.network)
    accepted = made.demand(url)["accepts"][0]
    name = "USD Coin" if row.id == "eip155:8453" else "USDC"
    assert accepted["extra"] | {"token": ""} == {"name": name, "version": "2", "token": ""}
    before = made.chain.balance(SELLER.address)
    for version in (1, 2):
        payload = dollars.authorize(PAYER.key, accepted, row.chain_id)
        head = {"accepted": accepted} if version == 2 else {"scheme": "exact"}
        named = {} if version == 2 else {"network": row.short_name}
        payment = {"x402Version": version, **head, **named, "payload": payload}
        answer = made.http.get(url, headers={"x-payment": encoded(payment)})
        assert answer.status_code == 200, answer.text
        told = json.loads(base64.b64decode(answer.headers["x-payment-response"]))
        assert told["network"] == (row.short_name if version == 1 else row.id)
    assert made.chain.balance(SELLER.address) - before == 2 * CENT
