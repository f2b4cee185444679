"""A local Tempo chain: anvil in its Tempo mode, with what it lacks of the real one."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2

from assay.common.addresses import keccak256
from assay.payments.networks import ROWS
from tests.support.eventually import eventually
from tests.support.node import needs_node
from tests.support.starting import listening_at

MODERATO, MAINNET = 42431, 4217
PATH_USD = "0x20c0000000000000000000000000000000000000"
DOLLARS = {row.chain_id: row.asset.address for row in ROWS if row.protocol == "mpp"}
"""What is paid with, by chain."""

FEE_MANAGER = "0xfeec000000000000000000000000000000000000"
_POOL = 10**9
_TOKEN_SLOTS, _BALANCES_SLOT = 16, 9
"""Where the local node's TIP-20 tokens keep what they are, and who has how much."""

KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
"""anvil's first development account, which has pathUSD here."""

PAYER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
"""The address of that key."""


@dataclass
class Tempo:
    """The running chain; `url` is what clients and the service use."""

    chain_id: int
    url: str
    http: httpx2.Client

    @property
    def network(self) -> str:
        """How wrappers name it."""
        return f"tempo:{self.chain_id}"

    @property
    def dollar(self) -> str:
        """The token that wrappers on this chain are paid in."""
        return DOLLARS[self.chain_id]

    def request(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        answer = self.http.post(self.url, json=body).json()
        assert "error" not in answer, answer
        return answer["result"]

    def balance(self, owner: str) -> int:
        data = "0x70a08231" + owner[2:].rjust(64, "0")
        return int(self.request("eth_call", {"to": self.dollar, "data": data}, "latest"), 16)

    def issue_dollar(self, owner: str, amount: int) -> None:
        """Make the chain's dollar, which only the real one has: as pathUSD is, with one holder."""
        self.request("anvil_setCode", self.dollar, "0xef")
        for slot in range(_TOKEN_SLOTS):
            word = self.request("eth_getStorageAt", PATH_USD, hex(slot), "latest")
            self.request("anvil_setStorageAt", self.dollar, hex(slot), word)
        self.set_balance(owner, amount)
        self._let_it_pay_fees(owner)

    def set_balance(self, owner: str, amount: int) -> None:
        """Give somebody so much of the dollar, without a transaction."""
        place = keccak256(
            bytes.fromhex(owner[2:].rjust(64, "0")) + _BALANCES_SLOT.to_bytes(32, "big")
        )
        self.request("anvil_setStorageAt", self.dollar, "0x" + place.hex(), f"0x{amount:064x}")

    def _let_it_pay_fees(self, owner: str) -> None:
        """Validators want pathUSD: without a pool to change the dollar in, nothing is mined."""
        words = (self.dollar[2:], PATH_USD[2:], f"{_POOL:x}", owner[2:])
        data = keccak256(b"mint(address,address,uint256,address)")[:4].hex()
        data += "".join(word.rjust(64, "0") for word in words)
        call = {"from": owner, "to": FEE_MANAGER, "data": "0x" + data}
        sent = self.request("eth_sendTransaction", call)
        mined = eventually(lambda: self.request("eth_getTransactionReceipt", sent))
        assert mined["status"] == "0x1", mined


@contextmanager
def running(chain_id: int = MODERATO) -> Iterator[Tempo]:
    """A local Tempo chain of that id, where its payer has its dollar."""
    with _node(chain_id) as inner, httpx2.Client(timeout=30, trust_env=False) as http:
        shim = ThreadingHTTPServer(("127.0.0.1", 0), _shim(inner, http))
        shim.daemon_threads = True
        Thread(target=shim.serve_forever, daemon=True).start()
        try:
            chain = Tempo(chain_id, f"http://127.0.0.1:{shim.server_port}", http)
            if chain.dollar != PATH_USD:
                chain.issue_dollar(PAYER, 10**12)
            yield chain
        finally:
            shim.shutdown()
            shim.server_close()


@contextmanager
def _node(chain_id: int) -> Iterator[str]:
    program = needs_node() / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
    program.chmod(0o755)
    command = [str(program), "--network", "tempo", "--hardfork", "T4", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--chain-id", str(chain_id)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = listening_at(process)
    drain = Thread(target=process.stdout.read, daemon=True)
    drain.start()
    try:
        yield url
    finally:
        process.terminate()
        process.wait(60)
        drain.join(10)
        process.stdout.close()


def _shim(inner: str, forward: httpx2.Client) -> type[BaseHTTPRequestHandler]:
    """anvil takes one parameter where the real node takes two (mpp.md#local-node)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            for one in asked if isinstance(asked, list) else [asked]:
                if one["method"] == "eth_sendRawTransactionSync":
                    one["params"] = one["params"][:1]
            answer = forward.post(inner, json=asked).content
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    return Handler
