"""Stock MPP clients pay unmodified wrappers on a local Tempo chain."""

import base64
import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from mpp.client import Mpp
from mpp.methods.tempo import client as tempo_client
from mpp.methods.tempo.account import TempoAccount

from tests.support import node
from tests.support.tempo import KEY, MAINNET, MODERATO, PAYER, Tempo, running
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


@pytest.fixture(scope="module")
def store(tempo: Tempo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TempoShop]:
    with opened(tempo, tmp_path_factory.mktemp("mpp")) as shop:
        yield shop


@pytest.fixture(scope="module", params=[MODERATO, MAINNET])
def either(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TempoShop]:
    """A shop on a chain of its own, of either network."""
    with (
        running(request.param) as chain,
        opened(chain, tmp_path_factory.mktemp("mpp")) as shop,
    ):
        yield shop


async def pay(url: str, tempo: Tempo, **request: object) -> tuple[int, dict[str, str]]:
    account = TempoAccount.from_key(KEY)
    method = tempo_client.charge(account=account, rpc_url=tempo.url, chain_id=tempo.chain_id)
    async with Mpp(methods=[method]) as client:
        answer = await client.fetch(url, **request)  # type: ignore[arg-type]
    return answer.status_code, dict(answer.headers)


async def test_the_python_client_pays(either: TempoShop) -> None:
    store = either
    url = store.wrap("/echo", method="*")
    before, had = store.tempo.balance(SELLER), store.tempo.balance(PAYER)
    for turn in range(2):
        status, headers = await pay(url, store.tempo, method="POST", json={"turn": turn})
        assert status == 200
        receipt = json.loads(base64.urlsafe_b64decode(headers["payment-receipt"] + "=="))
        assert receipt["method"] == "tempo"
        mined = store.tempo.request("eth_getTransactionReceipt", receipt["reference"])
        assert mined["status"] == "0x1"
        assert headers["cache-control"] == "private"
    assert store.tempo.balance(SELLER) - before == 2 * CENT
    assert had - store.tempo.balance(PAYER) >= 2 * CENT  # and the fees of its own transactions


@pytest.mark.parametrize("mode", ["pull", "push"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_javascript_client_pays(either: TempoShop, mode: str, method: str) -> None:
    store, path = either, f"/echo/{mode}/{method.lower()}"
    url = store.wrap(path, method=method)
    before, had = store.tempo.balance(SELLER), store.tempo.balance(PAYER)
    asked = {"url": url, "method": method, "privateKey": KEY, "rpcUrl": store.tempo.url}
    if method == "POST":
        asked["body"] = '{"to":"b\u00fcy"}'
    answer = node.run("mppx_client.mjs", {**asked, "mode": mode, "chainId": store.tempo.chain_id})
    assert answer.status == 200, answer
    assert "payment-receipt" in answer.headers
    assert store.tempo.balance(SELLER) - before == CENT
    assert had - store.tempo.balance(PAYER) >= CENT
    assert store.up.calls(path) == 1
    assert store.up.seen[-1].body == asked.get("body", "").encode()


def test_a_call_without_payment_is_told_how_to_pay(store: TempoShop) -> None:
    answer = store.shop.http.get(store.wrap("/told"))
    assert answer.status_code == 402
    assert answer.headers["www-authenticate"].startswith("Payment ")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["code"] == "payment_required"
    assert store.up.calls("/told") == 0


async def test_row_25_what_a_credential_is_bound_to_cannot_be_changed(store: TempoShop) -> None:
    url, other = store.wrap("/echo/row25", method="*"), store.wrap("/echo/row25-other")
    dear = store.wrap("/echo/row25-dear", price=0.02)
    header = await signed(url, store.tempo)
    before = store.tempo.balance(SELLER)
    parts = credential_parts(header)
    tampered = []
    for name, value in (
        ("id", "x" * 43),
        ("realm", "evil.example"),
        ("expires", "2099-01-01T00:00:00Z"),
    ):
        changed = copy.deepcopy(parts)
        changed["challenge"][name] = value
        tampered.append(header_of(changed))
    cheaper = copy.deepcopy(parts)
    asked = json.loads(base64.urlsafe_b64decode(parts["challenge"]["request"] + "=="))
    asked["amount"] = "1"
    cheaper["challenge"]["request"] = (
        base64.urlsafe_b64encode(json.dumps(asked).encode()).rstrip(b"=").decode()
    )
    unknown = copy.deepcopy(parts)
    unknown["payload"] = {"type": "hash", "hash": "0x" + "12" * 32}
    broken = copy.deepcopy(parts)
    broken["payload"] = {"type": "transaction", "signature": "0x76deadbeef"}
    tampered += [header_of(cheaper), header_of(broken), "Payment", "Payment !!!", "Payment e30"]
    for bad in tampered:
        answer = store.shop.http.get(url, headers={"authorization": bad})
        assert answer.status_code == 402, (bad[:80], answer.text)
        assert answer.headers["www-authenticate"].startswith("Payment ")
    answer = store.shop.http.get(url, headers={"authorization": header_of(unknown)})
    assert answer.status_code in {402, 503}  # a transaction nobody knows: not yet, or never
    for place, method in ((other, "GET"), (dear, "GET"), (url, "POST")):
        answer = store.shop.http.request(method, place, headers={"authorization": header})
        assert answer.status_code == 402, (place, method, answer.text)
    twice = [("authorization", header), ("authorization", header)]
    assert store.shop.http.get(url, headers=twice).status_code == 402
    for path in ("/echo/row25", "/echo/row25-other", "/echo/row25-dear"):
        assert store.up.calls(path) == 0
    assert store.tempo.balance(SELLER) == before


async def test_row_25_a_challenge_pays_for_the_body_it_was_asked_for_alone(
    store: TempoShop,
) -> None:
    """Else whoever catches an unspent credential could have another order served with it."""
    url = store.wrap("/echo/row25-body", method="*")
    before = store.tempo.balance(SELLER)
    bound = await signed(url, store.tempo, "POST", b'{"order":1}')
    free = await signed(url, store.tempo, "POST")
    assert "digest" in credential_parts(bound)["challenge"]
    assert "digest" not in credential_parts(free)["challenge"]
    stripped = credential_parts(bound)
    del stripped["challenge"]["digest"]
    for header, body in (
        (bound, b'{"order":2}'),
        (bound, b'{"order":1} '),
        (bound, b""),
        (free, b'{"order":1}'),
        (header_of(stripped), b'{"order":1}'),
        (header_of(stripped), b""),
    ):
        answer = store.shop.http.post(url, content=body, headers={"authorization": header})
        assert answer.status_code == 402, (body, answer.text)
        fresh = answer.headers["www-authenticate"]
        assert ("digest=" in fresh) == bool(body)  # what would be right, is said
        assert answer.json()["reason"] == "invalid-challenge"
    assert store.up.calls("/echo/row25-body") == 0
    assert store.tempo.balance(SELLER) == before
    for header, body in ((bound, b'{"order":1}'), (free, b"")):
        answer = store.shop.http.post(url, content=body, headers={"authorization": header})
        assert answer.status_code == 200, answer.text
        assert store.up.seen[-1].body == body
    assert store.tempo.balance(SELLER) - before == 2 * CENT


async def test_row_25_a_challenge_pays_for_the_query_it_was_asked_for_alone(
    store: TempoShop,
) -> None:
    """What is ordered stands in a query as often as in a body."""
    url = store.wrap("/echo/row25-query")
    before = store.tempo.balance(SELLER)
    bound, free = await signed(f"{url}?order=1", store.tempo), await signed(url, store.tempo)
    for header, query in ((bound, "?order=2"), (bound, "?order=1&x"), (bound, ""), (free, "?o=1")):
        answer = store.shop.http.get(url + query, headers={"authorization": header})
        assert answer.status_code == 402, (query, answer.text)
        assert answer.json()["reason"] == "invalid-challenge"
    assert store.up.calls("/echo/row25-query") == 0
    assert store.tempo.balance(SELLER) == before
    for header, query in ((bound, "?order=1"), (free, "")):
        answer = store.shop.http.get(url + query, headers={"authorization": header})
        assert answer.status_code == 200, answer.text
    assert store.tempo.balance(SELLER) - before == 2 * CENT
    long = store.shop.http.get(f"{url}?order={'1' * 8000}")
    assert len(long.headers["www-authenticate"]) < 2000  # bound to it without repeating it


def test_a_body_above_the_cap_is_refused_before_it_is_asked_to_be_paid(store: TempoShop) -> None:
    url = store.wrap("/echo/cap", method="POST", maxBodyBytes=10)
    assert store.shop.http.post(url, content=b"x" * 11).status_code == 413
    assert store.shop.http.post(url, content=iter([b"x" * 6, b"y" * 6])).status_code == 413
    assert store.shop.http.post(url, content=b"x" * 10).status_code == 402


async def test_row_26_a_used_credential_buys_nothing_else(store: TempoShop) -> None:
    url = store.wrap("/echo/row26")
    header = await signed(url, store.tempo)
    before = store.tempo.balance(SELLER)
    with ThreadPoolExecutor(10) as pool:
        answers = list(
            pool.map(
                lambda _: httpx2.get(url, headers={"authorization": header}, timeout=40), range(10)
            )
        )
    assert {a.status_code for a in answers} <= {200, 503}
    again = store.shop.http.get(url, headers={"authorization": header})
    assert again.status_code == 200  # the same request: what it bought, with its receipt
    assert "payment-receipt" in again.headers
    elsewhere = store.shop.http.get(f"{url}?x=1", headers={"authorization": header})
    assert elsewhere.status_code == 402
    assert elsewhere.headers["www-authenticate"].startswith("Payment ")
    assert "payment-receipt" not in elsewhere.headers
    assert store.up.calls("/echo/row26") == 1
    assert store.tempo.balance(SELLER) - before == CENT
