"""Payments that come at once share commits, batches and turns; each stands or falls alone."""

import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.eventually import eventually
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import NETWORK, SELLER, Dollars, Shop, encoded, receipt, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000
AT_ONCE = 24


@pytest.fixture(scope="module")
def proxy(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as running:
        yield running


@pytest.fixture
def store(
    dollar_chain: Dollars, proxy: NodeProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    settings = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
    with (
        upstream() as up,
        shop(tmp_path_factory.mktemp("step"), dollar_chain, up, **settings) as made,
    ):
        yield made
    proxy.instead = lambda _asked: None


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, AT_ONCE * CENT)
    return account


def pay_all(
    store: Shop, url: str, payments: list[dict[str, Any]], apart_s: float = 0
) -> list[httpx2.Response]:
    def pay(place: int) -> httpx2.Response:
        time.sleep(place * apart_s)
        return store.pay(url, payments[place], once=True)

    with ThreadPoolExecutor(len(payments)) as pool:
        return list(pool.map(pay, range(len(payments))))


def no_receipts(asked: Any) -> Any:
    """A node that knows of no transaction yet."""
    ones = asked if isinstance(asked, list) else [asked]
    if any(one["method"] != "eth_getTransactionReceipt" for one in ones):
        return None
    nothing = [{"jsonrpc": "2.0", "id": one["id"], "result": None} for one in ones]
    return nothing if isinstance(asked, list) else nothing[0]


def test_many_that_come_at_once_are_each_paid_once(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    batches: list[list[str]] = []

    def look(asked: Any) -> None:
        if isinstance(asked, list):
            batches.append([one["method"] for one in asked])

    proxy.instead = look
    url = store.wrap("/echo/many")
    payments = [store.payment(url, payer) for _ in range(AT_ONCE)]
    before = store.chain.balance(SELLER.address)
    answers = pay_all(store, url, payments)
    assert [answer.status_code for answer in answers] == [200] * AT_ONCE
    assert len({receipt(answer)["transaction"] for answer in answers}) == AT_ONCE
    assert store.upstream.calls("/echo/many") == AT_ONCE
    assert store.chain.balance(SELLER.address) - before == AT_ONCE * CENT
    assert store.chain.balance(payer.address) == 0
    sent = [methods.count("eth_sendRawTransaction") for methods in batches]
    assert max(sent) > 1  # or nothing was shared, and the rest of this file tests nothing


@pytest.mark.slow
def test_a_node_that_refuses_batches_settles_as_well(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    """It hears of transactions in any order, and will have none before the one below it."""
    error = {"code": -32600, "message": "batch requests are not supported"}
    signed: set[str] = set()

    def refuse(asked: Any) -> Any:
        if isinstance(asked, list):
            return {"jsonrpc": "2.0", "id": None, "error": error}
        if asked["method"] == "eth_sendRawTransaction":
            signed.add(asked["params"][0])
            time.sleep(random.uniform(0, 0.1))
        return None

    proxy.instead = refuse
    url = store.wrap("/echo/no-batches")
    answers = pay_all(store, url, [store.payment(url, payer) for _ in range(AT_ONCE)])
    refused = [answer.text for answer in answers if answer.status_code != 200]
    assert refused == []
    assert len(signed) == AT_ONCE  # nothing was signed anew
    assert store.chain.balance(payer.address) == 0


@pytest.mark.slow
def test_one_transaction_that_is_refused_holds_up_no_other_and_is_settled_later(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    spoilt: list[str] = []

    def spoil(asked: Any) -> None:
        ones = asked if isinstance(asked, list) else [asked]
        sent = [one for one in ones if one["method"] == "eth_sendRawTransaction"]
        if len(sent) > 2 and not spoilt:
            spoilt.append(sent[1]["params"][0])
            sent[1]["params"] = ["0x02c0"]

    proxy.instead = spoil
    url = store.wrap("/echo/spoilt")
    payments = [store.payment(url, payer) for _ in range(AT_ONCE)]
    answers = pay_all(store, url, payments)
    assert spoilt
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * (AT_ONCE - 1) + [503]
    place = next(n for n, answer in enumerate(answers) if answer.status_code == 503)
    assert answers[place].json()["code"] == "settlement_pending"
    # Its nonce is spent on nothing, so that no other waits; it takes another one at that age.
    eventually(lambda: store.pay(url, payments[place], once=True).status_code == 200)
    assert store.upstream.calls("/echo/spoilt") == AT_ONCE
    assert store.chain.balance(payer.address) == 0


def test_of_a_balance_that_is_just_enough_each_is_paid_while_others_settle(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/exact")
    answers = pay_all(store, url, [store.payment(url, payer) for _ in range(AT_ONCE)], apart_s=0.03)
    assert [answer.text for answer in answers if answer.status_code != 200] == []
    assert store.chain.balance(payer.address) == 0


@pytest.mark.slow
def test_a_payment_whose_receipt_is_late_is_not_counted_twice(
    dollar_chain: Dollars, store: Shop, proxy: NodeProxy
) -> None:
    """Its money has left the balance while the ledger still knows it as being in flight."""
    payer = fresh_account()
    dollar_chain.mint(payer.address, 2 * CENT)
    url = store.wrap("/echo/late")
    first, second = store.payment(url, payer), store.payment(url, payer)
    proxy.instead = no_receipts
    with ThreadPoolExecutor(2) as pool:
        paid = pool.submit(store.pay, url, first)
        eventually(lambda: dollar_chain.balance(payer.address) == CENT)
        also_paid = pool.submit(store.pay, url, second)
        time.sleep(0.5)
        proxy.instead = lambda _asked: None
        answers = [paid.result(), also_paid.result()]
    assert [answer.status_code for answer in answers] == [200, 200], answers[1].text
    assert dollar_chain.balance(payer.address) == 0


def test_a_payment_whose_outcome_is_not_known_is_not_held_against_the_next(
    dollar_chain: Dollars, proxy: NodeProxy, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its money may be gone from the balance: nobody can say that the payer has not enough."""
    payer = fresh_account()
    dollar_chain.mint(payer.address, 2 * CENT)
    settings = {
        "ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]}),
        "ASSAY_SETTLEMENT_S": "1",
    }
    folder = tmp_path_factory.mktemp("unknown")
    with upstream() as up, shop(folder, dollar_chain, up, **settings) as made:
        url = made.wrap("/echo/unknown")
        first, second = made.payment(url, payer), made.payment(url, payer)
        proxy.instead = no_receipts
        answer = made.pay(url, first, once=True)
        assert (answer.status_code, answer.json()["code"]) == (503, "settlement_pending")
        assert dollar_chain.balance(payer.address) == CENT
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(made.pay, url, second)
            time.sleep(0.5)
            assert not waits.done(), waits.result().text
            proxy.instead = lambda _asked: None
            assert waits.result().status_code in {200, 503}
        eventually(lambda: made.pay(url, first).status_code == 200)
        eventually(lambda: made.pay(url, second).status_code == 200)
        assert up.calls("/echo/unknown") == 2
        assert dollar_chain.balance(payer.address) == 0


def test_a_caller_that_goes_away_while_its_payment_is_checked_leaves_no_claim(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    slow = True

    def wait(asked: Any) -> None:
        ones = asked if isinstance(asked, list) else [asked]
        if slow and any(one["method"] == "eth_call" for one in ones):
            time.sleep(1.5)

    url = store.wrap("/echo/gone", timeoutMs=30_000)
    payment = store.payment(url, payer)
    proxy.instead = wait
    headers = {"payment-signature": encoded(payment)}
    with suppress(httpx2.TimeoutException), httpx2.Client(timeout=0.5) as impatient:
        impatient.get(url, headers=headers)
    slow = False
    time.sleep(0.3)
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert store.upstream.calls("/echo/gone") == 1
