"""A remote facilitator verifies and settles; what became of a payment says the chain."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from eth_account import Account
from x402 import x402Client
from x402.extensions.bazaar import extract_discovery_info
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact import ExactEvmScheme
from x402.mechanisms.evm.signers import EthAccountSigner

from assay_demo.chain.accounts import LocalAccount
from tests.e2e.test_e2e_payment_attacks import fresh_account, refused, submit
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.shop import ENGINE, Dollars, Shop, receipt, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000


@dataclass
class Facilitator:
    """A double on loopback that really settles, unless told to misbehave."""

    chain: Dollars
    url: str = ""
    mood: str = "well"
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append((path, body))
        payload = body["paymentPayload"]["payload"]
        payer = payload["authorization"]["from"]
        if path == "/verify":
            if self.mood == "refuses":
                return 200, {
                    "isValid": False,
                    "invalidReason": "insufficient_funds",
                    "payer": payer,
                }
            if self.mood == "down":
                return 500, {"error": "no"}
            return 200, {"isValid": True, "payer": payer}
        failed = {"success": False, "transaction": "", "network": "eip155:84532", "payer": payer}
        if self.mood == "settle fails":
            return 200, failed | {"errorReason": "insufficient_funds"}
        transaction = submit(self.chain.wallet, payload)
        said = {"success": True, "transaction": transaction, "network": "eip155:84532"}
        if self.mood == "too late":  # as when somebody else was faster
            said = failed | {"errorReason": "transaction_failed"}
        if self.mood == "silent after settling":
            time.sleep(1)
            return 500, {}
        return 200, said | {"payer": payer}


@contextmanager
def running(chain: Dollars) -> Iterator[Facilitator]:
    double = Facilitator(chain)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, said = double.answer(self.path, asked)
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    double.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def proxy(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as made:
        yield made


@pytest.fixture(scope="module")
def store(
    dollar_chain: Dollars, proxy: NodeProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, Facilitator]]:
    folder = tmp_path_factory.mktemp("facilitator")
    with upstream() as up, running(dollar_chain) as double:
        settings = {
            "ASSAY_X402_FACILITATOR_URL": double.url,
            "ASSAY_PAYMENT_RPC": json.dumps({dollar_chain.network: [proxy.url]}),
        }
        with shop(folder, dollar_chain, up, **settings) as made:
            yield made, double


@pytest.fixture
def payer(dollar_chain: Dollars) -> LocalAccount:
    account = fresh_account()
    dollar_chain.mint(account.address, 10**6)
    return account


def test_it_verifies_and_settles_and_our_key_spends_nothing(
    store: tuple[Shop, Facilitator], payer: LocalAccount
) -> None:
    made, double = store
    double.mood = "well"
    url = made.wrap("/echo/remote")
    before = made.chain.wallet.request("eth_getTransactionCount", ENGINE.address, "latest")
    answer = made.pay(url, made.payment(url, payer))
    assert answer.status_code == 200, answer.text
    assert receipt(answer)["transaction"].startswith("0x")
    assert made.chain.balance(payer.address) == 10**6 - CENT
    after = made.chain.wallet.request("eth_getTransactionCount", ENGINE.address, "latest")
    assert after == before
    verify, settle = double.asked[-2:]
    assert (verify[0], settle[0]) == ("/verify", "/settle")
    assert verify[1]["x402Version"] == 2
    assert verify[1]["paymentRequirements"]["amount"] == str(CENT)


async def test_its_catalogue_learns_what_is_sold_from_us_and_not_from_the_buyer(
    store: tuple[Shop, Facilitator], payer: LocalAccount
) -> None:
    made, double = store
    double.mood = "well"
    listed = made.wrap("/echo/{word}", description="Repeats a word")
    client = x402Client()
    client.register("eip155:*", ExactEvmScheme(EthAccountSigner(Account.from_key(payer.key))))
    async with x402HttpxClient(client) as http:
        answer = await http.get(listed.replace("{word}", "listed"))
    assert answer.status_code == 200, answer.text
    for path, body in double.asked[-2:]:
        found = extract_discovery_info(body["paymentPayload"], body["paymentRequirements"])
        assert found is not None, path
        assert (found.method, found.description) == ("GET", "Repeats a word")
        assert found.resource_url == listed.replace("{word}", ":word")
    url = listed.replace("{word}", "poisoned")
    lie = {**made.payment(url, payer), "extensions": {"bazaar": {"info": "a lie"}}}
    assert made.pay(url, lie).status_code == 200
    assert "a lie" not in json.dumps(double.asked[-2:])


def test_a_wrapper_without_a_description_is_not_listed(
    store: tuple[Shop, Facilitator], payer: LocalAccount
) -> None:
    made, double = store
    double.mood = "well"
    url = made.wrap("/echo/unlisted")
    assert made.demand(url)["extensions"] == {}
    assert made.pay(url, made.payment(url, payer)).status_code == 200
    assert "extensions" not in json.dumps(double.asked[-2:])


@pytest.mark.parametrize("mood", ["refuses", "settle fails"])
def test_a_payment_it_refuses_is_not_served(
    store: tuple[Shop, Facilitator], payer: LocalAccount, mood: str
) -> None:
    made, double = store
    double.mood = mood
    url = made.wrap(f"/echo/{mood.replace(' ', '-')}")
    answer = made.pay(url, made.payment(url, payer))
    refused(answer, "insufficient_funds")
    assert made.chain.balance(payer.address) == 10**6


def test_row_13_one_that_was_too_late_does_not_make_a_payer_pay_for_nothing(
    store: tuple[Shop, Facilitator], payer: LocalAccount
) -> None:
    made, double = store
    double.mood = "too late"
    url = made.wrap("/echo/too-late")
    answer = made.pay(url, made.payment(url, payer))
    assert answer.status_code == 200, answer.text
    assert receipt(answer)["transaction"].startswith("0x")
    assert made.chain.balance(payer.address) == 10**6 - CENT


def test_a_refusal_that_the_chain_cannot_confirm_is_no_refusal(
    store: tuple[Shop, Facilitator], payer: LocalAccount, proxy: NodeProxy
) -> None:
    """The payee may have his money: who is told to pay anew would pay twice."""
    made, double = store
    double.mood = "too late"
    url = made.wrap("/echo/unsure")
    payment = made.payment(url, payer)
    proxy.instead = _no_logs
    answer = made.pay(url, payment, once=True)
    assert (answer.status_code, answer.json()["code"]) == (503, "settlement_pending")
    proxy.instead = lambda _asked: None
    answer = made.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert made.chain.balance(payer.address) == 10**6 - CENT


def _no_logs(asked: Any) -> Any:
    """A node that will not search its logs."""
    ones = asked if isinstance(asked, list) else [asked]
    if all(one["method"] != "eth_getLogs" for one in ones):
        return None
    error = {"code": -32005, "message": "query timeout exceeded"}
    told = [{"jsonrpc": "2.0", "id": one["id"], "error": error} for one in ones]
    return told if isinstance(asked, list) else told[0]


def test_without_it_nobody_is_served_or_charged(
    store: tuple[Shop, Facilitator], payer: LocalAccount
) -> None:
    made, double = store
    double.mood = "down"
    url = made.wrap("/echo/down")
    payment = made.payment(url, payer)
    answer = made.pay(url, payment, once=True)
    assert (answer.status_code, answer.json()["code"]) == (503, "payments_unavailable")
    assert made.upstream.calls("/echo/down") == 0
    double.mood = "well"
    assert made.pay(url, payment).status_code == 200


def test_one_that_settles_and_says_nothing_is_asked_no_more_than_the_chain(
    store: tuple[Shop, Facilitator], payer: LocalAccount
) -> None:
    made, double = store
    double.mood = "silent after settling"
    url = made.wrap("/echo/silent")
    payment = made.payment(url, payer)
    answer = made.pay(url, payment, once=True)
    assert (answer.status_code, answer.json()["code"]) == (503, "settlement_pending")
    answer = made.pay(url, payment)
    assert answer.status_code == 200, answer.text
    assert receipt(answer)["transaction"].startswith("0x")
    assert made.upstream.calls("/echo/silent") == 1
    assert made.chain.balance(payer.address) == 10**6 - CENT
