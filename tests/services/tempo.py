"""A local Tempo chain: anvil in its Tempo mode, with what it lacks of the real one."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2
import pytest

from tests.services.node import needs_node

CHAIN_ID = 42431
PATH_USD = "0x20c0000000000000000000000000000000000000"
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
"""anvil's first development account, which has pathUSD here."""

START_S = 20


@dataclass
class Tempo:
    """The running chain; `url` is what clients and the service use."""

    url: str
    http: httpx2.Client

    def request(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        answer = self.http.post(self.url, json=body).json()
        assert "error" not in answer, answer
        return answer["result"]

    def balance(self, owner: str) -> int:
        data = "0x70a08231" + owner[2:].rjust(64, "0")
        return int(self.request("eth_call", {"to": PATH_USD, "data": data}, "latest"), 16)


@pytest.fixture(scope="session")
def tempo() -> Iterator[Tempo]:
    program = needs_node() / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
    program.chmod(0o755)
    command = [str(program), "--network", "tempo", "--hardfork", "T4", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--chain-id", str(CHAIN_ID)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    inner = ""
    deadline = time.monotonic() + START_S
    while not inner:
        assert time.monotonic() < deadline, "anvil did not start"
        line = process.stdout.readline()
        if "Listening on" in line:
            inner = "http://" + line.split()[-1]
    drain = Thread(target=process.stdout.read, daemon=True)
    drain.start()
    with httpx2.Client(timeout=30, trust_env=False) as http:
        shim = ThreadingHTTPServer(("127.0.0.1", 0), _shim(inner, http))
        shim.daemon_threads = True
        Thread(target=shim.serve_forever, daemon=True).start()
        try:
            yield Tempo(f"http://127.0.0.1:{shim.server_port}", http)
        finally:
            shim.shutdown()
            shim.server_close()
            process.terminate()
            process.wait(10)
            drain.join(10)
            process.stdout.close()


def _shim(inner: str, forward: httpx2.Client) -> type[BaseHTTPRequestHandler]:
    """anvil takes one parameter where the real node takes two (facts, payments 5)."""

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
