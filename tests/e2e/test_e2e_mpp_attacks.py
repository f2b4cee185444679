"""The attacks and faults of payment-safety.md#attacks-and-faults, against wrappers that are paid
over MPP.

The chain is real, the upstream counts its calls, the seller's balance is read before and after.
"""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from mpp import Challenge, Credential
from mpp.methods.tempo.account import TempoAccount
from mpp.methods.tempo.client import TempoMethod

from assay_demo.chain.accounts import ACCOUNTS
from tests.e2e.test_e2e_payment_attacks import SECRETS, fresh_account, known_everywhere
from tests.support.databases import migrated_postgresql
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import free_port, until_known
from tests.support.tempo import KEY, MODERATO, PATH_USD, PAYER, Tempo
from tests.support.tempo_shop import (
    CENT,
    SELLER,
    TempoShop,
    credential_parts,
    header_of,
    opened,
    signed,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
OTHER_USD = "0x20c0000000000000000000000000000000000001"
"""alphaUSD: a token of the local chain that no wrapper here takes."""


@pytest.fixture(scope="module")
def proxy(tempo: Tempo) -> Iterator[NodeProxy]:
    with node_proxy(tempo.url) as running:
        yield running


@pytest.fixture(scope="module")
def store(
    tempo: Tempo, proxy: NodeProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TempoShop]:
    folder = tmp_path_factory.mktemp("mpp")
    settings = {"ASSAY_SETTLEMENT_S": "2", "ASSAY_SETTLEMENT_LEASE_S": "1"}
    with opened(tempo, folder, rpc_url=proxy.url, **settings) as shop:
        yield shop


@pytest.fixture(scope="module")
def pair(
    tempo: Tempo, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TempoShop, TempoShop]]:
    """Two server processes that share one PostgreSQL."""
    url = migrated_postgresql()
    settings = {"ASSAY_DATABASE_URL": url, "ASSAY_PUBLIC_URL": "http://assay.example", **SECRETS}
    with (
        opened(tempo, tmp_path_factory.mktemp("one"), port=free_port(), **settings) as one,
        opened(tempo, tmp_path_factory.mktemp("two"), port=free_port(), **settings) as two,
    ):
        yield one, two


def asked(store: TempoShop, url: str) -> Challenge:
    answer = store.shop.http.get(url)
    assert answer.status_code == 402, answer.text
    return Challenge.from_www_authenticate(answer.headers["www-authenticate"])


async def transaction(store: TempoShop, challenge: Challenge, **changed: Any) -> str:
    """A signed transaction for a challenge, with some of what it asks for changed."""
    method = TempoMethod(
        account=TempoAccount.from_key(KEY), rpc_url=store.tempo.url, chain_id=store.tempo.chain_id
    )
    request = {**challenge.request, **changed}
    made = await method.create_credential(replace(challenge, request=request))
    return str(made.payload["signature"])


def credential(store: TempoShop, challenge: Challenge, payload: dict[str, str]) -> str:
    source = f"did:pkh:eip155:{store.tempo.chain_id}:{PAYER}"
    return Credential(challenge.to_echo(), payload, source).to_authorization()


def pay(store: TempoShop, url: str, header: str, **request: Any) -> httpx2.Response:
    headers = {**request.pop("headers", {}), "authorization": header}
    return store.shop.http.get(url, headers=headers, **request)


def refused(answer: httpx2.Response) -> str:
    """A 402 with a fresh challenge and no receipt, kept by nobody; its reason."""
    assert answer.status_code == 402, answer.text
    assert answer.headers["www-authenticate"].startswith("Payment ")
    assert answer.headers["cache-control"] == "no-store"
    assert "payment-receipt" not in answer.headers
    assert answer.json()["code"] == "payment_required"
    return str(answer.json()["reason"])


async def mined(store: TempoShop, raw: str) -> str:
    """Sent by the payer himself; the transaction's hash."""
    sent = store.tempo.request("eth_sendRawTransactionSync", raw)
    assert sent["status"] == "0x1"
    return str(sent["transactionHash"])


async def test_row_02_copies_at_once_are_served_once(pair: tuple[TempoShop, TempoShop]) -> None:
    url = pair[0].wrap("/echo/row2")
    path = known_everywhere(url, pair[0].shop, pair[1].shop)
    header = await signed(url, pair[0].tempo)
    before = pair[0].tempo.balance(SELLER)

    def send(turn: int) -> httpx2.Response:
        place = pair[turn % 2].shop.server.address + path
        return httpx2.get(place, headers={"authorization": header}, timeout=40)

    with ThreadPoolExecutor(15) as pool:
        answers = list(pool.map(send, range(15)))
    good = [a for a in answers if a.status_code == 200]
    assert good
    assert {a.status_code for a in answers} <= {200, 503}  # never a 402: it would be paid twice
    assert len({a.content for a in good}) == 1
    assert sum(one.up.calls("/echo/row2") for one in pair) <= 2
    assert pair[0].tempo.balance(SELLER) - before == CENT


async def test_row_02_one_transaction_pays_once_whoever_shows_its_hash(
    pair: tuple[TempoShop, TempoShop],
) -> None:
    url = pair[0].wrap("/echo/row2-push")
    path = known_everywhere(url, pair[0].shop, pair[1].shop)
    challenge = asked(pair[0], url)
    paid = await mined(pair[0], await transaction(pair[0], challenge))
    header = credential(pair[0], challenge, {"type": "hash", "hash": paid})
    shouted = credential(pair[0], challenge, {"type": "hash", "hash": "0x" + paid[2:].upper()})

    def send(turn: int) -> int:
        place = pair[turn % 2].shop.server.address + path
        given = header if turn % 4 < 2 else shouted
        return httpx2.get(place, headers={"authorization": given}, timeout=40).status_code

    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(send, range(12)))
    assert 200 in statuses
    assert sum(one.up.calls("/echo/row2-push") for one in pair) == 1


@pytest.mark.parametrize("kind", ["transaction", "hash"])
@pytest.mark.parametrize(
    "changed",
    [
        {"amount": "9999"},
        {"amount": "10001"},
        {"amount": "1"},
        {"recipient": ACCOUNTS[33].address},
        {"currency": OTHER_USD},
    ],
    ids=json.dumps,
)
async def test_row_03_04_25_what_the_transaction_does_is_looked_at(
    store: TempoShop, kind: str, changed: dict[str, str]
) -> None:
    """The echoed challenge is ours, only the transaction beside it pays something else."""
    path = f"/echo/row3/{kind}/{next(iter(changed))}-{next(iter(changed.values()))}"
    url = store.wrap(path)
    challenge = asked(store, url)
    raw = await transaction(store, challenge, **changed)
    payload = {"type": "transaction", "signature": raw}
    if kind == "hash":
        payload = {"type": "hash", "hash": await mined(store, raw)}
    before = store.tempo.balance(SELLER)
    refused(pay(store, url, credential(store, challenge, payload)))
    assert store.up.calls(path) == 0
    assert store.tempo.balance(SELLER) == before


@pytest.mark.parametrize("kind", ["transaction", "hash"])
async def test_row_25_a_transaction_pays_its_own_challenge_only(
    store: TempoShop, kind: str
) -> None:
    """Its memo names the challenge: an old payment, or somebody else's, is none for this call."""
    url = store.wrap(f"/echo/row25-memo-{kind}")
    one, two = asked(store, url), asked(store, url)
    raw = await transaction(store, one)
    payload = {"type": "transaction", "signature": raw}
    if kind == "hash":
        payload = {"type": "hash", "hash": await mined(store, raw)}
    refused(pay(store, url, credential(store, two, payload)))
    assert store.up.calls(f"/echo/row25-memo-{kind}") == 0
    before = store.tempo.balance(SELLER)
    assert pay(store, url, credential(store, one, payload)).status_code == 200  # whose it is
    refused(pay(store, url, credential(store, two, payload)))
    assert store.up.calls(f"/echo/row25-memo-{kind}") == 1
    assert store.tempo.balance(SELLER) - before == (CENT if kind == "transaction" else 0)


@pytest.mark.parametrize("first", ["transaction", "hash"])
async def test_row_26_a_transaction_and_its_hash_are_one_payment(
    store: TempoShop, first: str
) -> None:
    """Sent by us or shown as sent: the money moves once, so it buys once."""
    path = f"/echo/row26-{first}"
    url = store.wrap(path)
    challenge = asked(store, url)
    raw = await transaction(store, challenge)
    both = {"transaction": {"type": "transaction", "signature": raw}}
    before = store.tempo.balance(SELLER)
    if first == "hash":
        both["hash"] = {"type": "hash", "hash": await mined(store, raw)}
    paid = pay(store, url, credential(store, challenge, both[first]))
    assert paid.status_code == 200, paid.text
    if first == "transaction":
        told = paid.headers["payment-receipt"]
        reference = json.loads(base64.urlsafe_b64decode(told + "=="))["reference"]
        both["hash"] = {"type": "hash", "hash": reference}
    for kind, payload in both.items():
        answer = pay(store, f"{url}?again={kind}", credential(store, challenge, payload))
        assert answer.status_code == 402, (kind, answer.text)
    assert store.up.calls(path) == 1
    assert store.tempo.balance(SELLER) - before == CENT


async def test_row_25_a_challenge_of_another_house_is_none(store: TempoShop) -> None:
    url = store.wrap("/echo/row25-foreign")
    ours = asked(store, url)
    foreign = Challenge.create(
        secret_key="somebody else's",
        realm=ours.realm,
        method=ours.method,
        intent=ours.intent,
        request=ours.request,
        expires=ours.expires,
        meta=ours.opaque,
    )
    payload = {"type": "transaction", "signature": await transaction(store, foreign)}
    before = store.tempo.balance(SELLER)
    refused(pay(store, url, credential(store, foreign, payload)))
    assert store.up.calls("/echo/row25-foreign") == 0
    assert store.tempo.balance(SELLER) == before


async def test_who_pays_themselves_is_refused(store: TempoShop) -> None:
    """A payment that moves nothing buys nothing (payment-safety.md#gas-griefing)."""
    url = store.wrap("/echo/self", payoutAddress=PAYER)
    challenge = asked(store, url)
    payload = {"type": "transaction", "signature": await transaction(store, challenge)}
    assert refused(pay(store, url, credential(store, challenge, payload))) == "verification-failed"
    pushed = {"type": "hash", "hash": await mined(store, payload["signature"])}
    assert refused(pay(store, url, credential(store, challenge, pushed))) == "verification-failed"
    assert store.up.calls("/echo/self") == 0


async def test_row_07_08_malformed_and_oversized_credentials_are_no_fault(
    store: TempoShop,
) -> None:
    url = store.wrap("/echo/row7")
    parts = credential_parts(await signed(url, store.tempo))
    deep = b"[" * 3000 + b"]" * 3000
    texts = [b"[]", b"null", b"5", b"\xff\xfe", b'{"challenge":NaN}', deep, b'{"challenge":' + deep]
    headers = ["Payment " + base64.urlsafe_b64encode(t).rstrip(b"=").decode() for t in texts]
    spoilt: list[dict[str, Any]] = [
        {"payload": []},
        {"payload": {}},
        {"payload": {"type": "proof", "signature": "0x"}},
        {"payload": {"type": "hash", "hash": 7}},
        {"payload": {"type": "hash", "hash": "0x12"}},
        {"payload": {"type": "transaction", "signature": "0x76" + "c0" * 20_000}},
        {"payload": {"type": "transaction", "signature": "zz"}},
        {"challenge": {}},
        {"challenge": None},
        {"challenge": {**parts["challenge"], "expires": "soon"}},
        {"challenge": {**parts["challenge"], "request": "!!"}},
        {"challenge": {**parts["challenge"], "id": ["x"]}},
        {"source": 5},
    ]
    headers += [header_of({**parts, **changed}) for changed in spoilt]
    for header in headers:
        refused(pay(store, url, header))
    huge = header_of({**parts, "padding": "x" * 70_000})
    assert pay(store, url, huge).status_code in {402, 431}
    assert store.up.calls("/echo/row7") == 0


async def test_row_11_no_more_is_served_than_a_balance_pays_for(
    pair: tuple[TempoShop, TempoShop],
) -> None:
    """Four cents are at most three calls with their fees."""
    store = pair[0]
    payer = fresh_account()
    call = "0xa9059cbb" + payer.address[2:].rjust(64, "0") + f"{4 * CENT:064x}"
    store.tempo.request("eth_sendTransaction", {"from": PAYER, "to": PATH_USD, "data": call})
    while store.tempo.balance(payer.address) != 4 * CENT:
        pass
    url = store.wrap("/echo/row11")
    path = known_everywhere(url, store.shop, pair[1].shop)
    before = store.tempo.balance(SELLER)
    method = TempoMethod(
        account=TempoAccount.from_key(payer.key), rpc_url=store.tempo.url, chain_id=MODERATO
    )
    made = [await method.create_credential(asked(store, url)) for _ in range(8)]

    def send(turn: int) -> int:
        place = pair[turn % 2].shop.server.address + path
        headers = {"authorization": made[turn].to_authorization()}
        return until_known(lambda: httpx2.get(place, headers=headers, timeout=40)).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, range(8)))
    assert set(statuses) == {200, 402}
    served = statuses.count(200)
    assert 1 <= served <= 3
    assert store.tempo.balance(SELLER) - before == served * CENT
    assert sum(one.up.calls("/echo/row11") for one in pair) == served


async def test_row_12_an_outcome_nobody_knows_is_never_a_402(
    store: TempoShop, proxy: NodeProxy
) -> None:
    url = store.wrap("/echo/row12")
    header = await signed(url, store.tempo)
    before = store.tempo.balance(SELLER)
    with proxy.failing(
        "eth_sendRawTransactionSync", "eth_sendRawTransaction", "eth_getTransactionReceipt"
    ):
        answer = pay(store, url, header)
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "settlement_pending"
        assert "www-authenticate" not in answer.headers  # nobody is asked to pay anew
        assert int(answer.headers["retry-after"]) >= 1
    answer = until_known(lambda: pay(store, url, header))
    assert answer.status_code == 200, answer.text
    assert "payment-receipt" in answer.headers
    assert store.up.calls("/echo/row12") == 1
    assert store.tempo.balance(SELLER) - before == CENT


async def test_row_13_a_transaction_the_payer_sent_himself_is_paid(store: TempoShop) -> None:
    url = store.wrap("/held/row13")
    challenge = asked(store, url)
    raw = await transaction(store, challenge)
    header = credential(store, challenge, {"type": "transaction", "signature": raw})
    before = store.tempo.balance(SELLER)
    store.up.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(pay, store, url, header)
        while not store.up.calls("/held/row13"):
            pass
        shown = {"type": "hash", "hash": await mined(store, raw)}
        for place in (url, f"{url}?x=1"):  # it is being worked on already, as what was sent to us
            refused(pay(store, place, credential(store, challenge, shown)))
        store.up.gate.set()
        answer = under_way.result()
    answer = answer if answer.status_code == 200 else until_known(lambda: pay(store, url, header))
    assert answer.status_code == 200, answer.text
    assert store.up.calls("/held/row13") == 1
    assert store.tempo.balance(SELLER) - before == CENT


async def test_row_16_without_the_chain_nobody_is_served_or_charged(
    store: TempoShop, proxy: NodeProxy
) -> None:
    url = store.wrap("/echo/row16")
    header = await signed(url, store.tempo)
    before = store.tempo.balance(SELLER)
    with proxy.failing("eth_call", "eth_blockNumber", "eth_sendRawTransactionSync"):
        answer = pay(store, url, header)
        assert answer.status_code == 503, answer.text
        assert answer.json()["code"] == "payments_unavailable"
    assert store.up.calls("/echo/row16") == 0
    assert store.tempo.balance(SELLER) == before
    assert until_known(lambda: pay(store, url, header)).status_code == 200  # the very same


@pytest.mark.parametrize(("path", "status"), [("/status/500", 502), ("/status/404", 404)])
async def test_row_17_what_is_not_served_is_not_charged(
    store: TempoShop, path: str, status: int
) -> None:
    url = store.wrap(path)
    header = await signed(url, store.tempo)
    before = store.tempo.balance(SELLER)
    answer = pay(store, url, header)
    assert answer.status_code == status, answer.text
    assert "payment-receipt" not in answer.headers
    assert store.tempo.balance(SELLER) == before


async def test_row_17_a_hash_that_bought_nothing_may_be_shown_again(store: TempoShop) -> None:
    """Its money has moved already: it is owed, so the same request may come until it is served."""
    url = store.wrap("/status/503")
    challenge = asked(store, url)
    paid = await mined(store, await transaction(store, challenge))
    header = credential(store, challenge, {"type": "hash", "hash": paid})
    for _ in range(2):
        answer = pay(store, url, header)
        assert answer.status_code == 502, answer.text
        assert "payment-receipt" not in answer.headers  # that stands on what was served alone
    assert store.up.calls("/status/503") == 2


async def test_row_18_refusals_after_payment_charge_nobody(store: TempoShop) -> None:
    limited = store.wrap("/echo/row18", rateLimit=1)
    trusted = store.wrap("/echo/row18t", trustEnabled=True, minScore=99)
    assert pay(store, limited, await signed(limited, store.tempo)).status_code == 200
    before = store.tempo.balance(SELLER)
    again = pay(store, limited, await signed(limited, store.tempo))
    assert (again.status_code, again.json()["code"]) == (429, "rate_limit_exceeded")
    header = await signed(trusted, store.tempo)
    denied = pay(store, trusted, header, headers={"x-agent-address": PAYER})
    assert (denied.status_code, denied.json()["code"]) == (403, "trust_denied")
    stranger = pay(store, trusted, header, headers={"x-agent-address": ACCOUNTS[33].address})
    assert stranger.status_code in {401, 403}
    assert "www-authenticate" not in denied.headers
    assert store.tempo.balance(SELLER) == before
    assert store.up.calls("/echo/row18t") == 0


async def test_row_21_credentials_reach_neither_upstream_nor_log(store: TempoShop) -> None:
    url = store.wrap("/echo/row21")
    header = await signed(url, store.tempo)
    answer = pay(store, url, header, headers={"payment-authorization": "Payment e30"})
    assert answer.status_code == 200
    assert not {"authorization", "payment-authorization"} & answer.json()["headers"].keys()
    log = store.shop.server.said()
    assert header.partition(" ")[2] not in log
    assert credential_parts(header)["payload"]["signature"][2:] not in log


async def test_row_22_the_host_header_changes_nothing(store: TempoShop) -> None:
    url = store.wrap("/echo/row22")
    plain = asked(store, url)
    answer = store.shop.http.get(url, headers={"host": "evil.example"})
    spoofed = Challenge.from_www_authenticate(answer.headers["www-authenticate"])
    assert spoofed.realm == plain.realm == httpx2.URL(url).netloc.decode()
    assert "evil" not in answer.text + str(spoofed)


async def test_row_23_an_old_price_is_not_served(store: TempoShop) -> None:
    url = store.wrap("/echo/row23", price=0.01)
    header = await signed(url, store.tempo)
    token = dict(store.shop.token)
    listed = store.shop.http.get("/operator/endpoints", headers=token).json()
    old = next(e["id"] for e in listed if e["path"] == "/echo/row23")
    store.shop.http.delete(f"/operator/endpoints/{old}", headers=token)
    store.wrap("/echo/row23", price=0.02)
    before = store.tempo.balance(SELLER)
    refused(pay(store, url, header))
    assert asked(store, url).request["amount"] == "20000"
    assert store.up.calls("/echo/row23") == 0
    assert store.tempo.balance(SELLER) == before


def test_the_local_chain_has_what_these_tests_pay_with(tempo: Tempo) -> None:
    assert tempo.dollar == PATH_USD
    assert tempo.balance(PAYER) > 10**9
