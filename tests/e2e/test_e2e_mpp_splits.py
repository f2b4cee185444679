"""The platform's fee over MPP: paid beside the seller in one transaction, by stock clients."""

from collections.abc import Iterator

import pytest

from assay_demo.chain.accounts import ACCOUNTS
from tests.e2e.test_e2e_mpp_clients import pay as pay_in_python
from tests.support import node
from tests.support.tempo import KEY, MAINNET, MODERATO, running
from tests.support.tempo_shop import CENT, SELLER, TempoShop, opened

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
PLATFORM = ACCOUNTS[34].address.lower()
FEE = 500
SETTINGS = {"ASSAY_PAYOUT_ADDRESS": PLATFORM, "ASSAY_FEE_RATE": "0.05"}


@pytest.fixture(scope="module", params=[MODERATO, MAINNET])
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TempoShop]:
    """A shop on a chain of its own, of either network.

    Both payees have something before: what their first balances cost, the local node leaves out of
    its estimate, and the first transaction of a stock client would run out of gas.
    """
    folder = tmp_path_factory.mktemp("splits")
    with running(request.param) as chain, opened(chain, folder, **SETTINGS) as shop:
        for payee in (SELLER, PLATFORM):
            chain.set_balance(payee, 1)
        yield shop


def balances(store: TempoShop) -> tuple[int, int]:
    """The seller's and the platform's."""
    return store.tempo.balance(SELLER), store.tempo.balance(PLATFORM)


def grown(store: TempoShop, before: tuple[int, int]) -> tuple[int, int]:
    seller, platform = balances(store)
    return seller - before[0], platform - before[1]


async def test_the_python_client_pays_seller_and_platform(either: TempoShop) -> None:
    url, before = either.wrap("/echo/python"), balances(either)
    status, headers = await pay_in_python(url, either.tempo)
    assert status == 200
    assert "payment-receipt" in headers
    assert grown(either, before) == (CENT - FEE, FEE)


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_the_javascript_client_pays_seller_and_platform(either: TempoShop, mode: str) -> None:
    path = f"/echo/{mode}"
    url, before = either.wrap(path), balances(either)
    asked = {"url": url, "method": "GET", "privateKey": KEY, "rpcUrl": either.tempo.url}
    answer = node.run("mppx_client.mjs", {**asked, "mode": mode, "chainId": either.tempo.chain_id})
    assert answer.status == 200, answer
    assert "payment-receipt" in answer.headers
    assert grown(either, before) == (CENT - FEE, FEE)
    assert either.up.calls(path) == 1
