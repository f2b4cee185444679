"""The attacks and faults a paid gateway meets, row by row; x402 here.

The chain is real, the upstream counts its calls, balances are read before and after.
Source: payment-safety.md#attacks-and-faults.
"""

import base64
import copy
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from assay_demo.chain.registries import Wallet, checksum, selector
from tests.support.assay import session
from tests.support.databases import migrated_postgresql
from tests.support.eventually import eventually
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.raw_client import RawClient
from tests.support.shop import (
    EARLY,
    NETWORK,
    USDC,
    Dollars,
    Shop,
    Upstream,
    encoded,
    free_port,
    receipt,
    shop,
    until_known,
    upstream,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000
SECRETS = {
    f"ASSAY_{name}": name.lower() * 4
    for name in (
        "JWT_SECRET",
        "SESSION_SECRET",
        "SNAPSHOT_SECRET",
        "SIGNING_SECRET",
        "PAYMENT_SECRET",
        "UPSTREAM_SECRETS",
    )
}


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with upstream() as state:
        yield state


@pytest.fixture(scope="module")
def proxy(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as running:
        yield running


@pytest.fixture(scope="module")
def store(
    dollar_chain: Dollars,
    up: Upstream,
    proxy: NodeProxy,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shop]:
    """One server, whose way to the chain can be disturbed."""
    rpc = json.dumps({NETWORK: [proxy.url]})
    settings = {
        "ASSAY_PAYMENT_RPC": rpc,
        "ASSAY_SETTLEMENT_S": "2",
        "ASSAY_SETTLEMENT_LEASE_S": "1",
    }
    with shop(tmp_path_factory.mktemp("store"), dollar_chain, up, **settings) as made:
        yield made


@pytest.fixture(scope="module")
def pair(
    dollar_chain: Dollars, up: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, Shop]]:
    """Two server processes that share one PostgreSQL."""
    url = migrated_postgresql()
    settings = {"ASSAY_DATABASE_URL": url, "ASSAY_PUBLIC_URL": "http://assay.example", **SECRETS}
    with (
        shop(tmp_path_factory.mktemp("one"), dollar_chain, up, port=free_port(), **settings) as one,
        shop(tmp_path_factory.mktemp("two"), dollar_chain, up, port=free_port(), **settings) as two,
    ):
        yield one, two


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    """Somebody with a dollar whom nobody has seen before."""
    account = fresh_account()
    dollar_chain.mint(account.address, 10**6)
    return account


def fresh_account() -> LocalAccount:
    import secrets  # noqa: PLC0415

    from eth_account import Account  # noqa: PLC0415

    key = "0x" + secrets.token_hex(32)
    return LocalAccount(key, Account.from_key(key).address.lower())


def known_everywhere(url: str, *made: Shop) -> str:
    """The path of a wrapper once every process answers it: a miss is believed for half a second."""
    path = httpx2.URL(url).path
    for one in made:
        eventually(lambda: one.http.get(path).status_code == 402)  # noqa: B023
    return path


def everybody(work: Callable[[int], Any], count: int) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def refused(answer: httpx2.Response, reason: str | None = None) -> None:
    """A 402 that says how to pay, in both versions, and is kept by nobody."""
    assert answer.status_code == 402, answer.text
    body = answer.json()
    assert body["code"] == "payment_required"
    assert answer.headers["cache-control"] == "no-store"
    assert json.loads(base64.b64decode(answer.headers["payment-required"]))["x402Version"] == 2
    if reason is not None:
        assert body["reason"] == reason, body


def test_row_01_a_payment_that_was_spent_buys_nothing_else(
    pair: tuple[Shop, Shop], payer: LocalAccount
) -> None:
    one, two = pair
    url = one.wrap("/echo/row1")
    other = one.wrap("/echo/row1b")
    payment = one.payment(url, payer)
    assert one.pay(url, payment).status_code == 200
    spent = one.chain.balance(payer.address)
    changed = copy.deepcopy(payment)
    nonce = changed["payload"]["authorization"]["nonce"]
    changed["payload"]["authorization"]["nonce"] = "0x" + nonce[2:].upper()
    rewrapped = {
        "x402Version": 1,
        "scheme": "exact",
        "network": "base-sepolia",
        "payload": payment["payload"],
    }
    for made in (one, two):
        for again in (payment, changed, rewrapped):
            place = f"{made.server.address}{httpx2.URL(url).path}?other=1"
            refused(made.pay(place, again), "invalid_exact_evm_nonce_already_used")
        away = {**payment, "resource": None}
        del away["resource"]
        refused(made.pay(f"{made.server.address}{httpx2.URL(other).path}", away))
    assert one.upstream.calls("/echo/row1") == 1
    assert one.upstream.calls("/echo/row1b") == 0
    assert one.chain.balance(payer.address) == spent


def test_row_01_what_was_bought_is_not_handed_to_who_reads_the_chain(
    store: Shop, payer: LocalAccount
) -> None:
    """All of a settled authorisation is public: calldata. Only its buyer gets the answer again."""
    url = store.wrap("/echo/row1-chain")
    payment = store.payment(url, payer)
    bought = store.pay(url, payment)
    assert bought.status_code == 200
    with elsewhere() as there:
        for headers in stolen(store, url, payment):
            refused(there.get(url, headers=headers), "invalid_exact_evm_nonce_already_used")
        moved = there.get(url, headers={"payment-signature": encoded(payment)})
        assert moved.content == bought.content  # the buyer, known by the 402 it paid
    assert store.pay(url, payment).content == bought.content
    assert store.upstream.calls("/echo/row1-chain") == 1


def test_row_18_a_spent_payment_is_no_proof_of_who_asks(store: Shop, payer: LocalAccount) -> None:
    """Read off the chain and sent again, it would use up its payer's rate limit."""
    url = store.wrap("/echo/row18-spent", rateLimit=2)
    payment = store.payment(url, payer)
    assert store.pay(url, payment).status_code == 200
    with elsewhere() as there:
        for headers in stolen(store, url, payment):
            for place in (url, f"{url}?x=1"):
                refused(there.get(place, headers=headers))
    for _ in range(3):  # what was bought is no new call
        assert store.pay(url, payment).status_code == 200
    assert store.pay(url, store.payment(url, payer)).status_code == 200
    assert store.pay(url, store.payment(url, payer)).status_code == 429
    assert store.upstream.calls("/echo/row18-spent") == 2


def test_row_12_a_buyer_who_was_not_served_yet_may_come_from_anywhere(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/row12-moved")
    payment = store.payment(url, payer)
    with proxy.failing("eth_getTransactionReceipt"):
        assert store.pay(url, payment, once=True).status_code == 503
    headers = {"payment-signature": encoded(payment)}
    with elsewhere() as there:
        answer = until_known(lambda: there.get(url, headers=headers))
    assert answer.status_code == 200, answer.text
    assert store.upstream.calls("/echo/row12-moved") == 1
    assert store.chain.balance(payer.address) == 10**6 - CENT


def test_row_01_what_is_paid_and_not_served_yet_is_not_handed_to_who_reads_the_chain(
    store: Shop, payer: LocalAccount
) -> None:
    """Taken before it is served, a payment is public while its buyer still waits."""
    url = store.wrap("/held/row1-before", settle="before", timeoutMs=500, rateLimit=3)
    payment = store.payment(url, payer)
    store.upstream.gate.clear()
    assert store.pay(url, payment).status_code == 502
    assert store.chain.balance(payer.address) == 10**6 - CENT
    store.upstream.gate.set()
    with elsewhere() as there:
        for headers in stolen(store, url, payment) * 2:
            refused(there.get(url, headers=headers), "invalid_exact_evm_nonce_already_used")
    assert store.upstream.calls("/held/row1-before") == 1
    assert store.pay(url, payment).status_code == 200
    assert store.chain.balance(payer.address) == 10**6 - CENT


def test_row_01_what_is_being_settled_is_nobodys_but_the_buyers(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    """Sent, and so to be read by all, before we know that it is paid."""
    url = store.wrap("/echo/row1-pending", rateLimit=2)
    payment = store.payment(url, payer)
    with elsewhere() as there:
        with proxy.failing("eth_getTransactionReceipt"):
            assert store.pay(url, payment, once=True).status_code == 503
            for headers in stolen(store, url, payment) * 2:
                answer = there.get(url, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (503, "settlement_pending")
        for headers in stolen(store, url, payment):
            answer = until_known(lambda: there.get(url, headers=headers))  # noqa: B023
            refused(answer, "invalid_exact_evm_nonce_already_used")
    assert store.pay(url, payment).status_code == 200
    assert store.upstream.calls("/echo/row1-pending") == 1


def test_row_12_a_buyer_of_version_1_that_moved_proves_to_be_the_payer(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    """Version 1 echoes nothing that only we and the buyer know."""
    url = store.wrap("/echo/row12-session")
    payment = store.payment(url, payer)
    first, second = stolen(store, url, payment)
    with proxy.failing("eth_getTransactionReceipt"):
        assert store.http.get(url, headers=second).status_code == 503
    agent = session(store.http, payer.key)
    stranger = session(store.http, fresh_account().key)
    with elsewhere() as there:
        for known in ({}, stranger, {**agent, "x-agent-session": "x" * 40}):
            answer = until_known(lambda: there.get(url, headers={**second, **known}))  # noqa: B023
            assert answer.status_code in {402, 503}, answer.text
        answer = until_known(lambda: there.get(url, headers={**first, **agent}))
    assert answer.status_code == 200, answer.text
    assert store.upstream.calls("/echo/row12-session") == 1


def test_row_02_copies_at_once_are_served_once(
    pair: tuple[Shop, Shop], payer: LocalAccount
) -> None:
    url = pair[0].wrap("/echo/row2")
    path = known_everywhere(url, *pair)
    payment = pair[0].payment(url, payer)

    def send(turn: int) -> httpx2.Response:
        made = pair[turn % 2]
        return httpx2.get(
            made.server.address + path, headers={"x-payment": encoded(payment)}, timeout=40
        )

    answers = everybody(send, 20)
    good = [a for a in answers if a.status_code == 200]
    assert good
    assert {a.status_code for a in answers} <= {200, 503}  # never a 402: it would be paid twice
    assert len({a.content for a in good}) == 1
    assert pair[0].upstream.calls("/echo/row2") == 1
    assert pair[0].chain.balance(payer.address) == 10**6 - CENT


@pytest.mark.parametrize(("field", "value"), [("value", "9999"), ("value", "10001")])
def test_row_03_a_price_is_paid_exactly(
    store: Shop, payer: LocalAccount, field: str, value: str
) -> None:
    url = store.wrap(f"/echo/row3/{value}")
    required = store.demand(url)
    lowered = {**required["accepts"][0], "amount": value}
    payload = dollars.authorize(payer.key, lowered, 84532)
    assert payload["authorization"][field] == value  # type: ignore[index]
    for accepted in (required["accepts"][0], lowered):
        payment = {"x402Version": 2, "accepted": accepted, "payload": payload}
        refused(store.pay(url, payment))
    assert store.upstream.calls(f"/echo/row3/{value}") == 0
    assert store.chain.balance(payer.address) == 10**6


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("payTo", ACCOUNTS[33].address),
        ("asset", "0x" + "ab" * 20),
        ("network", "eip155:8453"),
        ("scheme", "upto"),
    ],
)
def test_row_04_what_is_asked_for_cannot_be_substituted(
    store: Shop, payer: LocalAccount, field: str, value: str
) -> None:
    url = store.wrap(f"/echo/row4/{field}")
    required = store.demand(url)
    changed = {**required["accepts"][0], field: value}
    payload = dollars.authorize(payer.key, changed, 84532)
    for accepted in (changed, required["accepts"][0]):
        if field in {"network", "scheme"} and accepted is not changed:
            continue  # nothing of it is in what is signed
        payment = {"x402Version": 2, "accepted": accepted, "payload": payload}
        refused(store.pay(url, payment))
    assert store.upstream.calls(f"/echo/row4/{field}") == 0
    assert store.chain.balance(payer.address) == 10**6


def test_row_04_a_cheap_routes_payment_does_not_pay_a_dear_one(
    store: Shop, payer: LocalAccount
) -> None:
    cheap, dear = store.wrap("/echo/row4-cheap", price=0.001), store.wrap("/echo/row4-dear")
    payment = store.payment(cheap, payer)
    for named in (payment, {k: v for k, v in payment.items() if k != "resource"}):
        refused(store.pay(dear, named))
        lying = {**named, "accepted": store.demand(dear)["accepts"][0]}
        refused(store.pay(dear, lying))
    version_1 = {
        "x402Version": 1,
        "scheme": "exact",
        "network": "base-sepolia",
        "payload": payment["payload"],
    }
    refused(store.http.get(dear, headers={"x-payment": encoded(version_1)}))
    assert store.upstream.calls("/echo/row4-dear") == 0
    assert store.chain.balance(payer.address) == 10**6


def test_row_05_a_payment_that_names_no_resource_is_spent_where_it_is_shown(
    store: Shop, payer: LocalAccount
) -> None:
    """Nothing signed names the resource: it buys once, and that wrapper is what it is booked on."""
    one, two = store.wrap("/echo/row5c"), store.wrap("/echo/row5d")
    payment = {k: v for k, v in store.payment(one, payer).items() if k != "resource"}
    assert store.pay(two, payment).status_code == 200
    refused(store.pay(one, payment), "invalid_exact_evm_nonce_already_used")
    token = dict(store.token)
    endpoints = {
        e["path"]: e["id"] for e in store.http.get("/operator/endpoints", headers=token).json()
    }

    def booked(path: str) -> list[str | None]:
        query = {"endpointId": endpoints[path]}
        page = store.http.get("/operator/analytics/logs", params=query, headers=token).json()
        return [row["paymentReference"] for row in page["logs"] if row["statusCode"] == 200]

    eventually(lambda: len(booked("/echo/row5d")) == 1)
    assert booked("/echo/row5d") != [None]
    assert booked("/echo/row5c") == []


def test_row_05_a_payment_that_names_another_resource_is_refused(
    store: Shop, payer: LocalAccount
) -> None:
    one, two = store.wrap("/echo/row5a"), store.wrap("/echo/row5b")
    payment = store.payment(one, payer)
    refused(store.pay(two, payment), "invalid_payment_requirements")
    assert store.upstream.calls("/echo/row5b") == 0


def test_row_06_forged_expired_and_early_payments_are_refused(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/row6", timeoutMs=2000)
    forged = store.payment(url, payer)
    forged["payload"]["authorization"]["from"] = ACCOUNTS[20].address
    refused(store.pay(url, forged), "invalid_exact_evm_payload_signature")
    before = "invalid_exact_evm_payload_authorization_valid_before"
    refused(store.pay(url, store.payment(url, payer, valid_s=-5)), before)
    refused(store.pay(url, store.payment(url, payer, valid_s=5)), before)
    early = store.payment(url, payer)
    early["payload"]["authorization"]["validAfter"] = str(int(time.time()) + 600)
    refused(store.pay(url, early))
    assert store.upstream.calls("/echo/row6") == 0


def malformed() -> list[bytes]:
    deep = b'{"x402Version":2,"accepted":' + b"[" * 3000 + b"]" * 3000 + b"}"
    shapes: list[Any] = [
        [],
        "text",
        5,
        None,
        {},
        {"x402Version": True},
        {"x402Version": "2"},
        {"x402Version": 3},
        {"x402Version": 2},
        {"x402Version": 2, "accepted": [], "payload": {}},
        {"x402Version": 1, "scheme": "exact", "network": 5, "payload": {}},
        {"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": {"a": 1}},
    ]
    texts = [json.dumps(shape).encode() for shape in shapes]
    texts += [deep, b"\xff\xfe", b'{"x402Version":NaN}', b'{"a":1,"a":2}', b""]
    headers = [base64.b64encode(text) for text in texts]
    return [*headers, b"!!!!", b"abc", b"====", "\uff11\uff12".encode()]


def hurt(payment: dict[str, Any]) -> Iterator[dict[str, Any]]:
    values: list[Any] = [
        "-1",
        "1e4",
        " 10000",
        "10000 ",
        "\uff11\uff10\uff10",
        "0x2710",
        "9" * 5000,
        10000,
        None,
        [],
        "",
    ]
    for field in ("value", "validAfter", "validBefore"):
        for value in values:
            made = copy.deepcopy(payment)
            made["payload"]["authorization"][field] = value
            yield made
    for field, value in (("nonce", "0x12"), ("nonce", "0x" + "zz" * 32), ("from", "0x1")):
        made = copy.deepcopy(payment)
        made["payload"]["authorization"][field] = value
        yield made
    for value in ("0x", "0x" + "00" * 65, "0x" + "11" * 4000, "0x" + "ff" * 65, 7):
        made = copy.deepcopy(payment)
        made["payload"]["signature"] = value
        yield made


def test_row_07_malformed_payments_are_a_402_and_never_a_fault(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/row7")
    for header in malformed():
        for name in (b"payment-signature", b"x-payment"):
            refused(store.http.get(url, headers=[(name, header)]))
    for payment in hurt(store.payment(url, payer)):
        refused(store.pay(url, payment))
    assert store.upstream.calls("/echo/row7") == 0
    assert store.chain.balance(payer.address) == 10**6


def test_row_08_a_payment_header_has_a_largest_size(store: Shop, payer: LocalAccount) -> None:
    url = store.wrap("/echo/row8")
    payment = store.payment(url, payer)
    payment["padding"] = "x" * 20_000
    refused(store.pay(url, payment), "invalid_payload")


def test_row_07_no_body_is_taken_in_for_what_is_no_payment(
    store: Shop, payer: LocalAccount
) -> None:
    """Ten megabytes a connection, held for anybody who writes a header."""
    url = store.wrap("/echo/row7-body", method="POST")
    path = httpx2.URL(url).path
    payment = store.payment(url, payer, method="POST")
    payment["payload"]["authorization"]["value"] = "1"
    for bad in ("x", encoded(payment)):
        with RawClient(store.server.address) as client:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n"
            client.send(f"{head}PAYMENT-SIGNATURE: {bad}\r\n\r\n".encode())
            assert client.answer().status == 402
    good = store.payment(url, payer, method="POST")
    answer = store.pay(url, good, method="POST", content=b"x" * 5_000_000)
    assert answer.status_code == 200, answer.text
    assert len(store.upstream.seen[-1].body) == 5_000_000


def test_row_09_two_payments_in_one_request_are_none(store: Shop, payer: LocalAccount) -> None:
    url = store.wrap("/echo/row9")
    header = encoded(store.payment(url, payer)).encode()
    twice = [(b"payment-signature", header), (b"payment-signature", header)]
    refused(store.http.get(url, headers=twice))
    both = [(b"payment-signature", header), (b"x-payment", b"bm90IGEgcGF5bWVudA==")]
    assert store.http.get(url, headers=both).status_code == 200  # version 2 goes first
    assert store.upstream.calls("/echo/row9") == 1


def test_row_10_money_that_moves_away_meanwhile_withholds_the_answer(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/held/row10")
    payment = store.payment(url, payer)
    store.upstream.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(store.pay, url, payment)
        eventually(lambda: store.upstream.calls("/held/row10") == 1)
        send_away(store.chain.wallet, payer)
        store.upstream.gate.set()
        answer = under_way.result()
    refused(answer)
    assert json.loads(base64.b64decode(answer.headers["x-payment-response"]))["success"] is False
    assert b"headers" not in answer.content  # nothing of the upstream's
    assert store.chain.balance(payer.address) == 0


def test_row_11_a_balance_for_one_serves_one(
    pair: tuple[Shop, Shop], dollar_chain: Dollars
) -> None:
    payer = fresh_account()
    dollar_chain.mint(payer.address, CENT)
    url = pair[0].wrap("/echo/row11")
    path = known_everywhere(url, *pair)
    payments = [pair[0].payment(url, payer) for _ in range(10)]

    def send(turn: int) -> int:
        place = pair[turn % 2].server.address + path
        headers = {"payment-signature": encoded(payments[turn])}
        return httpx2.get(place, headers=headers, timeout=40).status_code

    statuses = everybody(send, 10)
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 402}
    assert pair[0].upstream.calls("/echo/row11") == 1
    assert dollar_chain.balance(payer.address) == 0


def test_row_12_an_outcome_nobody_knows_is_never_a_402(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/row12")
    payment = store.payment(url, payer)
    with proxy.failing("eth_getTransactionReceipt"):
        answer = store.pay(url, payment, once=True)
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "settlement_pending"
        assert int(answer.headers["retry-after"]) >= 1
        told = json.loads(base64.b64decode(answer.headers["x-payment-response"]))
        assert told["errorReason"] == "settlement_pending"
    answer = store.pay(url, payment)
    assert answer.status_code == 200
    assert receipt(answer)["success"] is True
    assert store.upstream.calls("/echo/row12") == 1
    assert store.chain.balance(payer.address) == 10**6 - CENT


def test_row_13_an_authorisation_somebody_else_submitted_is_paid(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/held/row13")
    payment = store.payment(url, payer)
    store.upstream.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(store.pay, url, payment)
        eventually(lambda: store.upstream.calls("/held/row13") == 1)
        submit(store.chain.wallet, payment["payload"])
        store.upstream.gate.set()
        answer = under_way.result()
    assert answer.status_code == 200, answer.text
    assert store.chain.balance(payer.address) == 10**6 - CENT


def test_row_13_of_two_payments_submitted_in_one_transaction_each_is_looked_at(
    store: Shop, payer: LocalAccount
) -> None:
    """The first nonce is spent on the payer himself: the second's transfer does not pay for it."""
    urls = [store.wrap(f"/held/row13-{name}", price=0.1) for name in ("a", "b")]
    payments = [store.payment(url, payer) for url in urls]
    back = copy.deepcopy(payments[0]["accepted"])
    back["payTo"] = payer.address
    nonce = payments[0]["payload"]["authorization"]["nonce"]
    to_himself = dollars.authorize(payer.key, back, 84532, nonce=bytes.fromhex(nonce[2:]))
    store.upstream.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        under_way = [pool.submit(store.pay, *each) for each in zip(urls, payments, strict=True)]
        for name in ("a", "b"):
            eventually(lambda: store.upstream.calls(f"/held/row13-{name}") == 1)  # noqa: B023
        submit_together(store.chain.wallet, [to_himself, payments[1]["payload"]])
        store.upstream.gate.set()
        paid = [one.result() for one in under_way]
    assert store.chain.balance(payer.address) == 9 * 10**5  # he has paid once
    assert paid[1].status_code == 200, paid[1].text
    assert paid[0].status_code == 402, paid[0].text
    assert "headers" not in paid[0].json()  # nothing of the upstream's


def test_row_15_settlements_at_once_leave_no_gap(
    pair: tuple[Shop, Shop], dollar_chain: Dollars, payer: LocalAccount
) -> None:
    url = pair[0].wrap("/echo/row15")
    path = known_everywhere(url, *pair)
    payments = [pair[0].payment(url, payer) for _ in range(30)]

    def send(turn: int) -> httpx2.Response:
        place = pair[turn % 2].server.address + path
        headers = {"payment-signature": encoded(payments[turn])}
        return until_known(lambda: httpx2.get(place, headers=headers, timeout=40))

    answers = everybody(send, 30)
    assert [a.status_code for a in answers] == [200] * 30
    assert dollar_chain.balance(payer.address) == 10**6 - 30 * CENT


def test_row_16_without_the_chain_nobody_is_served_or_charged(
    store: Shop, proxy: NodeProxy, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/row16")
    payment = store.payment(url, payer)
    with proxy.failing("eth_call", "eth_blockNumber"):
        answer = store.pay(url, payment, once=True)
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "payments_unavailable"
    assert store.upstream.calls("/echo/row16") == 0
    answer = store.pay(url, payment)  # the very same payment still works
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("path", "status", "fields"),
    [
        ("/status/500", 502, {}),
        ("/status/503", 502, {}),
        ("/status/402", 502, {}),
        ("/status/404", 404, {}),
        ("/status/422", 422, {}),
        ("/large/12000000", 502, {}),
        ("/held/row17", 502, {"timeoutMs": 300}),
    ],
)
def test_row_17_what_is_not_served_is_not_charged(
    store: Shop, payer: LocalAccount, path: str, status: int, fields: dict[str, int]
) -> None:
    url = store.wrap(path, **fields)
    payment = store.payment(url, payer)
    store.upstream.gate.clear()
    answer = store.pay(url, payment)
    store.upstream.gate.set()
    assert answer.status_code == status, answer.text
    assert "payment-response" not in answer.headers
    if status == 502:
        assert answer.json()["code"] == "wrapper_request_failed"
        assert "with the same payment again" in answer.json()["message"]
    assert store.chain.balance(payer.address) == 10**6
    again = store.pay(url, payment)  # the claim was released: the upstream is tried anew
    assert again.status_code == (200 if fields else status)  # the slow one is in time now
    assert store.chain.balance(payer.address) == 10**6 - (CENT if again.status_code == 200 else 0)


def test_row_18_refusals_after_payment_charge_nobody(store: Shop, payer: LocalAccount) -> None:
    limited = store.wrap("/echo/row18", rateLimit=1)
    trusted = store.wrap("/echo/row18t", trustEnabled=True, minScore=99)
    small = store.wrap("/echo/row18s", method="POST", maxBodyBytes=10)
    assert store.pay(limited, store.payment(limited, payer)).status_code == 200
    answer = store.pay(limited, store.payment(limited, payer))
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limit_exceeded")
    assert {"retry-after", "ratelimit-limit", "ratelimit-remaining"} <= answer.headers.keys()
    who = {"x-agent-address": payer.address}
    denied = store.pay(trusted, store.payment(trusted, payer), headers=who)
    assert (denied.status_code, denied.json()["code"]) == (403, "trust_denied")
    nobody = store.http.get(trusted)  # the price is told first, identity is asked with the money
    refused(nobody)
    stranger = store.pay(
        trusted, store.payment(trusted, payer), headers={"x-agent-address": "0x12"}
    )
    assert stranger.status_code in {400, 401, 403}, stranger.text
    gone = store.pay(f"{limited}-gone", store.payment(limited, payer))
    assert (gone.status_code, gone.json()["code"]) == (404, "wrapper_not_found")
    assert store.upstream.calls("/echo/row18t") == 0
    payment = store.payment(small, payer, method="POST")
    large = store.pay(small, payment, method="POST", content=b"x" * 11)
    assert (large.status_code, large.json()["code"]) == (413, "payload_too_large")
    assert store.chain.balance(payer.address) == 10**6 - CENT


def test_row_19_20_shared_caches_and_spoofing_upstreams_get_nowhere(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/spoof/row20")
    answer = store.pay(url, store.payment(url, payer))
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "private"
    assert receipt(answer)["transaction"].startswith("0x")
    assert len(answer.headers.get_list("payment-response")) == 1
    for name in ("payment-receipt", "www-authenticate", "settlement-overrides"):
        assert name not in answer.headers
    free = store.wrap("/spoof/free", price=0)
    plain = store.http.get(free)
    assert not {n for n in plain.headers if n.startswith(("payment", "x-payment"))}
    assert "www-authenticate" not in plain.headers


def test_row_21_credentials_reach_neither_upstream_nor_log(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/row21")
    payment = store.payment(url, payer)
    answer = store.pay(url, payment, headers={"x-agent-session": "s", "x-assay-agent": "me"})
    seen = answer.json()["headers"]
    names = {"x-payment", "payment-signature", "x-agent-session", "x-assay-agent"}
    assert not names & seen.keys()
    log = store.server.said()
    assert payment["payload"]["signature"][2:] not in log
    assert encoded(payment) not in log


def test_row_22_the_host_header_changes_nothing(store: Shop) -> None:
    url = store.wrap("/echo/row22")
    answer = store.http.get(url, headers={"host": "evil.example", "x-forwarded-host": "evil"})
    required = json.loads(base64.b64decode(answer.headers["payment-required"]))
    assert required["resource"]["url"] == url


def test_row_23_an_old_price_is_not_served(store: Shop, payer: LocalAccount) -> None:
    url = store.wrap("/echo/row23", price=0.01)
    payment = store.payment(url, payer)
    listed = store.http.get("/operator/endpoints", headers=dict(store.token)).json()
    old = next(e["id"] for e in listed if e["path"] == "/echo/row23")
    store.http.delete(f"/operator/endpoints/{old}", headers=dict(store.token))
    store.wrap("/echo/row23", price=0.02)
    refused(store.pay(url, payment))
    assert store.demand(url)["accepts"][0]["amount"] == "20000"
    assert store.upstream.calls("/echo/row23") == 0


@pytest.mark.parametrize("price", ["0.0000005", "0.0000019", "-1", "1e400", "0.1234567", "101"])
def test_row_24_a_price_no_asset_can_express_is_refused(store: Shop, price: str) -> None:
    body = f'{{"path":"/echo/row24","pricePerCall":{price},"targetUrl":"{store.upstream.url}"}}'
    headers = {**store.token, "content-type": "application/json"}
    answer = store.http.post("/operator/endpoints", content=body, headers=headers)
    assert answer.status_code == 400, answer.text


def test_row_27_failed_settlements_of_one_payer_are_limited(
    store: Shop, dollar_chain: Dollars
) -> None:
    griefer = fresh_account()
    url = store.wrap("/held/row27")
    reasons = []
    for _ in range(6):
        dollar_chain.mint(griefer.address, CENT)
        payment = store.payment(url, griefer)
        store.upstream.gate.clear()
        calls = store.upstream.calls("/held/row27")
        with ThreadPoolExecutor(1) as pool:
            under_way = pool.submit(store.pay, url, payment)
            eventually(  # the last is refused before it gets there
                lambda: under_way.done() or store.upstream.calls("/held/row27") > calls  # noqa: B023
            )
            if not under_way.done():
                send_away(store.chain.wallet, griefer)
            store.upstream.gate.set()
            answer = under_way.result()
        refused(answer)
        reasons.append(answer.json()["reason"])
    assert reasons[-1] == "too_many_failed_settlements"
    assert store.upstream.calls("/held/row27") == 5


def test_row_28_a_payment_identifier_is_no_bearer_token(store: Shop, payer: LocalAccount) -> None:
    url = store.wrap("/echo/row28")
    extension = {
        "payment-identifier": {"info": {"required": False, "id": "order-0123456789abcdef"}}
    }
    first = {**store.payment(url, payer), "extensions": extension}
    answer = store.pay(url, first)
    assert answer.status_code == 200
    assert store.pay(url, first).content == answer.content
    other = {**store.payment(url, payer), "extensions": extension}
    assert store.pay(url, other).status_code == 409
    stranger = {**store.payment(url, fresh_account()), "extensions": extension}
    refused(store.pay(url, stranger), "insufficient_funds")
    assert store.upstream.calls("/echo/row28") == 1


def test_row_28_of_payments_with_one_identifier_at_once_one_is_taken(
    pair: tuple[Shop, Shop], payer: LocalAccount
) -> None:
    url = pair[0].wrap("/echo/row28-race")
    path = known_everywhere(url, *pair)
    extension = {"payment-identifier": {"info": {"required": False, "id": "order-at-once-012345"}}}
    payments = [{**pair[0].payment(url, payer), "extensions": extension} for _ in range(10)]

    def send(turn: int) -> int:
        place = pair[turn % 2].server.address + path
        headers = {"payment-signature": encoded(payments[turn])}
        return httpx2.get(place, headers=headers, timeout=40).status_code

    statuses = everybody(send, 10)
    assert sorted(statuses) == [200] + [409] * 9
    assert pair[0].upstream.calls("/echo/row28-race") == 1
    assert pair[0].chain.balance(payer.address) == 10**6 - CENT


def test_a_payer_pays_for_the_agent_that_is_named_where_a_name_is_enough(
    store: Shop, payer: LocalAccount
) -> None:
    """Whose agent pays by a wallet of somebody else's cannot prove itself by the payment."""
    trusted = {"trustEnabled": True, "minScore": 0}
    told = store.wrap("/echo/told", identityProof="asserted", **trusted)
    proven = store.wrap("/echo/proven", **trusted)
    named = fresh_account().address
    for url, name, known in (
        (told, named, (named, "false")),
        (told, payer.address, (payer.address, "true")),
        (told, None, (payer.address, "true")),
        (proven, named, (payer.address, "true")),
    ):
        headers = {} if name is None else {"x-agent-address": name}
        answer = store.pay(url, store.payment(url, payer), headers=headers)
        assert answer.status_code == 200, answer.text
        seen = store.upstream.seen[-1].headers
        assert (seen["x-assay-agent"], seen["x-assay-identity-proven"]) == known


def test_an_agent_that_is_named_where_a_name_is_enough_is_judged_before_it_pays(
    store: Shop, payer: LocalAccount
) -> None:
    strict = {"trustEnabled": True, "minScore": 100}
    told = store.wrap("/echo/told-strict", identityProof="asserted", **strict)
    proven = store.wrap("/echo/proven-strict", **strict)
    who = {"x-agent-address": payer.address}
    assert store.http.get(told, headers=who).json()["code"] == "trust_denied"
    refused(store.http.get(told))
    refused(store.http.get(proven, headers=who))  # its payment may prove it yet


def test_settling_first_keeps_what_an_upstream_owes(store: Shop, payer: LocalAccount) -> None:
    url = store.wrap("/status/500", settle="before", method="DELETE")
    payment = store.payment(url, payer, method="DELETE")
    answer = store.pay(url, payment, method="DELETE")
    assert answer.status_code == 502
    assert "The payment has settled" in answer.json()["message"]
    assert receipt(answer)["success"] is True
    assert store.chain.balance(payer.address) == 10**6 - CENT
    again = store.pay(url, payment, method="DELETE")  # the same request may be sent again, free
    assert again.status_code == 502
    assert store.chain.balance(payer.address) == 10**6 - CENT


def test_a_retry_gets_the_stored_answer_and_the_same_receipt(
    store: Shop, payer: LocalAccount
) -> None:
    url = store.wrap("/echo/again")
    payment = store.payment(url, payer)
    first, second = store.pay(url, payment), store.pay(url, payment)
    assert (first.content, receipt(first)) == (second.content, receipt(second))
    assert store.upstream.calls("/echo/again") == 1


def elsewhere() -> httpx2.Client:
    """A client at another network address than `Shop.http`."""
    transport = httpx2.HTTPTransport(local_address="127.0.0.2", limits=EARLY)
    return httpx2.Client(transport=transport, timeout=40)


def stolen(store: Shop, url: str, payment: dict[str, Any]) -> list[dict[str, str]]:
    """A payment by what stands on the chain alone, in both versions: the rest is the thief's."""
    payload, own = payment["payload"], store.demand(url)
    newer = {**payment, "accepted": own["accepts"][0], "payload": payload}
    older = {"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": payload}
    return [{"payment-signature": encoded(newer)}, {"x-payment": encoded(older)}]


def send_away(wallet: Wallet, payer: LocalAccount) -> None:
    """All the payer has, to somebody else, by an authorisation that we submit."""
    left = dollars.balance(wallet, USDC, payer.address)
    requirement = {
        "amount": str(left),
        "payTo": ACCOUNTS[34].address,
        "asset": USDC,
        "extra": {"name": "USDC", "version": "2"},
    }
    # The chain dates its blocks a second apart: after a few hundred it is far ahead of us.
    submit(wallet, dollars.authorize(payer.key, requirement, 84532, valid_s=86_400))


def submit(wallet: Wallet, payload: Any) -> str:
    """Anybody may submit an authorisation; the transaction's hash."""
    sent = wallet.send(ACCOUNTS[1].key, USDC, transfer_call(payload))
    return str(sent["transactionHash"])


def submit_together(wallet: Wallet, payloads: Sequence[Any]) -> None:
    """Several in one transaction: a contract's constructor makes the calls one after the other."""
    calls = [transfer_call(payload) for payload in payloads]
    size, each = len(calls[0]), 49
    code = b""
    for number in range(len(calls)):
        start, ends = len(calls) * each + 1 + number * size, (number + 1) * each - 1
        code += b"\x61" + size.to_bytes(2) + b"\x61" + start.to_bytes(2) + b"\x60\x00\x39"
        code += b"\x60\x00\x60\x00\x61" + size.to_bytes(2) + b"\x60\x00\x60\x00"
        code += b"\x73" + bytes.fromhex(USDC[2:]) + b"\x5a\xf1"
        code += b"\x61" + ends.to_bytes(2) + b"\x57\xfe\x5b"  # a call that fails fails them all
    assert len(code) == len(calls) * each
    wallet.send(ACCOUNTS[1].key, None, code + b"\x00" + b"".join(calls))


def transfer_call(payload: Any) -> bytes:
    from eth_abi.abi import encode  # noqa: PLC0415

    signed = payload["authorization"]
    signature = bytes.fromhex(payload["signature"][2:])
    kinds = ["address", "address", "uint256", "uint256", "uint256", "bytes32", "uint8"]
    name = (
        "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,"
        "bytes32,bytes32)"
    )
    values = [
        checksum(signed["from"]),
        checksum(signed["to"]),
        int(signed["value"]),
        int(signed["validAfter"]),
        int(signed["validBefore"]),
        bytes.fromhex(signed["nonce"][2:]),
        signature[64],
        signature[:32],
        signature[32:64],
    ]
    return selector(name) + encode([*kinds, "bytes32", "bytes32"], values)
