"""MPP: what was bought, and what was asked for, outlast changes of the wrapper and our address."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.shop import free_port, until_known
from tests.support.tempo import Tempo
from tests.support.tempo_shop import CENT, SELLER, TempoShop, opened, signed

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def store(tempo: Tempo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TempoShop]:
    folder = tmp_path_factory.mktemp("mpp-bought")
    settings = {
        "ASSAY_SETTLEMENT_S": "2",
        "ASSAY_SETTLEMENT_LEASE_S": "1",
        "ASSAY_MPP_CHALLENGE_S": "29",  # a restart is within it; a local chain takes no more
    }
    with opened(tempo, folder, **settings) as shop:
        yield shop


def pay(store: TempoShop, url: str, header: str) -> httpx2.Response:
    """Wherever the service is reached now."""
    return store.shop.http.get(httpx2.URL(url).path, headers={"authorization": header})


def of_wrapper(store: TempoShop, path: str) -> str:
    rows = store.shop.http.get("/operator/endpoints", headers=dict(store.shop.token)).json()
    return "/operator/endpoints/" + next(row["id"] for row in rows if row["path"] == path)


def change(store: TempoShop, path: str, **fields: Any) -> None:
    place, token = of_wrapper(store, path), dict(store.shop.token)
    answer = store.shop.http.patch(place, json=fields, headers=token)
    assert answer.status_code == 200, answer.text


def move(store: TempoShop) -> None:
    """The same service at another port, which is its address."""
    server = store.shop.server
    server.stop()
    server.environment["ASSAY_PORT"] = str(free_port())
    server.start()
    store.shop.http.base_url = server.address
    store.shop.sign_up()


async def test_the_same_request_gets_what_it_bought_whatever_has_changed(store: TempoShop) -> None:
    path = "/echo/mpp-kept"
    url = store.wrap(path)
    header = await signed(url, store.tempo)
    before = store.tempo.balance(SELLER)
    bought = pay(store, url, header)
    assert bought.status_code == 200, bought.text
    change(store, path, pricePerCall=0.05)
    assert pay(store, url, header).content == bought.content
    move(store)
    assert pay(store, url, header).content == bought.content
    token = dict(store.shop.token)
    assert store.shop.http.delete(of_wrapper(store, path), headers=token).status_code == 200
    again = pay(store, url, header)
    assert again.content == bought.content
    assert again.headers["payment-receipt"] == bought.headers["payment-receipt"]
    assert store.up.calls(path) == 1
    assert store.tempo.balance(SELLER) - before == CENT


async def test_a_challenge_is_paid_at_its_price_and_wherever_it_was_made(store: TempoShop) -> None:
    path = "/echo/mpp-quoted"
    url = store.wrap(path, timeoutMs=1000)
    header = await signed(url, store.tempo)
    change(store, path, pricePerCall=0.05, payoutAddress="0x" + "cd" * 20, timeoutMs=60_000)
    move(store)
    before = store.tempo.balance(SELLER)
    answer = until_known(lambda: pay(store, url, header))
    assert answer.status_code == 200, answer.text
    assert store.tempo.balance(SELLER) - before == CENT
    key = [one.headers["idempotency-key"] for one in store.up.seen if one.path == path]
    assert len(key) == 1


async def test_a_challenge_of_a_deleted_wrapper_pays_for_no_other(store: TempoShop) -> None:
    path = "/echo/mpp-anew"
    url = store.wrap(path)
    header = await signed(url, store.tempo)
    token = dict(store.shop.token)
    assert store.shop.http.delete(of_wrapper(store, path), headers=token).status_code == 200
    assert pay(store, url, header).status_code == 404
    store.wrap(path)
    before = store.tempo.balance(SELLER)
    answer = pay(store, url, header)
    assert answer.status_code == 402, answer.text
    assert store.up.calls(path) == 0
    assert store.tempo.balance(SELLER) == before
