"""Killed at every step of an MPP payment: nobody loses money, nobody pays twice (row 14).

The platform is paid its fee beside the seller: both are, or neither.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.e2e.test_e2e_crash_matrix import Stage, after, at_upstream, before
from tests.e2e.test_e2e_mpp_splits import FEE, SETTINGS, balances, grown
from tests.support.node_proxy import node_proxy
from tests.support.shop import free_port, until_known
from tests.support.tempo import Tempo
from tests.support.tempo_shop import CENT, TempoShop, credential_parts, header_of, opened, signed

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

IN_SHORT = "settling, sent and mined"


@pytest.fixture(scope="module")
def mall(
    tempo: Tempo, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TempoShop, Stage]]:
    folder = tmp_path_factory.mktemp("mpp-crash")
    settings = {**SETTINGS, "ASSAY_SETTLEMENT_LEASE_S": "1", "ASSAY_SETTLEMENT_S": "3"}
    with (
        node_proxy(tempo.url) as proxy,
        opened(tempo, folder, rpc_url=proxy.url, port=free_port(), **settings) as store,
    ):
        yield store, Stage(store.shop, proxy, folder)


@pytest.mark.slow
@pytest.mark.parametrize("settle", ["after", "before"])
@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_at_any_step_loses_no_money(
    mall: tuple[TempoShop, Stage], point: str, settle: str
) -> None:
    await killed(mall, point, settle, ROUNDS, low_ids=False)


@pytest.mark.parametrize(
    "point", [p if p == IN_SHORT else pytest.param(p, marks=pytest.mark.slow) for p in POINTS]
)
async def test_a_kill_loses_no_money_of_a_transaction_with_recovery_ids_from_zero(
    mall: tuple[TempoShop, Stage], point: str
) -> None:
    """It is mined under the hash that it has with 27 and 28."""
    await killed(mall, point, "after", 1, low_ids=True)


async def killed(
    mall: tuple[TempoShop, Stage], point: str, settle: str, rounds: int, *, low_ids: bool
) -> None:
    store, stage = mall
    path = f"/echo/mpp/{settle}/{low_ids:d}/{point.replace(', ', '-').replace(' ', '-')}"
    url = store.wrap(path, settle=settle, timeoutMs=1000)
    for _ in range(rounds):
        header = await signed(url, store.tempo)
        header = from_zero(header) if low_ids else header
        had, calls, kills = balances(store), store.up.calls(path), stage.kills
        POINTS[point](stage, path)
        with contextlib.suppress(httpx2.HTTPError):
            pay(store, url, header)
        stage.proxy.before = stage.proxy.after = store.up.before = ignored
        assert stage.kills == kills + 1
        assert grown(store, had) in {(0, 0), (CENT - FEE, FEE)}
        stage.start_again()
        again = until_known(lambda: pay(store, url, header))  # noqa: B023
        assert again.status_code == 200, again.text
        assert "payment-receipt" in again.headers
        assert grown(store, had) == (CENT - FEE, FEE)  # once, whatever happened before
        assert pay(store, url, header).content == again.content
        assert store.up.calls(path) - calls <= 2


def from_zero(header: str) -> str:
    """The same transaction, its recovery id one of 0 and 1."""
    parts = credential_parts(header)
    raw = bytes.fromhex(parts["payload"]["signature"][2:])
    assert raw[-1] in {27, 28}
    parts["payload"]["signature"] = "0x" + (raw[:-1] + bytes([raw[-1] - 27])).hex()
    return header_of(parts)


def pay(store: TempoShop, url: str, header: str) -> httpx2.Response:
    return store.shop.http.get(url, headers={"authorization": header})


def ignored(_what: Any) -> None:
    """Nothing is done about it."""
