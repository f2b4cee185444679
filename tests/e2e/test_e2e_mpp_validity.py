"""MPP: nothing is forwarded for a transaction that would be over first; every endpoint is used."""

import asyncio
import json
import time
from collections.abc import Iterator

import httpx2
import pytest

from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_mpp_clients import pay
from tests.e2e.test_e2e_mpp_fees import credential, give
from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.cases import first_then_slow
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.tempo import Tempo
from tests.support.tempo_shop import CENT, SELLER, TempoShop, opened

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def second(tempo: Tempo) -> Iterator[NodeProxy]:
    with node_proxy(tempo.url) as made:
        yield made


@pytest.fixture(scope="module")
def store(
    tempo: Tempo, second: NodeProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TempoShop]:
    """Its first endpoint answers nobody."""
    rpc = json.dumps({tempo.network: [NOWHERE, second.url]})
    with opened(tempo, tmp_path_factory.mktemp("mpp"), ASSAY_PAYMENT_RPC=rpc) as shop:
        yield shop


@pytest.fixture
def payer(store: TempoShop) -> LocalAccount:
    account = fresh_account()
    give(store, account, 10**6)
    return account


def send(url: str, header: str) -> httpx2.Response:
    return httpx2.get(url, headers={"authorization": header}, timeout=40, trust_env=False)


async def test_a_payment_is_taken_while_the_first_endpoint_is_down(store: TempoShop) -> None:
    url = store.wrap("/echo/second")
    before = store.tempo.balance(SELLER)
    status, headers = await pay(url, store.tempo)
    assert status == 200
    assert "payment-receipt" in headers
    assert store.tempo.balance(SELLER) == before + CENT


@pytest.mark.parametrize("valid_s", first_then_slow([3, 11]))
async def test_a_transaction_that_ends_before_the_upstreams_time_is_refused_before_it_runs(
    store: TempoShop, payer: LocalAccount, valid_s: int
) -> None:
    path = f"/echo/brief{valid_s}"
    url = store.wrap(path)
    header, _ = await credential(store, url, payer, valid_before=int(time.time()) + valid_s)
    answer = send(url, header)
    assert (answer.status_code, answer.json()["reason"]) == (402, "payment-expired"), answer.text
    assert "www-authenticate" in answer.headers
    assert store.up.calls(path) == 0


@pytest.mark.parametrize("valid_s", first_then_slow([None, 7200]))
async def test_one_that_could_be_mined_after_its_payment_has_failed_is_refused(
    store: TempoShop, payer: LocalAccount, valid_s: int | None
) -> None:
    path = f"/echo/endless{valid_s}"
    url = store.wrap(path)
    before = None if valid_s is None else int(time.time()) + valid_s
    header, _ = await credential(store, url, payer, valid_before=before)
    answer = send(url, header)
    assert (answer.status_code, answer.json()["reason"]) == (402, "verification-failed")
    assert "valid_before" in answer.json()["message"]
    assert store.up.calls(path) == 0


async def test_one_that_is_not_valid_yet_is_refused_before_the_upstream_runs(
    store: TempoShop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/early")
    header, _ = await credential(store, url, payer, valid_after=int(time.time()) + 20)
    answer = send(url, header)
    assert (answer.status_code, answer.json()["reason"]) == (402, "verification-failed")
    assert store.up.calls("/echo/early") == 0


@pytest.mark.slow
async def test_the_upstream_is_given_up_while_its_payment_can_still_be_taken(
    store: TempoShop, payer: LocalAccount
) -> None:
    """It would else have worked for a payment that cannot be settled any more."""
    url = store.wrap("/held/slow")
    before = store.tempo.balance(SELLER)
    header, _ = await credential(store, url, payer, valid_before=int(time.time()) + 20)
    answer = send(url, header)
    assert (answer.status_code, answer.json()["code"]) == (502, "wrapper_request_failed")
    assert "was not whole after" in answer.json()["message"]
    assert "pay that" in answer.json()["message"]  # the same payment would be refused
    assert store.tempo.balance(SELLER) == before


@pytest.mark.slow
async def test_payers_whose_payments_cut_calls_short_are_refused_after_five(
    store: TempoShop, payer: LocalAccount
) -> None:
    """The upstream would else work for nothing, for ever."""
    url = store.wrap("/held/cut")
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            header, _ = await credential(store, url, payer, valid_before=int(time.time()) + 20)
            group.create_task(asyncio.to_thread(send, url, header))
    header, _ = await credential(store, url, payer, valid_before=int(time.time()) + 20)
    answer = send(url, header)
    found = answer.status_code, answer.json()["reason"]
    assert found == (402, "too_many_failed_settlements"), answer.text
    assert store.up.calls("/held/cut") == 5
