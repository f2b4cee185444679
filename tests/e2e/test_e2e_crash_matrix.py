"""The process is killed at every state of the ledger: nobody loses money, nobody pays twice.

That is row 14 of the attacks and faults (payment-safety.md#attacks-and-faults), the others are in
their own file.

After each kill the server starts again on the same data, and the same request is sent again with
the very same payment. It is then served, and was paid exactly once, whatever had happened before.
"""

import contextlib
import json
import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from tests.e2e.test_e2e_payment_attacks import fresh_account, send_away
from tests.support.eventually import eventually
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import NETWORK, Dollars, Shop, free_port, receipt, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000
ROUNDS = 4
KILLS_MIN = 50
PAYER = ACCOUNTS[22]


@dataclass
class Stage:
    shop: Shop
    proxy: NodeProxy
    folder: Path
    kills: int = 0

    def kill(self) -> None:
        process = self.shop.server.process
        assert process is not None
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            self.kills += 1

    def start_again(self) -> None:
        process = self.shop.server.process
        assert process is not None
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        address = self.shop.server.address
        self.shop.server.start()
        self.shop.server.address = address


@pytest.fixture(scope="module")
def stage(dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    dollar_chain.mint(PAYER.address, 10**9)
    folder = tmp_path_factory.mktemp("crash")
    with upstream() as up, node_proxy(dollar_chain.url) as proxy:
        settings = {
            "ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]}),
            "ASSAY_SETTLEMENT_LEASE_S": "1",
            "ASSAY_SETTLEMENT_S": "3",
        }
        with shop(folder, dollar_chain, up, port=free_port(), **settings) as made:
            yield Stage(made, proxy, folder)


class Trap:
    """Kills the server the first time something happens."""

    def __init__(self, stage: Stage, what: str) -> None:
        self._stage = stage
        self._what = what
        self._sprung = False

    def __call__(self, what: str) -> None:
        if what.partition("?")[0].startswith(self._what) and not self._sprung:
            self._sprung = True
            self._stage.kill()


def at_upstream(stage: Stage, path: str) -> None:
    stage.shop.upstream.before = Trap(stage, path)


def before(method: str) -> Callable[[Stage, str], None]:
    def arm(stage: Stage, _path: str) -> None:
        stage.proxy.before = Trap(stage, method)

    return arm


def after(method: str) -> Callable[[Stage, str], None]:
    def arm(stage: Stage, _path: str) -> None:
        stage.proxy.after = Trap(stage, method)

    return arm


POINTS: dict[str, Callable[[Stage, str], None]] = {
    "claimed, not verified": before("eth_call"),
    "claimed, verified": after("eth_call"),
    "claimed, upstream called": at_upstream,
    "settling, nothing sent": before("eth_getTransactionCount"),
    "settling, about to send": before("eth_sendRawTransaction"),
    "settling, sent": after("eth_sendRawTransaction"),
    "settling, mined": before("eth_getTransactionReceipt"),
    "settled": after("eth_getTransactionReceipt"),
}


@pytest.mark.parametrize("settle", ["after", "before"])
def test_a_kill_at_any_state_loses_no_money(
    stage: Stage, settle: str, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix: Counter[tuple[str, str]] = Counter()
    kills = stage.kills
    for point, arm in POINTS.items():
        path = f"/echo/crash/{settle}/{point.replace(', ', '-').replace(' ', '-')}"
        url = stage.shop.wrap(path, settle=settle, timeoutMs=1000)
        for _ in range(ROUNDS):
            matrix[point, one_kill(stage, url, path, arm)] += 1
    killed = stage.kills - kills
    with capsys.disabled():
        print(f"\nsettle {settle}: {killed} kills")  # noqa: T201 - the matrix
        for (point, outcome), count in matrix.items():
            print(f"  {point:28} {outcome:32} {count}")  # noqa: T201
    assert killed >= len(POINTS) * ROUNDS - ROUNDS  # the last point may be too late to spring
    assert killed * len(("after", "before")) >= KILLS_MIN


def one_kill(stage: Stage, url: str, path: str, arm: Callable[[Stage, str], None]) -> str:
    """What the chain said right after the kill; checks everything that must hold afterwards."""
    shop, wallet = stage.shop, stage.shop.chain
    payment = shop.payment(url, PAYER)
    had, calls = wallet.balance(PAYER.address), shop.upstream.calls(path)
    arm(stage, path)
    killed = stage.kills
    answer = None
    with contextlib.suppress(httpx2.HTTPError):
        answer = shop.pay(url, payment, once=True)
    stage.proxy.before = stage.proxy.after = shop.upstream.before = lambda _what: None
    if stage.kills == killed:  # it came too late: the client has its answer
        assert answer is not None
        assert answer.status_code == 200
        stage.kill()
    paid = had - wallet.balance(PAYER.address)
    assert paid in {0, CENT}
    stage.start_again()
    again = shop.pay(url, payment)
    assert again.status_code == 200, again.text
    assert receipt(again)["success"] is True
    assert had - wallet.balance(PAYER.address) == CENT  # once, whatever happened before
    assert shop.pay(url, payment).content == again.content
    assert shop.upstream.calls(path) - calls <= 2
    return "paid, then served" if paid else "unspent, then paid and served"


@pytest.mark.parametrize("state", ["pending", "delivered", "released", "failed"])
def test_a_kill_changes_nothing_of_what_a_payment_rests_in(stage: Stage, state: str) -> None:
    shop, chain = stage.shop, stage.shop.chain
    path = {"released": "/status/500", "failed": "/held/crash"}.get(state, f"/echo/rest/{state}")
    url = shop.wrap(path, timeoutMs=5000)
    for _ in range(ROUNDS):
        payer = fresh_account()
        chain.mint(payer.address, CENT)
        payment, calls = shop.payment(url, payer), shop.upstream.calls(path)
        before = rest_in(stage, state, url, payment, payer)
        eventually(lambda: resting(stage) == state)
        stage.kill()
        stage.start_again()
        again = shop.pay(url, payment)
        if state in {"pending", "delivered"}:
            assert again.status_code == 200, again.text
            assert receipt(again)["success"] is True
            assert chain.balance(payer.address) == 0
            assert shop.upstream.calls(path) - calls == 1
            assert state == "pending" or again.content == before.content
        elif state == "released":  # nothing was sold: the same payment may buy it yet
            assert again.status_code == 502
            assert chain.balance(payer.address) == CENT
            assert shop.upstream.calls(path) - calls == 2
        else:
            assert again.status_code == 402, again.text
            assert shop.upstream.calls(path) - calls == 1
    assert stage.kills >= ROUNDS


def rest_in(
    stage: Stage, state: str, url: str, payment: dict[str, Any], payer: LocalAccount
) -> httpx2.Response:
    """The answer that leaves a payment in that state."""
    shop = stage.shop
    if state == "pending":
        with stage.proxy.failing("eth_getTransactionReceipt"):
            answer = shop.pay(url, payment, once=True)
            assert answer.json()["code"] == "settlement_pending"
            return answer
    if state != "failed":
        answer = shop.pay(url, payment)
        assert answer.status_code == (200 if state == "delivered" else 502)
        return answer
    shop.upstream.gate.clear()
    calls = len(shop.upstream.seen)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(shop.pay, url, payment)
        eventually(lambda: len(shop.upstream.seen) > calls)
        send_away(shop.chain.wallet, payer)
        shop.upstream.gate.set()
        answer = under_way.result()
    assert answer.status_code == 402
    return answer


def resting(stage: Stage) -> str:
    """The state of the newest payment, as it is on the disk."""
    with contextlib.closing(sqlite3.connect(stage.folder / "assay.db")) as database:
        newest = database.execute("SELECT state FROM payments ORDER BY id DESC LIMIT 1")
        return str(newest.fetchone()[0])


@pytest.mark.parametrize("point", [name for name in POINTS if name.startswith("settling")])
def test_what_was_being_settled_is_finished_without_its_client(stage: Stage, point: str) -> None:
    """Whose client never comes back: the books and the chain soon say the same.

    What was not signed yet is not signed without him either: it stays unspent, and his.
    """
    shop, payer = stage.shop, fresh_account()
    shop.chain.mint(payer.address, CENT)
    path = f"/echo/alone/{point.replace(', ', '-').replace(' ', '-')}"
    url = shop.wrap(path, timeoutMs=1000)
    payment, kills = shop.payment(url, payer), stage.kills
    POINTS[point](stage, path)
    with contextlib.suppress(httpx2.HTTPError):
        shop.pay(url, payment, once=True)
    stage.proxy.before = stage.proxy.after = lambda _what: None
    assert stage.kills == kills + 1
    stage.start_again()
    if point == "settling, nothing sent":
        eventually(lambda: resting(stage) == "pending")
        assert shop.chain.balance(payer.address) == CENT
    else:
        eventually(lambda: resting(stage) == "settled")
        assert shop.chain.balance(payer.address) == 0
    answer = shop.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert shop.chain.balance(payer.address) == 0
    assert shop.upstream.calls(path) == 1  # what it bought has waited for it


def test_a_kill_loses_at_most_the_calls_of_the_last_second(stage: Stage) -> None:
    url = stage.shop.wrap("/echo/calls", price=0)
    for _ in range(50):
        assert stage.shop.http.get(url).status_code == 200
    time.sleep(1.5)
    paid = stage.shop.wrap("/echo/paid-calls")
    assert stage.shop.pay(paid, stage.shop.payment(paid, PAYER)).status_code == 200
    stage.kill()
    stage.start_again()
    with contextlib.closing(sqlite3.connect(stage.folder / "assay.db")) as database:
        logged = database.execute("SELECT count(*) FROM calls WHERE path = '/echo/calls'")
        assert logged.fetchone()[0] == 50
        settled = database.execute(
            "SELECT count(*) FROM payments JOIN wrappers ON wrappers.id = wrapper_id"
            " WHERE path = '/echo/paid-calls' AND state IN ('settled', 'delivered')"
        )
        assert settled.fetchone()[0] == 1
