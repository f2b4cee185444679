"""A local chain whose blocks and fees a test decides: anvil, with a test dollar."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

import httpx2

from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.dollars import BASE_SEPOLIA, BASE_SEPOLIA_USDC, balance, mint
from assay_demo.chain.registries import ARTIFACTS, Wallet
from tests.support.node import needs_node
from tests.support.starting import listening_at

COINS = hex(10**24)
MINTER = ACCOUNTS[2]


@dataclass
class FeeChain:
    """The chain of Base Sepolia's id; blocks are mined when a test says so."""

    url: str
    wallet: Wallet

    def request(self, method: str, *params: Any) -> Any:
        return self.wallet.request(method, *params)

    def mine(self, blocks: int = 1) -> None:
        self.request("anvil_mine", hex(blocks))

    def mint(self, to: str, amount: int) -> None:
        """Dollars, in a block of their own."""
        with self.mining():
            mint(self.wallet, MINTER.key, BASE_SEPOLIA_USDC, to, amount)

    @contextmanager
    def mining(self) -> Iterator[None]:
        """Every transaction has a block at once meanwhile."""
        self.request("evm_setAutomine", *[True])
        yield
        self.request("evm_setAutomine", *[False])

    def balance(self, owner: str) -> int:
        return balance(self.wallet, BASE_SEPOLIA_USDC, owner)

    @property
    def height(self) -> int:
        return int(self.request("eth_blockNumber"), 16)


@contextmanager
def fee_chain() -> Iterator[FeeChain]:
    """A running chain; skips the test where it cannot be had."""
    program = needs_node() / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
    program.chmod(0o755)
    command = [str(program), "--chain-id", str(BASE_SEPOLIA), "--port", "0", "--no-mining"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = listening_at(process)
    drain = Thread(target=process.stdout.read, daemon=True)
    drain.start()
    try:
        _furnish(url)
        with Wallet(url) as wallet:
            yield FeeChain(url, wallet)
    finally:
        process.terminate()
        process.wait(60)
        drain.join(10)
        process.stdout.close()


def _furnish(url: str) -> None:
    calls = [("anvil_setCode", BASE_SEPOLIA_USDC, ARTIFACTS["TestUSD"]["runtime"])]
    calls += [("anvil_setBalance", account.address, COINS) for account in ACCOUNTS[:3]]
    with httpx2.Client(timeout=30, trust_env=False) as http:
        for method, *params in calls:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = json.loads(http.post(url, json=body).content)
            assert "error" not in answer, answer
