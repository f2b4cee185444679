"""What paid calls hold back in memory is bounded, whoever sends, buys or leaves unread how much."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.assay import resident_mib
from tests.support.eventually import eventually
from tests.support.shop import Dollars, Shop, encoded, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
MIB = 1024 * 1024
CENT = 10_000
HELD_MIB, LARGE = 32, 8 * MIB
CALLERS = 40
GROWTH_MIB = 4 * HELD_MIB
"""Copies on the way included; without a bound it would be `CALLERS` times `LARGE`, 320."""


@pytest.fixture(scope="module")
def store(dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    settings = {"ASSAY_HELD_BODIES_MIB": str(HELD_MIB)}
    with (
        upstream() as up,
        shop(tmp_path_factory.mktemp("held"), dollar_chain, up, **settings) as made,
    ):
        yield made


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, CALLERS * CENT)
    return account


def request(url: str, header: str, method: str = "GET", length: int = 0) -> bytes:
    parts = urlsplit(url)
    head = f"{method} {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\n"
    return f"{head}payment-signature: {header}\r\ncontent-length: {length}\r\n\r\n".encode()


@contextmanager
def opened(url: str, header: str, method: str = "GET", length: int = 0) -> Iterator[socket.socket]:
    """A connection with a request on it, of a caller that is in no hurry to read."""
    parts = urlsplit(url)
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        door.connect((parts.hostname, parts.port))
        door.sendall(request(url, header, method, length))
        yield door


def most_resident(store: Shop, seconds: float) -> int:
    until, most = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        most = max(most, resident_mib(store.server.pid))
        time.sleep(0.05)
    return most


@pytest.mark.slow
def test_answers_that_nobody_reads_do_not_fill_the_memory(store: Shop, payer: LocalAccount) -> None:
    """One payment, many who fetch what it bought, and leave it unread."""
    url = store.wrap(f"/large/{LARGE}")
    payment = store.payment(url, payer)
    assert len(store.pay(url, payment).content) == LARGE
    before = resident_mib(store.server.pid)
    with ExitStack() as stack:
        for _ in range(CALLERS):
            stack.enter_context(opened(url, encoded(payment)))
        assert most_resident(store, 3) - before < GROWTH_MIB
    assert len(store.pay(url, payment).content) == LARGE


def test_bodies_that_never_end_do_not_fill_the_memory(store: Shop) -> None:
    """Signed by accounts that have nothing: a signature costs nobody anything."""
    url = store.wrap("/echo/unending", method="POST")
    payments = [store.payment(url, fresh_account(), method="POST") for _ in range(CALLERS)]
    before = resident_mib(store.server.pid)
    with ExitStack() as stack:
        for payment in payments:
            door = stack.enter_context(opened(url, encoded(payment), "POST", LARGE))
            door.settimeout(0.05)
            try:
                door.sendall(b"x" * (LARGE - 1))
            except (TimeoutError, ConnectionError):
                continue  # there is no room for it
        assert most_resident(store, 2) - before < GROWTH_MIB
    assert store.upstream.calls("/echo/unending") == 0


@pytest.mark.slow
def test_large_answers_bought_at_once_wait_for_each_other(store: Shop, payer: LocalAccount) -> None:
    """Four fit into one caller's part at most; all are served, and each is paid once."""
    url = store.wrap(f"/large/{2 * MIB}")
    payments = [store.payment(url, payer) for _ in range(12)]
    with ThreadPoolExecutor(len(payments)) as pool:
        answers = list(pool.map(lambda payment: store.pay(url, payment), payments))
    assert [(a.status_code, len(a.content)) for a in answers] == [(200, 2 * MIB)] * 12
    assert store.chain.balance(payer.address) == (CALLERS - 12) * CENT


def test_who_finds_no_room_is_refused_before_the_upstream_is_asked(
    store: Shop, payer: LocalAccount
) -> None:
    """The caller's own part is taken by an answer that it does not read."""
    path = f"/large/{LARGE - 1}"
    url = store.wrap(path)
    known, unread, refused = (store.payment(url, payer) for _ in range(3))
    assert store.pay(url, known).status_code == 200  # its size is known from now on
    with opened(url, encoded(unread)) as door:
        assert door.recv(1)
        calls = store.upstream.calls(path)
        answer = store.pay(url, refused, once=True)
    assert (answer.status_code, answer.json()["code"]) == (503, "temporarily_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert store.upstream.calls(path) == calls == 2
    assert store.chain.balance(payer.address) == (CALLERS - 2) * CENT
    assert len(store.pay(url, refused).content) == LARGE - 1


def test_who_fetches_again_what_he_bought_takes_no_room_from_those_who_buy(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap(f"/large/{LARGE - 2}")
    first, second = store.payment(url, payer), store.payment(url, payer)
    assert store.pay(url, first).status_code == 200
    with opened(url, encoded(first)) as door:
        assert door.recv(1)
        again = store.pay(url, first, once=True)
        assert (again.status_code, again.json()["code"]) == (503, "temporarily_unavailable")
        assert store.pay(url, second).status_code == 200
    eventually(lambda: store.pay(url, first).status_code == 200)


@pytest.mark.slow
def test_connections_that_send_nothing_keep_no_room_from_others(
    store: Shop, payer: LocalAccount
) -> None:
    """What is announced is not there yet."""
    url = store.wrap("/echo/announced", method="POST")
    nobody = store.payment(url, fresh_account(), method="POST")
    payment = store.payment(url, payer, method="POST")
    with ExitStack() as stack:
        for _ in range(CALLERS):
            stack.enter_context(opened(url, encoded(nobody), "POST", LARGE))
        answer = store.pay(url, payment, method="POST", content=b"x" * (LARGE // 2), once=True)
        assert answer.status_code == 200, answer.text


@pytest.mark.slow
def test_an_answer_that_drips_holds_its_room_no_longer_than_its_payment_is_good(
    store: Shop, payer: LocalAccount
) -> None:
    """Each piece is in time, and the whole would not be."""
    url = store.wrap("/drip", timeoutMs=500)
    answer = store.pay(url, store.payment(url, payer))
    assert (answer.status_code, answer.json()["code"]) == (502, "wrapper_request_failed")
    assert "whole" in answer.json()["message"]
    assert store.chain.balance(payer.address) == CALLERS * CENT


def test_an_answer_in_pieces_is_whole_for_every_kind_of_caller(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap(f"/large/{LARGE + 7}")
    payment = store.payment(url, payer)
    assert store.pay(url, payment).content == b"x" * (LARGE + 7)
    parts = urlsplit(url)
    old = request(url, encoded(payment)).replace(b"HTTP/1.1", b"HTTP/1.0")
    with socket.create_connection((parts.hostname, parts.port)) as door:
        door.sendall(old)
        got = b"".join(iter(lambda: door.recv(MIB), b""))
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b"x" * (LARGE + 7)
