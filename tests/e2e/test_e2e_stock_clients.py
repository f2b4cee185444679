"""Stock clients pay unmodified wrappers on a local chain; balances are read before and after."""

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

from assay_demo.chain.accounts import ACCOUNTS
from tests.services import node
from tests.services.shop import SELLER, Dollars, Shop, shop, upstream

pytestmark = pytest.mark.e2e
PAYER = ACCOUNTS[20]
CENT = 10_000


@pytest.fixture(scope="module")
def store(
    dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, str]]:
    dollar_chain.mint(PAYER.address, 10**9)
    with upstream() as up, shop(tmp_path_factory.mktemp("shop"), dollar_chain, up) as made:
        yield made, made.wrap("/echo", method="*")


async def test_the_x402_client_for_httpx_pays(store: tuple[Shop, str]) -> None:
    made, url = store
    before = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    client = x402Client()
    client.register("eip155:*", ExactEvmScheme(EthAccountSigner(Account.from_key(PAYER.key))))
    async with x402HttpxClient(client) as http:
        answer = await http.get(url)
    assert answer.status_code == 200, answer.text
    assert "payment-response" in answer.headers
    after = made.chain.balance(SELLER.address), made.chain.balance(PAYER.address)
    assert (after[0] - before[0], before[1] - after[1]) == (CENT, CENT)


def test_the_x402_client_for_requests_pays(store: tuple[Shop, str]) -> None:
    made, url = store
    before = made.chain.balance(SELLER.address)
    client = x402ClientSync()
    client.register("eip155:*", ExactEvmScheme(EthAccountSigner(Account.from_key(PAYER.key))))
    with x402_requests(client) as http:
        answer = http.post(url, json={"hello": "world"})
    assert answer.status_code == 200, answer.text
    assert made.chain.balance(SELLER.address) - before == CENT
    assert made.upstream.seen[-1].body == b'{"hello": "world"}'


@pytest.mark.parametrize("client", ["x402_fetch_v2.mjs", "x402_fetch_v1.mjs"])
def test_the_x402_clients_for_fetch_pay(store: tuple[Shop, str], client: str) -> None:
    made, url = store
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
