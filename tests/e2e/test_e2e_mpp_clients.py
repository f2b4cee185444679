"""Stock MPP clients pay unmodified wrappers on a local Tempo chain."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from mpp.client import Mpp
from mpp.methods.tempo import client as tempo_client
from mpp.methods.tempo.account import TempoAccount

from tests.services import node
from tests.services.assay import served
from tests.services.shop import NO_CHAIN, Shop, Upstream, upstream
from tests.services.tempo import CHAIN_ID, KEY, Tempo

pytestmark = pytest.mark.e2e
SELLER = "0x" + "ab" * 20
CENT = 10_000


@dataclass
class TempoShop:
    shop: Shop
    up: Upstream
    tempo: Tempo

    def wrap(self, path: str, **fields: object) -> str:
        given = {"paymentProtocol": "mpp", "paymentNetwork": f"tempo:{CHAIN_ID}"}
        return self.shop.wrap(path, **{**given, "payoutAddress": SELLER, **fields})


@pytest.fixture(scope="module")
def store(tempo: Tempo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TempoShop]:
    # A local chain's transactions may be valid for 30 seconds at most: so must challenges be.
    settings = {
        "ASSAY_PAYMENT_RPC": json.dumps({f"tempo:{CHAIN_ID}": [tempo.url]}),
        "ASSAY_MPP_CHALLENGE_S": "25",
    }
    folder = tmp_path_factory.mktemp("mpp")
    with (
        upstream() as up,
        served(folder, NO_CHAIN, **settings) as server,
        httpx2.Client(base_url=server.address, timeout=40, trust_env=False) as http,
    ):
        shop = Shop(server, http, None, up)  # type: ignore[arg-type] - no dollars here
        shop.sign_up()
        yield TempoShop(shop, up, tempo)


async def pay(url: str, rpc_url: str, **request: object) -> tuple[int, dict[str, str]]:
    account = TempoAccount.from_key(KEY)
    method = tempo_client.charge(account=account, rpc_url=rpc_url, chain_id=CHAIN_ID)
    async with Mpp(methods=[method]) as client:
        answer = await client.fetch(url, **request)  # type: ignore[arg-type]
    return answer.status_code, dict(answer.headers)


async def test_the_python_client_pays(store: TempoShop) -> None:
    url = store.wrap("/echo", method="*")
    before = store.tempo.balance(SELLER)
    for turn in range(2):
        status, headers = await pay(url, store.tempo.url, method="POST", json={"turn": turn})
        assert status == 200
        receipt = json.loads(base64.urlsafe_b64decode(headers["payment-receipt"] + "=="))
        assert receipt["method"] == "tempo"
        mined = store.tempo.request("eth_getTransactionReceipt", receipt["reference"])
        assert mined["status"] == "0x1"
        assert headers["cache-control"] == "private"
    assert store.tempo.balance(SELLER) - before == 2 * CENT


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_the_javascript_client_pays(store: TempoShop, mode: str) -> None:
    url = store.wrap(f"/echo/{mode}")
    before = store.tempo.balance(SELLER)
    asked = {"url": url, "method": "GET", "privateKey": KEY, "rpcUrl": store.tempo.url}
    answer = node.run("mppx_client.mjs", {**asked, "mode": mode})
    assert answer.status == 200, answer
    assert "payment-receipt" in answer.headers
    assert store.tempo.balance(SELLER) - before == CENT
    assert store.up.calls(f"/echo/{mode}") == 1


def test_a_call_without_payment_is_told_how_to_pay(store: TempoShop) -> None:
    answer = store.shop.http.get(store.wrap("/told"))
    assert answer.status_code == 402
    assert answer.headers["www-authenticate"].startswith("Payment ")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["code"] == "payment_required"
    assert store.up.calls("/told") == 0
