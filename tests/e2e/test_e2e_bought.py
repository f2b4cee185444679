"""What was bought is handed out, whatever its wrapper, its address or its process has become.

The chain is real, the upstream counts its calls, and the ledger is read.
"""

import base64
import contextlib
import json
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from tests.e2e.test_e2e_payment_attacks import (
    SECRETS,
    elsewhere,
    fresh_account,
    refused,
)
from tests.support.cases import first_then_slow
from tests.support.databases import migrated_postgresql
from tests.support.eventually import eventually
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import (
    NETWORK,
    SELLER,
    Dollars,
    Shop,
    Upstream,
    encoded,
    free_port,
    receipt,
    shop,
    upstream,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000
MILLION = 10**6


@dataclass
class Seller:
    """A shop whose wrappers change, and whose way to the chain can be disturbed."""

    shop: Shop
    folder: Path
    proxy: NodeProxy
    other: Upstream

    def id_of(self, path: str) -> str:
        """Of the newest wrapper of a path."""
        rows = self.shop.http.get("/operator/endpoints", headers=dict(self.shop.token)).json()
        return next(row["id"] for row in rows if row["path"] == path)

    def change(self, at: str, **fields: Any) -> None:
        place = f"/operator/endpoints/{self.id_of(at)}"
        answer = self.shop.http.patch(place, json=fields, headers=dict(self.shop.token))
        assert answer.status_code == 200, answer.text

    def delete(self, path: str) -> None:
        place = f"/operator/endpoints/{self.id_of(path)}"
        answer = self.shop.http.delete(place, headers=dict(self.shop.token))
        assert answer.status_code == 200, answer.text

    def restart(self, number: int = signal.SIGTERM) -> str:
        """Anew on the same data, at another port; the address it has then."""
        server = self.shop.server
        if server.process is not None and server.process.poll() is None:
            os.kill(server.pid, number)
        assert server.process is not None
        server.process.wait(20)
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.environment["ASSAY_PORT"] = str(free_port())
        server.start()
        self.shop.http.base_url = server.address
        self.shop.sign_up()  # a token names the address it was given at
        return server.address

    def ledger(self) -> dict[str, Any]:
        """The newest payment, as it is on the disk."""
        with contextlib.closing(sqlite3.connect(self.folder / "assay.db")) as database:
            database.row_factory = sqlite3.Row
            newest = database.execute("SELECT * FROM payments ORDER BY id DESC LIMIT 1")
            return dict(newest.fetchone())


@pytest.fixture(scope="module")
def seller(dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seller]:
    folder = tmp_path_factory.mktemp("bought")
    with upstream() as up, upstream() as other, node_proxy(dollar_chain.url) as proxy:
        settings = {
            "ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]}),
            "ASSAY_SETTLEMENT_LEASE_S": "1",
            "ASSAY_SETTLEMENT_S": "3",
            "ASSAY_PUBLIC_URL": "",
        }
        with shop(folder, dollar_chain, up, 0, **settings) as made:
            yield Seller(made, folder, proxy, other)


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, MILLION)
    return account


CHANGES: dict[str, Callable[[Seller, str], None]] = {
    "a new price": lambda s, path: s.change(path, pricePerCall=0.05),
    "no price": lambda s, path: s.change(path, pricePerCall=0),
    "a new target": lambda s, path: s.change(path, targetUrl=s.other.url),
    "a new payee": lambda s, path: s.change(path, payoutAddress=ACCOUNTS[33].address),
    "a new network": lambda s, path: s.change(path, paymentNetwork="eip155:8453"),
    "another protocol": lambda s, path: s.change(path, paymentProtocol="mpp"),
    "another path": lambda s, path: s.change(path, path=path + "-moved"),
    "a smaller body": lambda s, path: s.change(path, maxBodyBytes=1),
    "a stop": lambda s, path: s.change(path, active=False),
    "its deletion": lambda s, path: s.delete(path),
    "a new one at its path": lambda s, path: (s.delete(path), s.shop.wrap(path, 0.05))[0],
    "a new free one at its path": lambda s, path: (s.delete(path), s.shop.wrap(path, 0))[0],
    "a restart at another port": lambda s, _path: (s.restart(), None)[1],
}


@pytest.mark.parametrize("change", first_then_slow(CHANGES, 3))
def test_the_same_request_gets_what_it_bought_after(
    seller: Seller, payer: LocalAccount, change: str
) -> None:
    store = seller.shop
    path = f"/echo/kept/{change.replace(' ', '-')}"
    url = httpx2.URL(store.wrap(path, method="POST"))
    payment = store.payment(str(url), payer, method="POST")
    request = {"method": "POST", "content": b'{"some": "body"}'}
    place = f"{url.path}?x=1&y=%20z"
    bought = store.pay(place, payment, **request)
    assert bought.status_code == 200, bought.text
    CHANGES[change](seller, path)
    again = store.pay(place, payment, **request)
    assert (again.status_code, again.content) == (200, bought.content)
    assert receipt(again) == receipt(bought)
    assert store.upstream.calls(path) == 1
    assert store.chain.balance(payer.address) == MILLION - CENT


def test_what_is_gone_is_found_by_its_buyer_alone(seller: Seller, payer: LocalAccount) -> None:
    store, path = seller.shop, "/echo/gone"
    url = store.wrap(path)
    payment = store.payment(url, payer)
    bought = store.pay(url, payment)
    seller.delete(path)
    again = store.pay(url, payment)
    assert again.content == bought.content
    for place in (f"{url}?other=1", f"{url}/more"):
        assert store.pay(place, payment).status_code == 404
    assert store.pay(url, payment, method="PUT").status_code == 404
    with elsewhere() as there:
        v1 = {"x402Version": 1, "scheme": "exact", "network": "base-sepolia"}
        thief = {"x-payment": encoded({**v1, "payload": payment["payload"]})}
        assert there.get(url, headers=thief).status_code == 404


@pytest.mark.parametrize(
    "change", first_then_slow(["a new target", "a stop", "its deletion", "a new one at its path"])
)
def test_what_was_paid_and_not_served_is_served_by_the_upstream_it_was_bought_from(
    seller: Seller, payer: LocalAccount, change: str
) -> None:
    store = seller.shop
    path = f"/held/unserved/{change.replace(' ', '-')}"
    url = store.wrap(path, settle="before", timeoutMs=500)
    payment = store.payment(url, payer)
    store.upstream.gate.clear()
    failed = store.pay(url, payment)
    assert failed.status_code == 502, failed.text
    assert receipt(failed)["success"] is True
    CHANGES[change](seller, path)
    store.upstream.gate.set()
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert store.upstream.calls(path) == 2
    assert seller.other.calls(path) == 0
    keys = {one.headers["idempotency-key"] for one in store.upstream.seen if one.path == path}
    assert len(keys) == 1
    assert store.pay(url, payment).content == answer.content
    assert store.chain.balance(payer.address) == MILLION - CENT
    eventually(lambda: seller.ledger()["state"] == "delivered")


def test_what_is_pending_is_finished_when_its_wrapper_is_gone(
    seller: Seller, payer: LocalAccount
) -> None:
    store, path = seller.shop, "/echo/pending"
    url = store.wrap(path)
    payment = store.payment(url, payer)
    with seller.proxy.failing("eth_getTransactionReceipt"):
        assert store.pay(url, payment, once=True).json()["code"] == "settlement_pending"
        seller.delete(path)
        again = store.pay(url, payment, once=True)
        assert (again.status_code, again.json()["code"]) == (503, "settlement_pending")
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert store.upstream.calls(path) == 1
    assert store.chain.balance(payer.address) == MILLION - CENT


def test_what_is_paid_and_can_be_served_by_nobody_is_told_with_its_receipt(
    seller: Seller, payer: LocalAccount
) -> None:
    """Its account is suspended: nothing of it is called any more, and the buyer is to be repaid."""
    store, path = seller.shop, "/held/suspended"
    url = store.wrap(path, settle="before", timeoutMs=500)
    payment = store.payment(url, payer)
    store.upstream.gate.clear()
    assert store.pay(url, payment).status_code == 502
    store.upstream.gate.set()
    seller.restart()
    with contextlib.closing(sqlite3.connect(seller.folder / "assay.db")) as database, database:
        database.execute("UPDATE operators SET suspended_us = 1")
    path_alone = httpx2.URL(url).path
    try:
        answer = store.pay(path_alone, payment)
        assert (answer.status_code, answer.json()["code"]) == (404, "wrapper_not_found")
        assert receipt(answer)["success"] is True
        assert store.upstream.calls(path) == 1
    finally:
        with contextlib.closing(sqlite3.connect(seller.folder / "assay.db")) as database, database:
            database.execute("UPDATE operators SET suspended_us = NULL")
    assert seller.ledger()["state"] == "settled"
    assert store.pay(path_alone, payment).status_code == 200


@pytest.mark.parametrize("at", first_then_slow(["eth_sendRawTransaction", "upstream"]))
def test_a_crash_and_a_new_address_lose_nothing(
    seller: Seller, payer: LocalAccount, at: str
) -> None:
    """The upstream runs again with the key it ran with, or not at all."""
    store, path = seller.shop, f"/echo/crash/{at}"
    url = store.wrap(path, timeoutMs=1000)
    payment = store.payment(url, payer)

    def kill(what: str) -> None:
        if what in {at, path}:
            os.kill(store.server.pid, signal.SIGKILL)

    if at == "upstream":
        store.upstream.before = kill
    else:
        seller.proxy.after = kill
    with contextlib.suppress(httpx2.HTTPError):
        store.pay(url, payment)
    seller.proxy.after = store.upstream.before = lambda _what: None
    address = seller.restart(signal.SIGKILL)
    assert not url.startswith(address)
    answer = store.pay(str(httpx2.URL(url).path), payment)
    assert answer.status_code == 200, answer.text
    runs = [one for one in store.upstream.seen if one.path == path]
    assert len(runs) == (2 if at == "upstream" else 1)
    assert len({one.headers["idempotency-key"] for one in runs}) == 1
    assert store.chain.balance(payer.address) == MILLION - CENT


def test_an_old_price_is_taken_and_no_other(seller: Seller, payer: LocalAccount) -> None:
    """For real: the money goes to who was to be paid, and what is served is what there is now."""
    store, path, paid = seller.shop, "/echo/old-price", SELLER.address
    url = store.wrap(path, 0.01)
    payment = store.payment(url, payer)
    seller.change(
        path, pricePerCall=0.02, payoutAddress=ACCOUNTS[33].address, targetUrl=seller.other.url
    )
    had = store.chain.balance(paid)
    answer = store.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert store.chain.balance(paid) - had == CENT
    assert (store.upstream.calls(path), seller.other.calls(path)) == (0, 1)
    kept = seller.ledger()
    assert (kept["amount"], kept["pay_to"]) == (CENT, paid.lower())
    cheap = store.payment(url, payer)
    cheap["accepted"]["amount"] = "9999"
    refused(store.pay(url, cheap))
    assert store.pay(url, payment).content == answer.content


def test_an_upstream_knows_a_payment_by_a_key_of_its_own(
    seller: Seller, payer: LocalAccount
) -> None:
    store = seller.shop
    url, free = store.wrap("/echo/key"), store.wrap("/echo/free-key", 0)
    own = {"idempotency-key": "my-own", "Idempotency_Key": "another"}
    for _ in range(2):
        assert store.pay(url, store.payment(url, payer), headers=own).status_code == 200
    assert store.http.get(free, headers={"idempotency-key": "my-own"}).status_code == 200
    keys = [
        [
            value
            for name, value in one.headers.items()
            if name.replace("_", "-") == "idempotency-key"
        ]
        for one in store.upstream.seen
        if "key" in one.path
    ]
    assert keys[2] == ["my-own"]
    assert all(len(found) == 1 for found in keys)
    assert len({found[0] for found in keys}) == 3
    entry = seller.ledger()
    assert str(UUID(keys[1][0])) == keys[1][0]
    assert entry["idempotency_key"] not in keys[1][0].replace("-", "")
    assert entry["id"] not in keys[1][0]


def test_a_payment_that_served_nobody_has_the_same_key_for_the_same_request_alone(
    seller: Seller, payer: LocalAccount
) -> None:
    """For another request an upstream with a memory would answer the first one again."""
    store = seller.shop
    url = store.wrap("/status/500")
    payment = store.payment(url, payer)
    for place in (url, url, f"{url}?other=1"):
        assert store.pay(place, payment).status_code == 502
    first, same, other = [
        one.headers["idempotency-key"]
        for one in store.upstream.seen
        if one.path.startswith("/status/500")
    ]
    assert first == same != other
    assert seller.ledger()["state"] == "released"


AWAY = "https://files.example/signed?x=1"


@pytest.mark.parametrize("settle", first_then_slow(["after", "before"]))
@pytest.mark.parametrize(
    ("status", "place", "is_charged"),
    [
        (302, AWAY, True),
        (303, "//files.example/x", True),
        (301, "/elsewhere", False),
        (307, "other", False),
        (308, "UPSTREAM/moved", False),
        (302, "", False),
        (304, "", False),
    ],
)
def test_a_redirect_is_charged_where_it_leads_to_what_was_bought(
    seller: Seller, payer: LocalAccount, settle: str, status: int, place: str, *, is_charged: bool
) -> None:
    """Where it leads back to a wrapper, the call that follows is what is paid for."""
    store = seller.shop
    path = f"/redirect/{status}/{settle}/{len(place)}"
    url = store.wrap(path, settle=settle)
    asked = f"{url}?{place.replace('UPSTREAM', store.upstream.url)}"
    payment = store.payment(url, payer)
    first, answer = (store.pay(asked, payment) for _ in range(2))
    assert (first.status_code, answer.status_code) == (status, status)
    shown = answer.headers.get("location", "")
    assert shown == place if is_charged else not shown.startswith(store.upstream.url)
    is_paid = is_charged or settle == "before"
    assert store.chain.balance(payer.address) == MILLION - CENT * is_paid
    state = "delivered" if is_charged else "settled" if is_paid else "released"
    eventually(lambda: seller.ledger()["state"] == state)
    assert ("payment-response" in answer.headers) == is_paid
    assert store.upstream.calls(path) == (1 if is_charged else 2)


def test_a_head_is_answered_with_the_price_and_never_forwarded_or_charged(
    seller: Seller, payer: LocalAccount
) -> None:
    store = seller.shop
    url = store.wrap("/echo/head")
    payment = store.payment(url, payer)
    answer = store.pay(url, payment, method="HEAD")
    assert (answer.status_code, answer.content) == (402, b"")
    assert answer.headers["payment-required"]
    assert store.upstream.calls("/echo/head") == 0
    assert store.pay(url, payment).status_code == 200  # the same payment buys the GET
    assert store.chain.balance(payer.address) == MILLION - CENT
    free = store.wrap("/echo/head", 0, method="HEAD")  # a seller may give it away
    assert store.http.head(free).status_code == 200
    sold = store.wrap("/echo/head-sold", method="HEAD")
    asked = store.http.head(sold).headers["payment-required"]
    accepted = json.loads(base64.b64decode(asked))["accepts"][0]
    payload = dollars.authorize(payer.key, accepted, 84532, valid_s=3600)
    paid = {"x402Version": 2, "accepted": accepted, "payload": payload}
    assert store.pay(sold, paid, method="HEAD").status_code == 200  # or sell it
    assert store.chain.balance(payer.address) == MILLION - 2 * CENT


@pytest.fixture(scope="module")
def pair(
    dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, Shop]]:
    """Two processes that share a database and their secrets, and no public address."""
    url = migrated_postgresql()
    settings = {"ASSAY_DATABASE_URL": url, "ASSAY_SETTLEMENT_LEASE_S": "1", **SECRETS}
    with (
        upstream() as up,
        shop(tmp_path_factory.mktemp("one"), dollar_chain, up, port=free_port(), **settings) as one,
        shop(tmp_path_factory.mktemp("two"), dollar_chain, up, port=free_port(), **settings) as two,
    ):
        yield one, two


@pytest.mark.slow
def test_two_processes_without_a_common_address_serve_each_others_retries(
    pair: tuple[Shop, Shop], payer: LocalAccount
) -> None:
    one, two = pair
    url = one.wrap("/echo/either")
    path = httpx2.URL(url).path
    payment = one.payment(url, payer)
    bought = one.pay(url, payment)
    again = two.pay(str(two.server.address) + path, payment)
    assert (again.status_code, again.content) == (200, bought.content)
    held = one.wrap("/held/either", settle="before", timeoutMs=500)
    unserved = one.payment(held, payer)
    one.upstream.gate.clear()
    assert one.pay(held, unserved).status_code == 502
    one.upstream.gate.set()
    place = str(two.server.address) + httpx2.URL(held).path
    answer = two.pay(place, unserved)
    assert answer.status_code == 200, answer.text
    assert one.pay(held, unserved).content == answer.content
    assert one.chain.balance(payer.address) == MILLION - 2 * CENT
    assert one.upstream.calls("/echo/either") == 1
