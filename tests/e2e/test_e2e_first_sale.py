"""The first sale as docs/payments.md tells it: `assay serve`, `assay sell`, done."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.registries import checksum
from tests.e2e.test_e2e_command_line import ROOT, assay
from tests.support.assay import served
from tests.support.shop import NETWORK, NO_CHAIN, Dollars, free_port, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
FAUCET = ACCOUNTS[5]
ETHER = 10**18


def settings_of(chain: Dollars, **more: str) -> dict[str, str]:
    """What both processes are given; the local chain stands in for Base Sepolia."""
    return {
        "ASSAY_PORT": str(free_port()),
        "ASSAY_CHAINS": json.dumps(NO_CHAIN),
        "ASSAY_DEFAULT_CHAIN": "local",
        "ASSAY_PAYMENT_RPC": json.dumps({"base-sepolia": [chain.url]}),
        **more,
    }


def send_ether(chain: Dollars, to: str, wei: int = ETHER // 100) -> None:
    nonce = int(chain.wallet.request("eth_getTransactionCount", FAUCET.address, "latest"), 16)
    unsigned = {
        "chainId": 84532,
        "nonce": nonce,
        "gas": 21_000,
        "gasPrice": 2 * 10**9,
        "to": checksum(to),
        "value": wei,
    }
    signed = Account.sign_transaction(unsigned, FAUCET.key)
    chain.wallet.request("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())


def fund(chain: Dollars, wallets: list[Mapping[str, Any]]) -> None:
    """What the faucets do."""
    for wallet in wallets:
        if wallet["coin"] == "ETH":
            send_ether(chain, wallet["address"])
        else:
            chain.mint(wallet["address"], 10**6)


def sold(*options: str, data_dir: Path, **settings: str) -> tuple[dict[str, Any], str]:
    """What `assay sell --json` tells, and all it says besides."""
    done = assay("sell", *options, "--json", data_dir=data_dir, **settings)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), done.stderr


def test_serve_and_sell_lead_to_a_paid_call(tmp_path: Path, dollar_chain: Dollars) -> None:
    folder = tmp_path / "data"
    given = settings_of(dollar_chain, ASSAY_ALLOW_PRIVATE_UPSTREAMS="1")
    with upstream() as up, served(folder, NO_CHAIN, **given) as server:
        command = (f"{up.url}/echo/quote", "--price", "0.01")
        told, said = sold(*command, "--no-wait", data_dir=folder, **given)
        wrapper = told["wrapper"]
        assert (told["funded"], told["payment"]) == (False, None)
        assert wrapper["paymentNetwork"] == NETWORK
        assert wrapper["url"].startswith(f"{server.address}/wrap/")
        assert all(one["faucet"].startswith("https://") for one in told["wallets"])
        for name in ("settling.key", "test-payer.key", "test-payout.key"):
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
            assert (folder / name).read_text().strip() not in said + json.dumps(told)
        assert up.calls("/echo/quote") == 0

        fund(dollar_chain, told["wallets"])
        again, said = sold(*command, data_dir=folder, **given)
        assert again["wrapper"] == wrapper  # what was made before is used again
        paid = again["payment"]
        assert (paid["status"], paid["amount"]) == (200, "0.010000")
        assert int(paid["feeWei"]) > 0
        for step in ("402 Payment Required", "0.010000 USD", "200 OK", "receipt: 0x"):
            assert step in said
        assert dollar_chain.balance(wrapper["payoutAddress"]) == 10_000
        assert up.calls("/echo/quote") == 1

        dearer = assay("sell", command[0], "--price", "0.02", data_dir=folder, **given)
        assert dearer.returncode == 1
        assert f"assay wrappers edit {wrapper['id']}" in dearer.stderr
        assert "Traceback" not in dearer.stderr + server.said()


def _interruptible() -> None:
    """A shell that runs the tests in the background ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_it_waits_for_the_service_and_for_funds_and_is_stopped_and_resumed(
    tmp_path: Path, dollar_chain: Dollars
) -> None:
    folder = tmp_path / "data"
    given = settings_of(dollar_chain, ASSAY_ALLOW_PRIVATE_UPSTREAMS="1")
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
    environment = plain | {"PYTHONPATH": str(ROOT / "src"), "ASSAY_DATA_DIR": str(folder)} | given

    def begun(url: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "assay", "sell", url, "--price", "0.01"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_interruptible,  # noqa: PLW1509 - it only sets a handler
        )

    def until(process: subprocess.Popen[str], words: str) -> str:
        assert process.stdout is not None
        said = ""
        while words not in said:
            line = process.stdout.readline()
            assert line, f"it ended early: {said}{process.stderr and process.stderr.read()}"
            said += line
        return said

    with upstream() as up:
        process = begun(f"{up.url}/echo/waited")
        said = until(process, "no Assay answers at")
        assert "assay serve" in said
        with served(folder, NO_CHAIN, **given):
            said += until(process, "holds 0 USDC of 0.01 USDC")
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 130
            assert "goes on from here" in process.communicate()[1]
            owed = re.findall(r"fund +(0x[0-9a-f]{40}) with (ETH|USDC)", said)
            assert [coin for _, coin in owed] == ["ETH", "USDC"]
            resumed = begun(f"{up.url}/echo/waited")
            until(resumed, "holds 0 USDC of 0.01 USDC")
            fund(dollar_chain, [{"address": to, "coin": coin} for to, coin in owed])
            out, problems = resumed.communicate(timeout=60)
            assert resumed.returncode == 0, problems
            assert "on chain  0.010000 USDC to 0x" in out
        assert up.calls("/echo/waited") == 1


def test_a_private_api_is_sold_with_what_the_refusal_says_to_set(
    tmp_path: Path, dollar_chain: Dollars
) -> None:
    folder = tmp_path / "data"
    given = settings_of(dollar_chain, ASSAY_ALLOW_PRIVATE_UPSTREAMS="0")
    with upstream() as up:
        command = (f"{up.url}/echo/own", "--price", "0.01")
        refused = assay("sell", *command, data_dir=folder, **given)
        assert refused.returncode == 1
        hint = re.findall(r"(ASSAY_UPSTREAM_ALLOW(?:_OPERATORS)?)=(\S+)", refused.stderr)
        assert [name for name, _ in hint] == [
            "ASSAY_UPSTREAM_ALLOW",
            "ASSAY_UPSTREAM_ALLOW_OPERATORS",
        ]
        given |= dict(hint)
        with served(folder, NO_CHAIN, **given):
            told, _ = sold(*command, "--no-wait", data_dir=folder, **given)
            fund(dollar_chain, told["wallets"])
            told, _ = sold(*command, data_dir=folder, **given)
            assert told["payment"]["amount"] == "0.010000"
        checked = assay("doctor", data_dir=folder, **given)
        assert "own upstreams" in checked.stdout
        assert "upstream-allow" not in checked.stdout
        assert up.calls("/echo/own") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--price", "0.01", "--network", "tempo"], "eip155:84532 (base-sepolia)"),
        (["--price", "0.01", "--network", "base"], "--payout-address"),
        (["--price", "free"], "'free' is not a number"),
        (["--price", "0.01", "--account", "nobody@example.com"], "no account"),
    ],
)
def test_what_cannot_be_sold_is_said_in_one_sentence(
    tmp_path: Path, options: list[str], said: str
) -> None:
    done = assay("sell", "https://api.example.com/quote", *options, data_dir=tmp_path / "data")
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
