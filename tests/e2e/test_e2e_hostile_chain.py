"""A node that lies and payers that cheat: nothing is free, and nobody pays twice.

What a chain can do at its worst is in `tests.support.hostile_chain`, what payers can in
`tests.support.hostile_payers`.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import first_then_slow
from tests.support.hostile_chain import HostileChain, hostile_chain
from tests.support.hostile_payers import (
    ACCOUNTS,
    PRICES,
    cancel,
    circle,
    empty,
    fresh_payer,
    shortest,
    while_serving,
)
from tests.support.shop import ENGINE, NETWORK, SELLER, Shop, receipt, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000
SHARED = 60
"""Free settlements of all self-registered accounts together."""
GAS_MOST_WEI = 10**16
"""The most that one settlement may cost on a test network: `ASSAY_GAS_CAP`."""


@pytest.fixture(scope="module")
def chain() -> Iterator[HostileChain]:
    with hostile_chain(ENGINE.address) as running:
        yield running


@pytest.fixture(scope="module")
def store(chain: HostileChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    settings = {**node_of(chain), "ASSAY_SETTLEMENT_S": "2", "ASSAY_SETTLEMENT_LEASE_S": "1"}
    folder = tmp_path_factory.mktemp("hostile")
    with upstream() as up:
        as_dollars: Any = _Address(chain.url)
        with shop(folder, as_dollars, up, **settings) as made:
            yield made


def node_of(chain: HostileChain) -> dict[str, str]:
    return {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [chain.url]})}


class _Address:
    """As much of a chain as a shop looks at."""

    network = NETWORK

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture(autouse=True)
def honest_again(chain: HostileChain) -> Iterator[None]:
    yield
    chain.wrong.clear()
    chain.status.clear()
    chain.breaks_after.clear()
    chain.ids = lambda asked: asked


def lost_receipts(chain: HostileChain) -> None:
    chain.wrong["eth_getTransactionReceipt"] = lambda _params, _honest: None


def a_failed_receipt(chain: HostileChain) -> None:
    """Once, of what was mined well: of one node that says so always, nobody could know better."""

    def failed(_params: list[Any], honest: Any) -> Any:
        if honest:
            chain.wrong.clear()
        return honest and {**honest, "status": "0x0", "logs": []}

    chain.wrong["eth_getTransactionReceipt"] = failed


def no_logs(chain: HostileChain) -> None:
    lost_receipts(chain)
    chain.wrong["eth_getLogs"] = lambda _params, _honest: []


def stale_nonce(chain: HostileChain) -> None:
    chain.wrong["eth_getTransactionCount"] = lambda _params, honest: hex(
        max(0, int(honest, 16) - 1)
    )


def no_price(chain: HostileChain) -> None:
    chain.wrong["eth_gasPrice"] = lambda _params, _honest: "0x0"


def taken_and_denied(chain: HostileChain) -> None:
    chain.breaks_after.add("eth_sendRawTransaction")


def too_many_requests(chain: HostileChain) -> None:
    chain.status["eth_getTransactionReceipt"] = chain.status["eth_getTransactionCount"] = 429


def strange_ids(chain: HostileChain) -> None:
    chain.ids = lambda _asked: {}


@pytest.mark.parametrize(
    "lie",
    first_then_slow(
        [
            lost_receipts,
            a_failed_receipt,
            no_logs,
            stale_nonce,
            no_price,
            taken_and_denied,
            too_many_requests,
            strange_ids,
        ],
        2,
    ),
)
def test_a_node_that_lies_while_it_settles_is_paid_through_once(
    store: Shop, chain: HostileChain, lie: Callable[[HostileChain], None]
) -> None:
    payer = fresh_payer(chain)
    path = f"/echo/lie-{lie.__name__}"
    url = store.wrap(path, timeoutMs=2000)
    payment, had = store.payment(url, payer), chain.balance(SELLER.address)
    with while_serving(store, lambda: lie(chain)):
        first = store.pay(url, payment, once=True)
    assert first.status_code in {200, 503}, first.text
    assert first.status_code == 503 or chain.balance(SELLER.address) == had + CENT
    chain.wrong.clear()
    chain.status.clear()
    chain.breaks_after.clear()
    chain.ids = lambda asked: asked
    again = store.pay(url, payment)
    assert again.status_code == 200, again.text
    assert receipt(again)["success"] is True
    assert chain.balance(SELLER.address) == had + CENT
    assert store.upstream.calls(path) == 1


def test_a_node_that_cannot_be_asked_costs_nobody_anything(
    store: Shop, chain: HostileChain
) -> None:
    payer = fresh_payer(chain)
    url = store.wrap("/echo/unasked")
    payment = store.payment(url, payer)
    with chain.failing("eth_call", status=429):
        refused = store.pay(url, payment, once=True)
    assert (refused.status_code, refused.json()["code"]) == (503, "payments_unavailable")
    assert store.upstream.calls("/echo/unasked") == 0
    assert store.pay(url, payment).status_code == 200
    assert chain.balance(payer.address) == 10**6 - CENT


@pytest.mark.parametrize("cheat", first_then_slow(["cancel", "empty"]))
def test_who_takes_his_money_back_gets_no_answer(
    store: Shop, chain: HostileChain, cheat: str
) -> None:
    payer = fresh_payer(chain, CENT)
    url = store.wrap(f"/echo/cheat-{cheat}", timeoutMs=2000)
    payment = store.payment(url, payer)
    deeds = {"cancel": lambda: cancel(chain, payment), "empty": lambda: empty(chain, payer)}
    with while_serving(store, deeds[cheat]):
        answer = store.pay(url, payment, once=True)
    assert answer.status_code in {402, 503}, answer.text
    assert "path" not in answer.json()  # what was bought is withheld
    assert store.pay(url, payment, once=True).status_code in {402, 503}


def test_the_shortest_payment_that_is_taken_is_long_enough(
    store: Shop, chain: HostileChain
) -> None:
    payer = fresh_payer(chain)
    url = store.wrap("/echo/shortest", timeoutMs=1000)
    payment, answer = shortest(store, url, payer)
    assert answer.status_code == 200, answer.text
    assert store.pay(url, payment).content == answer.content
    assert chain.balance(payer.address) == 10**6 - CENT


@pytest.mark.slow
def test_a_circle_of_fifty_fresh_accounts_is_served_what_it_has_moved(
    chain: HostileChain, tmp_path: Path
) -> None:
    """Two wallets of one person: each answer is one transfer, and their gas is one budget."""
    settings = {**node_of(chain), "ASSAY_GAS_FREE_SETTLEMENTS_SHARED": str(SHARED)}
    as_dollars: Any = _Address(chain.url)
    had = len(chain.model.state.used)
    with upstream() as up, shop(tmp_path, as_dollars, up, **settings) as store:
        spent = circle(store, chain, ENGINE.address)
        ran = sum(up.calls(f"/echo/circle/{place}") for place in range(len(PRICES)))
    assert sum(spent.answers.values()) == ACCOUNTS * len(PRICES)
    assert spent.answers == {200: SHARED, 503: ACCOUNTS * len(PRICES) - SHARED}
    assert set(spent.codes) == {"payments_unavailable"}
    assert len(chain.model.state.used) - had == SHARED == ran
    assert 0 < spent.gas_wei <= SHARED * GAS_MOST_WEI
