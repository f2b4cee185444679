"""Gas is nobody's to burn: who pays for it, how much, and what happens when nobody can.

The chain is real; what our key sends is counted by its nonce.
Source: payment-safety.md#gas-griefing.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_command_line import assay
from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import (
    ENGINE,
    NETWORK,
    PASSWORD,
    Dollars,
    Shop,
    Upstream,
    receipt,
    shop,
    upstream,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ACCOUNTS_MADE, WRAPPERS_EACH = 50, 5
EACH, SHARED = 3, 60
GAS_OF_BASE = 0.005
"""Gwei: what a unit of gas costs on Base on most days."""


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with upstream() as state:
        yield state


@pytest.fixture
def proxy(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as running:
        yield running


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, 10**6)
    return account


def sent(chain: Dollars) -> int:
    """How many transactions our key has sent."""
    return int(chain.wallet.request("eth_getTransactionCount", ENGINE.address, "latest"), 16)


def burnt(chain: Dollars) -> int:
    """Wei that our key has not any more."""
    return 10**24 - int(chain.wallet.request("eth_getBalance", ENGINE.address, "latest"), 16)


def refused(answer: httpx2.Response) -> None:
    """Before the upstream was asked, with a time to come again."""
    assert (answer.status_code, answer.json()["code"]) == (503, "payments_unavailable")
    assert int(answer.headers["retry-after"]) > 0


def test_who_pays_themselves_is_refused_and_burns_nothing(
    dollar_chain: Dollars, up: Upstream, payer: LocalAccount, tmp_path: Path
) -> None:
    """Sixty payments from one's own wallet to itself were sixty transactions of ours."""
    with shop(tmp_path, dollar_chain, up) as store:
        url = store.wrap("/echo/self", price=0.000001, payoutAddress=payer.address)
        before = sent(dollar_chain)
        for _ in range(60):
            answer = store.pay(url, store.payment(url, payer))
            assert answer.status_code == 402, answer.text
            assert answer.json()["reason"] == "invalid_exact_evm_payload_recipient_mismatch"
        assert sent(dollar_chain) == before
        assert up.calls("/echo/self") == 0


def test_fifty_fresh_accounts_spend_one_shared_budget(
    dollar_chain: Dollars,
    up: Upstream,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two wallets of one person in a circle cannot be told from honest ones: they are bounded."""
    payers = [fresh_account() for _ in range(10)]
    for one in payers:
        dollar_chain.mint(one.address, 10**6)
    settings = {
        "ASSAY_GAS_FREE_SETTLEMENTS": str(EACH),
        "ASSAY_GAS_FREE_SETTLEMENTS_SHARED": str(SHARED),
    }
    with shop(tmp_path, dollar_chain, up, **settings) as store, ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: wrappers_of(store, n), range(ACCOUNTS_MADE)))
        urls = [url for some in made for url in some]
        assert len(urls) == ACCOUNTS_MADE * WRAPPERS_EACH
        before = sent(dollar_chain)

        def buy(place: int) -> httpx2.Response:
            url = urls[place]
            return store.pay(url, store.payment(url, payers[place % len(payers)]), once=True)

        answers = list(pool.map(buy, range(len(urls))))
        served = [answer for answer in answers if answer.status_code == 200]
        assert len(served) == SHARED
        for answer in answers:
            if answer.status_code != 200:
                refused(answer)
        assert sent(dollar_chain) - before == SHARED
        ran = sum(up.calls(f"/echo/burn/{place}") for place in range(WRAPPERS_EACH))
        assert ran == SHARED
        assert store.http.get(urls[-1]).status_code == 402  # how to pay is always told
    mined = receipt(served[-1])["transaction"]
    told = dollar_chain.wallet.request("eth_getTransactionReceipt", mined)
    report(int(told["gasUsed"], 16), capsys)


def wrappers_of(store: Shop, number: int) -> list[str]:
    """A fresh account's wrappers at the lowest price, each paid to another wallet of its own."""
    account = {"email": f"{number}@burn.example", "password": PASSWORD}
    answer = store.http.post("/operator/register", json={**account, "name": "B"})
    assert answer.status_code == 200, answer.text
    login = store.http.post("/operator/login", json=account).json()
    urls: list[str] = []
    for place in range(WRAPPERS_EACH):
        body = {
            "path": f"/echo/burn/{place}",
            "pricePerCall": 0.000001,
            "targetUrl": store.upstream.url,
            "paymentNetwork": NETWORK,
            "payoutAddress": fresh_account().address,
        }
        token = {"authorization": f"Bearer {login['token']}"}
        made = store.http.post("/operator/endpoints", json=body, headers=token)
        assert made.status_code == 200, made.text  # a low price is never refused
        assert any("prepaid gas" in one for one in made.json()["warnings"]), made.text
        urls.append(f"{store.server.address}/wrap/{login['operator']['id']}/echo/burn/{place}")
    return urls


def report(gas: int, capsys: pytest.CaptureFixture[str]) -> None:
    """What a free account can make the platform spend a day, with the defaults."""
    with capsys.disabled():
        for whose, count in (("one account", 100), ("all self-registered accounts", 1000)):
            usual = count * gas * GAS_OF_BASE / 10**9
            most = count * 0.00002
            print(  # noqa: T201 - the figure to report
                f"\n{whose}, a day: {count} settlements of {gas} gas;"
                f" {usual:.6f} ETH at {GAS_OF_BASE} gwei, never more than {most:.4f} ETH",
                end="",
            )
        print()  # noqa: T201


def lying(proxy: NodeProxy, said: dict[str, str]) -> None:
    """Let the node say that of the price of gas and of our key's balance."""

    def instead(asked: Any) -> Any:
        if not isinstance(asked, list) or {one["method"] for one in asked} != said.keys():
            return None
        return [{"jsonrpc": "2.0", "id": one["id"], "result": said[one["method"]]} for one in asked]

    proxy.instead = instead


def test_a_lying_node_and_an_empty_key_are_refused_before_the_upstream_runs(
    dollar_chain: Dollars, up: Upstream, proxy: NodeProxy, payer: LocalAccount, tmp_path: Path
) -> None:
    """1,000,000 gwei spent 7 ETH on a cent; seven calls of an empty key ran for nothing."""
    said = {"eth_gasPrice": hex(900 * 10**9), "eth_getBalance": hex(10**24)}
    lying(proxy, said)
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
    with shop(tmp_path, dollar_chain, up, **rpc) as store:
        url = store.wrap("/echo/lied")
        payment = store.payment(url, payer)
        before = sent(dollar_chain), burnt(dollar_chain)
        refused(store.pay(url, payment, once=True))
        said["eth_gasPrice"] = hex(10**6 * 10**9)
        refused(store.pay(url, payment, once=True))
        said["eth_gasPrice"] = hex(10**9)
        said["eth_getBalance"] = hex(0)
        for _ in range(7):
            refused(store.pay(url, payment, once=True))
        assert store.http.get(url).status_code == 402
        assert up.calls("/echo/lied") == 0
        assert (sent(dollar_chain), burnt(dollar_chain)) == before
        said["eth_getBalance"] = hex(10**18)  # refilled: the same payment buys
        answer = store.pay(url, payment)
        assert answer.status_code == 200, answer.text
        assert up.calls("/echo/lied") == 1
        assert sent(dollar_chain) == before[0] + 1


def test_a_seller_goes_on_with_what_an_admin_credits(
    dollar_chain: Dollars, up: Upstream, payer: LocalAccount, tmp_path: Path
) -> None:
    settings = {"ASSAY_GAS_FREE_SETTLEMENTS": "1", "ASSAY_GAS_USD": f"{NETWORK}=3000"}
    with shop(tmp_path, dollar_chain, up, **settings) as store:
        url = store.wrap("/echo/credited", price=0.01)
        assert store.pay(url, store.payment(url, payer)).status_code == 200
        payment = store.payment(url, payer)
        refused(store.pay(url, payment, once=True))
        assert up.calls("/echo/credited") == 1
        given = ["gas", "credit", "op@example.com", "10"]
        done = assay(*given, data_dir=tmp_path, **settings)
        assert done.returncode == 0, done.stderr
        assert "has prepaid 10 usd" in done.stdout
        wei = burnt(dollar_chain)
        assert store.pay(url, payment).status_code == 200
        wei = burnt(dollar_chain) - wei
        shown = assay("gas", "show", "op@example.com", "--json", data_dir=tmp_path, **settings)
        left = json.loads(shown.stdout)
        assert left["freeLeftToday"] == 0
        cost = -(-wei * 3000 // 10**9)  # what the receipt says, in billionths of a dollar
        assert Decimal(left["prepaid"]["usd"]) == 10 - Decimal(cost) / 10**9
        wrong = assay("gas", "credit", "op@example.com", "1e-10", data_dir=tmp_path, **settings)
        assert wrong.returncode != 0


def test_doctor_says_what_the_settling_key_holds(
    dollar_chain: Dollars, up: Upstream, proxy: NodeProxy, tmp_path: Path
) -> None:
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
    with shop(tmp_path, dollar_chain, up, **rpc) as store:
        store.wrap("/echo/watched")
        environment = {k: v for k, v in store.server.environment.items() if k.startswith("ASSAY_")}
    said = assay("doctor", data_dir=tmp_path, **environment).stdout
    assert f"settling key on {NETWORK}" in said
    assert f"{ENGINE.address} holds" in said
    lying(proxy, {"eth_gasPrice": hex(10**9), "eth_getBalance": hex(0)})
    done = assay("doctor", data_dir=tmp_path, **environment)
    assert done.returncode == 1
    assert f"send {ENGINE.address} coins of {NETWORK}" in done.stdout
