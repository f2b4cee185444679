"""Killed at every step of an MPP payment: nobody loses money, nobody pays twice (row 14)."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.e2e.test_e2e_crash_matrix import Stage, after, at_upstream, before, until_known
from tests.services.node_proxy import node_proxy
from tests.services.shop import free_port
from tests.services.tempo import Tempo
from tests.services.tempo_shop import CENT, SELLER, TempoShop, opened, signed

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
ROUNDS = 3
SEND = "eth_sendRawTransactionSync"
POINTS: dict[str, Callable[[Stage, str], None]] = {
    "claimed, not verified": before("eth_call"),
    "claimed, verified": after("eth_call"),
    "claimed, upstream called": at_upstream,
    "settling, about to send": before(SEND),
    "settling, sent and mined": after(SEND),
}


@pytest.fixture(scope="module")
def mall(
    tempo: Tempo, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TempoShop, Stage]]:
    folder = tmp_path_factory.mktemp("mpp-crash")
    settings = {"ASSAY_SETTLEMENT_LEASE_S": "1", "ASSAY_SETTLEMENT_S": "3"}
    with (
        node_proxy(tempo.url) as proxy,
        opened(tempo, folder, rpc_url=proxy.url, port=free_port(), **settings) as store,
    ):
        yield store, Stage(store.shop, proxy, folder)


@pytest.mark.parametrize("settle", ["after", "before"])
@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_at_any_step_loses_no_money(
    mall: tuple[TempoShop, Stage], point: str, settle: str
) -> None:
    store, stage = mall
    path = f"/echo/mpp/{settle}/{point.replace(', ', '-').replace(' ', '-')}"
    url = store.wrap(path, settle=settle, timeoutMs=1000)
    for _ in range(ROUNDS):
        header = await signed(url, store.tempo)
        had, calls, kills = store.tempo.balance(SELLER), store.up.calls(path), stage.kills
        POINTS[point](stage, path)
        with contextlib.suppress(httpx2.HTTPError):
            pay(store, url, header)
        stage.proxy.before = stage.proxy.after = store.up.before = ignored
        assert stage.kills == kills + 1
        assert store.tempo.balance(SELLER) - had in {0, CENT}
        stage.start_again()
        again = until_known(lambda: pay(store, url, header))  # noqa: B023
        assert again.status_code == 200, again.text
        assert "payment-receipt" in again.headers
        assert store.tempo.balance(SELLER) - had == CENT  # once, whatever happened before
        assert pay(store, url, header).content == again.content
        assert store.up.calls(path) - calls <= 2


def pay(store: TempoShop, url: str, header: str) -> httpx2.Response:
    return store.shop.http.get(url, headers={"authorization": header})


def ignored(_what: Any) -> None:
    """Nothing is done about it."""
