"""Callers that pay are served whatever strangers at their address have used up.

Source: conventions.md#bounds-on-strangers.
"""

import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.shop import Dollars, Shop, Upstream, encoded, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
LIMIT = 20
CENT = 10_000
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with upstream() as state:
        yield state


@pytest.fixture
def store(tmp_path: Path, dollar_chain: Dollars, up: Upstream) -> Iterator[Shop]:
    limits = {"ASSAY_WRAPPER_PER_MINUTE": str(LIMIT)}
    with shop(tmp_path / "data", dollar_chain, up, **limits) as made:
        yield made


def exhaust(store: Shop, url: str) -> None:
    for _ in range(10 * LIMIT):
        if store.http.get(url).status_code == 429:
            return
    raise AssertionError("never refused")


def test_a_payment_that_holds_is_served_beyond_its_addresss_limit(
    store: Shop, dollar_chain: Dollars
) -> None:
    url, payer = store.wrap("/echo"), fresh_account()
    dollar_chain.mint(payer.address, 10 * CENT)
    payments = [store.payment(url, payer) for _ in range(3)]
    for payment in payments:
        exhaust(store, url)
        answer = store.pay(url, payment)
        assert answer.status_code == 200, answer.text
    exhaust(store, url)  # what pays has used up nothing of the strangers'


def test_a_payment_that_does_not_hold_buys_no_limit_of_its_own(store: Shop, up: Upstream) -> None:
    paid, free = store.wrap("/echo"), store.wrap("/free", price=0)
    unfunded = store.payment(paid, fresh_account())
    exhaust(store, free)
    seen = len(up.seen)
    junk = {"payment-signature": encoded({"x402Version": 2})}
    assert store.http.get(free, headers=junk).status_code == 429
    statuses = [store.pay(paid, unfunded).status_code for _ in range(2 * LIMIT)]
    assert set(statuses) == {402, 429}
    assert statuses.count(402) <= LIMIT + 2
    assert len(up.seen) == seen


def test_forged_payments_of_an_address_shut_no_payer_out(
    store: Shop, dollar_chain: Dollars
) -> None:
    url, payer = store.wrap("/echo"), fresh_account()
    dollar_chain.mint(payer.address, 10 * CENT)
    signed = store.payment(url, payer)
    forged = {"payment-signature": encoded({"x402Version": 2})}
    exhaust(store, url)
    statuses = [store.http.get(url, headers=forged).status_code for _ in range(2 * LIMIT)]
    assert set(statuses) == {402, 429}
    assert statuses[-1] == 429
    assert statuses.count(402) <= LIMIT + 2
    assert store.pay(url, signed).status_code == 200


def test_signed_payments_without_money_shut_out_nobody_who_has_paid_before(
    store: Shop, dollar_chain: Dollars
) -> None:
    url, payer = store.wrap("/echo"), fresh_account()
    dollar_chain.mint(payer.address, 10 * CENT)
    assert store.pay(url, store.payment(url, payer)).status_code == 200
    signed, unfunded = store.payment(url, payer), store.payment(url, fresh_account())
    exhaust(store, url)
    statuses = [store.pay(url, unfunded).status_code for _ in range(2 * LIMIT)]
    assert statuses[-1] == 429
    assert store.pay(url, signed).status_code == 200


def test_a_page_reads_that_its_address_is_over_the_limit(store: Shop) -> None:
    url, other = store.wrap("/paged", price=0, corsOrigins=[PAGE]), store.wrap("/plain", price=0)
    origin = {"origin": PAGE}
    exhaust(store, url)
    refused = store.http.get(url, headers=origin)
    assert refused.status_code == 429
    assert refused.headers["access-control-allow-origin"] == PAGE
    asks = {**origin, "access-control-request-method": "GET"}
    assert store.http.options(url, headers=asks).status_code == 204
    for headers in ({"origin": "https://other.example"}, {}):
        answer = store.http.get(url, headers=headers)
        assert answer.status_code == 429
        assert "access-control-allow-origin" not in answer.headers
    assert store.http.options(other, headers=asks).status_code == 429
    assert "access-control-allow-origin" not in store.http.get(other, headers=origin).headers


def leave(store: Shop, url: str, headers: Mapping[str, str]) -> int:
    """Ask, see the beginning of the answer, leave the rest unread, and go. The status."""
    place = urlsplit(url)
    lines = [f"GET {place.path} HTTP/1.1", "Host: x", *(f"{k}: {v}" for k, v in headers.items())]
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        caller.connect(("127.0.0.1", urlsplit(store.server.address).port))
        caller.sendall("\r\n".join([*lines, "", ""]).encode())
        status = int(caller.recv(12, socket.MSG_WAITALL)[9:])
        time.sleep(0.3)  # as much as is taken for a caller that stalls is on its way by then
        return status


def test_what_strangers_leave_unread_refuses_nobody_who_pays(
    tmp_path: Path, dollar_chain: Dollars, up: Upstream
) -> None:
    with shop(tmp_path / "data", dollar_chain, up, ASSAY_WRAPPER_UNREAD_MIB="1") as store:
        free, paid = store.wrap("/large/4000000", price=0), store.wrap("/echo")
        small = store.wrap("/small", price=0)
        payer = fresh_account()
        dollar_chain.mint(payer.address, 10 * CENT)
        payment = store.payment(paid, payer)
        unfunded = store.payment(paid, fresh_account())
        while (refused := store.http.get(small)).status_code == 200:
            leave(store, free, {})
        assert refused.status_code == 429
        assert store.http.get(paid).json()["code"] == "wrapper_upstream_unread"
        assert store.pay(paid, unfunded).status_code == 402
        answer = store.pay(paid, payment)
        assert answer.status_code == 200, answer.text


def test_a_payer_who_leaves_too_much_unread_is_refused_uncharged_and_alone(
    tmp_path: Path, dollar_chain: Dollars, up: Upstream
) -> None:
    with shop(tmp_path / "data", dollar_chain, up, ASSAY_WRAPPER_UNREAD_MIB="1") as store:
        url, payer, other = store.wrap("/large/4000000"), fresh_account(), fresh_account()
        for one in (payer, other):
            dollar_chain.mint(one.address, 10 * CENT)
        mine = [{"payment-signature": encoded(store.payment(url, payer))} for _ in range(4)]
        theirs = store.payment(url, other)
        last = encoded(store.payment(url, payer))
        statuses = [leave(store, url, payment) for payment in mine]
        assert statuses[0] == 200
        assert statuses[-1] == 429, statuses
        seen = len(up.seen)
        refused = store.http.get(url, headers={"payment-signature": last})
        assert (refused.status_code, refused.json()["code"]) == (429, "wrapper_upstream_unread")
        assert len(up.seen) == seen
        assert store.http.get(url).status_code == 402
        assert store.pay(url, theirs).status_code == 200
