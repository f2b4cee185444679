"""The chain that paid calls settle on: anvil, with a test dollar where clients expect the real one.

The demo's own chain runs in Python and takes ten times as long for a transfer: it would be what is
measured.
"""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

import httpx2
from eth_account import Account
from upstream import on_core

from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.dollars import BASE_SEPOLIA, BASE_SEPOLIA_USDC, mint
from assay_demo.chain.registries import ARTIFACTS, Wallet
from tests.support.node import installed

PAYERS = 8
COINS = hex(10**24)
DOLLARS = 10**12
START_S = 20.0


@dataclass(frozen=True)
class Dollars:
    """Where the chain answers, and who has dollars on it."""

    url: str
    payers: Sequence[str]
    """Their keys."""


@contextmanager
def dollars() -> Iterator[Dollars | None]:
    """A running chain with a block a second and one for every transaction; None without Node."""
    folder = installed()
    if folder is None:
        yield None
        return
    program = folder / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
    program.chmod(0o755)
    options = ["--chain-id", str(BASE_SEPOLIA), "--port", "0", "--block-time", "1"]
    with on_core(1):
        process = subprocess.Popen(
            [str(program), *options, "--mixed-mining"], stdout=subprocess.PIPE, text=True
        )
    try:
        url = _url(process)
        assert process.stdout is not None
        drain = Thread(target=process.stdout.read, daemon=True)
        drain.start()  # what it says of every request would fill the pipe, and stop it
        keys = [account.key for account in ACCOUNTS[1 : 1 + PAYERS]]
        _furnish(url, keys)
        yield Dollars(url, keys)
    finally:
        process.terminate()
        process.wait(10)


def _url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ends = time.monotonic() + START_S
    while time.monotonic() < ends:
        line = process.stdout.readline()
        if "Listening on" in line:
            return "http://" + line.split()[-1]
    raise SystemExit("anvil did not start")


def _furnish(url: str, keys: Sequence[str]) -> None:
    code = ARTIFACTS["TestUSD"]["runtime"]
    with httpx2.Client(timeout=30, trust_env=False) as http:
        _ask(http, url, "anvil_setCode", BASE_SEPOLIA_USDC, code)
        for account in ACCOUNTS[: 1 + PAYERS]:
            _ask(http, url, "anvil_setBalance", account.address, COINS)
    with Wallet(url) as wallet:
        for key in keys:
            payer = Account.from_key(key).address
            mint(wallet, ACCOUNTS[0].key, BASE_SEPOLIA_USDC, payer, DOLLARS)


def _ask(http: httpx2.Client, url: str, method: str, *params: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    answer = json.loads(http.post(url, json=body).content)
    if "error" in answer:
        raise SystemExit(f"{method}: {answer['error']}")
