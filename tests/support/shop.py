"""A shop for tests: a chain with dollars, an upstream that counts, a serving Assay, wrappers."""

import base64
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx2

from assay.payments.networks import ROWS
from assay_demo.chain import dollars
from assay_demo.chain.accounts import ACCOUNTS, LocalAccount
from assay_demo.chain.registries import Wallet
from tests.support.assay import Served, served
from tests.support.forked import CHAIN, start
from tests.support.quiet_server import QuietHandler, serving

ENGINE, MINTER, SELLER, PLATFORM = ACCOUNTS[0], ACCOUNTS[2], ACCOUNTS[30], ACCOUNTS[31]
"""The first settles, and nobody else uses its nonces."""

NETWORK, USDC = "eip155:84532", dollars.BASE_SEPOLIA_USDC
PASSWORD = "correct horse battery"
EARLY = httpx2.Limits(keepalive_expiry=2)
"""Connections are given up before the service does so, which is when both use one at a time."""
NO_CHAIN = {
    "local": {
        "chain_id": 31337,
        "identity_registry": "0x" + "11" * 20,
        "reputation_registry": "0x" + "22" * 20,
        "rpc_urls": ["http://127.0.0.1:9"],
    }
}


@dataclass
class Dollars:
    """The chain where payments are settled."""

    url: str
    wallet: Wallet
    network: str = NETWORK
    asset: str = USDC

    def balance(self, owner: str) -> int:
        return dollars.balance(self.wallet, self.asset, owner)

    def mine(self, blocks: int) -> None:
        self.wallet.request("anvil_mine", hex(blocks))

    def mint(self, to: str, amount: int) -> None:
        dollars.mint(self.wallet, MINTER.key, self.asset, to, amount)


@contextmanager
def dollars_on(network: str = NETWORK) -> Iterator[Dollars]:
    """A local chain that passes for that payment network, with its dollar."""
    row = next(row for row in ROWS if row.id == network)
    options = ("--chain-id", str(row.chain_id), "--dollar", row.asset.address)
    process = start(CHAIN[0], *options, imported=CHAIN, streams=(None, subprocess.PIPE, None))
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    try:
        with Wallet(url) as wallet:
            yield Dollars(url, wallet, network, row.asset.address)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@dataclass
class Seen:
    """A request as the upstream saw it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Upstream:
    """A real HTTP server: `/echo` answers what it got, `/status/N` answers N, `/large/N`
    N bytes, `/drip` a byte at a time, `/redirect/N/...` N with its query as `Location`."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    before: Callable[[str], None] = lambda _path: None
    """Called before an answer is given."""
    gate: threading.Event = field(default_factory=threading.Event)
    fails: bool = False
    """Set: every answer is a 500."""

    def calls(self, path: str) -> int:
        return sum(1 for one in self.seen if one.path.partition("?")[0] == path)


def _status_and_headers(parts: list[str], path: str) -> tuple[int, dict[str, str]]:
    """What a path of the upstream answers with."""
    if parts[0] == "status":
        return int(parts[1]), {}
    if parts[0] == "redirect":
        return int(parts[1]), {"Location": unquote(path.partition("?")[2])}
    if parts[0] == "spoof":
        return 200, {
            "PAYMENT-RESPONSE": "c3Bvb2Y=",
            "X-PAYMENT-RESPONSE": "c3Bvb2Y=",
            "Payment-Receipt": "c3Bvb2Y",
            "WWW-Authenticate": 'Payment id="x"',
            "Settlement-Overrides": "0",
            "Cache-Control": "public, s-maxage=600",
        }
    return 200, {}


@contextmanager
def upstream() -> Iterator[Upstream]:
    state = Upstream()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {k.lower(): v for k, v in self.headers.items()}
            state.seen.append(Seen(self.command, self.path, headers, body))
            state.before(self.path)
            parts = self.path.partition("?")[0].strip("/").split("/")
            if parts[0] == "held":
                state.gate.wait(20)
            status, extra = _status_and_headers(parts, self.path)
            status = 500 if state.fails else status
            answer = (
                b"x" * int(parts[1])
                if parts[0] == "large"
                else json.dumps(
                    {"n": len(state.seen), "path": self.path, "headers": headers}
                ).encode()
            )
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            for name, value in extra.items():
                self.send_header(name, value)
            self.end_headers()
            if parts[0] == "drip":
                for place in range(len(answer)):
                    self.wfile.write(answer[place : place + 1])
                    time.sleep(0.2)
            elif self.command != "HEAD":
                self.wfile.write(answer)

        do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815 - the base class's names

    with serving(Handler) as state.url:
        try:
            yield state
        finally:
            state.gate.set()


@dataclass
class Shop:
    """A serving Assay with one operator."""

    server: Served
    http: httpx2.Client
    chain: Dollars
    upstream: Upstream
    operator_id: str = ""
    token: Mapping[str, str] = field(default_factory=dict)

    def sign_up(self, email: str = "op@example.com") -> None:
        body = {"email": email, "password": PASSWORD, "name": "Op"}
        answer = self.http.post("/operator/register", json=body)
        assert answer.status_code in {200, 409}, answer.text
        login = self.http.post(
            "/operator/login", json={"email": email, "password": PASSWORD}
        ).json()
        self.operator_id = login["operator"]["id"]
        self.token = {"authorization": f"Bearer {login['token']}"}

    def wrap(self, path: str, price: float = 0.01, **fields: Any) -> str:
        """A new wrapper; its public address."""
        body = {
            "path": path,
            "pricePerCall": price,
            "targetUrl": self.upstream.url,
            "paymentNetwork": self.chain.network if self.chain else NETWORK,
            "payoutAddress": SELLER.address,
            **fields,
        }
        answer = self.http.post("/operator/endpoints", json=body, headers=dict(self.token))
        assert answer.status_code == 200, answer.text
        return f"{self.server.address}/wrap/{self.operator_id}{path}"

    def demand(self, url: str, **request: Any) -> dict[str, Any]:
        """What a call without payment is asked for (version 2)."""
        answer = self.http.request(request.pop("method", "GET"), url, **request)
        assert answer.status_code == 402, answer.text
        return json.loads(base64.b64decode(answer.headers["payment-required"]))

    def payment(
        self, url: str, payer: LocalAccount, *, method: str = "GET", **signing: Any
    ) -> dict[str, Any]:
        """A signed version 2 payment for one call of a wrapper.

        Good for long: the chain dates its blocks a second apart, and runs ahead of us.
        """
        signing = {"valid_s": 3600, **signing}
        required = self.demand(url, method=method)
        accepted = required["accepts"][0]
        return {
            "x402Version": 2,
            "resource": required["resource"],
            "accepted": accepted,
            "payload": dollars.authorize(payer.key, accepted, 84532, **signing),
        }

    def pay(
        self, url: str, payment: Mapping[str, Any], *, once: bool = False, **request: Any
    ) -> httpx2.Response:
        """The answer to a payment, which is sent again while its outcome is unknown.

        So clients do, and so a busy machine changes no test; `once` for what shall be 503.
        """
        headers = {**request.pop("headers", {}), "payment-signature": encoded(payment)}
        method = request.pop("method", "GET")

        def send() -> httpx2.Response:
            return self.http.request(method, url, headers=headers, **request)

        return send() if once else until_known(send)


def until_known(call: Callable[[], httpx2.Response], seconds: float = 30) -> httpx2.Response:
    """The answer once it is not 503 any more."""
    deadline = time.monotonic() + seconds
    while (answer := call()).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer


def encoded(payment: object) -> str:
    return base64.b64encode(json.dumps(payment).encode()).decode()


def receipt(answer: httpx2.Response) -> dict[str, Any]:
    return json.loads(base64.b64decode(answer.headers["payment-response"]))


@contextmanager
def shop(
    folder: Path,
    chain: Dollars,
    up: Upstream,
    port: int = 0,
    *,
    files: tuple[int, int] | None = None,
    **settings: str,
) -> Iterator[Shop]:
    """With a `port` the address is there, whatever public one is configured."""
    given = {
        "ASSAY_PORT": str(port),
        "ASSAY_PAYMENT_RPC": json.dumps({chain.network: [chain.url]}),
        "ASSAY_X402_PRIVATE_KEY": ENGINE.key,
        "ASSAY_PAYOUT_ADDRESS": PLATFORM.address,
        # The local chain's gas costs a gwei, on whichever network it passes for.
        "ASSAY_GAS_CAP": f"{chain.network}=0.01",
        "ASSAY_GAS_FREE_SETTLEMENTS": "1000000",
        "ASSAY_GAS_FREE_SETTLEMENTS_SHARED": "1000000",
        "ASSAY_X402_CLOCK_S": "7200",
        **settings,
    }
    with (
        served(folder, NO_CHAIN, files=files, **given) as server,
        httpx2.Client(timeout=40, limits=EARLY) as http,
    ):
        if port:
            server.address = f"http://127.0.0.1:{port}"
        http.base_url = server.address
        made = Shop(server, http, chain, up)
        made.sign_up()
        yield made


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]
