"""Paid calls of this tree beside those of another commit: processor time, and calls a second.

    .venv/bin/python bench/paid_beside.py --commit bb2d619 [--rounds 11] [--calls 240] [--set N=V]

Both services run at the same time, each with a chain of its own (anvil) and the same upstream, and
are called by turns: every call pays by a wallet, nonce and path of its own and is settled. Printed
is the ratio of this tree to the commit, round by round: the median and its 95 % interval.
`--set` gives a setting to this tree's service alone. Needs: nginx; Node.js with npm; git.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from dollars import Dollars, dollars  # noqa: E402
from interval import ROUNDS_MIN, beside  # noqa: E402
from upstream import (  # noqa: E402
    PAID_ON,
    PLENTY,
    Proxy,
    log_in,
    make_files,
    on_core,
    port_of,
    processes_of,
    say,
    static_nginx,
)
from wrapper import order, sign_payments  # noqa: E402

from assay_demo.chain.accounts import ACCOUNTS  # noqa: E402
from tests.support.assay import operator  # noqa: E402
from tests.support.shop import NO_CHAIN, SELLER  # noqa: E402

BOTH = {
    "ASSAY_PORT": "0",
    "ASSAY_CHAINS": json.dumps(NO_CHAIN),
    "ASSAY_DEFAULT_CHAIN": "local",
    "ASSAY_ALLOW_PRIVATE_UPSTREAMS": "1",
    "ASSAY_SELF_REGISTRY": "",
    "ASSAY_LOG_LEVEL": "warning",
    "ASSAY_WRAPPER_PER_MINUTE": str(PLENTY),
    "ASSAY_KEYED_PER_MINUTE": str(PLENTY),
    "ASSAY_X402_PRIVATE_KEY": ACCOUNTS[0].key,
    "ASSAY_PAYOUT_ADDRESS": SELLER.address,
}
NOW = {
    "ASSAY_WRAPPER_UNREAD_MIB": str(PLENTY),
    "ASSAY_X402_CLOCK_S": "86400",
    "ASSAY_GAS_FREE_SETTLEMENTS": "1000000",
    "ASSAY_GAS_FREE_SETTLEMENTS_SHARED": "1000000",
}
"""What an old commit may not know: a service refuses settings that it does not have."""


@contextmanager
def seller(
    source: Path, data: Path, chain: Dollars, upstream: int, more: dict[str, str]
) -> Iterator[Proxy]:
    """A service of some source with a paid wrapper of the upstream."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
    settings = BOTH | more | {"ASSAY_DATA_DIR": str(data), "PYTHONPATH": str(source)}
    settings["ASSAY_PAYMENT_RPC"] = json.dumps({PAID_ON: [chain.url]})
    command = [sys.executable, "-m", "assay", "serve"]
    with on_core(0):
        process = subprocess.Popen(command, env=plain | settings, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise SystemExit(f"{source}: the service did not start")
        with httpx2.Client(base_url=found.group(), timeout=60, trust_env=False) as http:
            operator(http)
            operator_id, token = log_in(http)
            endpoint = {
                "path": "/files/*",
                "method": "GET",
                "targetUrl": f"http://127.0.0.1:{upstream}",
                "trustEnabled": False,
                "pricePerCall": 0.0001,
                "paymentNetwork": PAID_ON,
            }
            bearer = {"authorization": f"Bearer {token}"}
            made = http.post("/operator/endpoints", json=endpoint, headers=bearer)
            assert made.is_success, made.text
        pids = processes_of(process.pid)
        yield Proxy(source.name, pids, port_of(found.group()), f"/wrap/{operator_id}/files/")
    finally:
        process.terminate()
        process.wait(30)


def measure(
    both: Sequence[tuple[Proxy, Dollars]], folder: Path, rounds: int, calls: int
) -> list[dict[str, tuple[float, float]]]:
    """Of each round each figure, of this tree and of the commit; who is first changes."""
    found: list[dict[str, tuple[float, float]]] = []
    for number in range(rounds + 1):  # the first one warms both
        say(f"round {number} of {rounds}")
        of: dict[int, dict[str, float]] = {}
        for index in (0, 1) if number % 2 else (1, 0):
            proxy, chain = both[index]
            paid = sign_payments(proxy, "1k", folder, chain.payers, calls)
            tickets = {"ticket_header": "payment-signature", "tickets": str(paid)}
            of[index] = order(proxy, "open", "1k", (calls + 0.5) / 1e6, 32, 1e6, tickets)
        if number:
            found.append({name: (of[0][name], of[1][name]) for name in ("cpu_us", "requests_s")})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commit", required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--calls", type=int, default=240, help="of each service in a round")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    more = NOW | {f"ASSAY_{name.upper()}": v for name, v in (s.split("=", 1) for s in asked.set)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        archive = folder / "commit.tar"
        for command in (
            ["git", "archive", f"--output={archive}", asked.commit, "src"],
            ["tar", "-xf", str(archive), "-C", str(folder)],
        ):
            subprocess.run(command, cwd=ROOT, check=True)
        with on_core(1):
            upstream = stack.enter_context(static_nginx(folder, make_files(folder)))
        both: list[tuple[Proxy, Dollars]] = []
        settings = (folder / "src/assay/settings.py").read_text("utf-8")
        known = {k: v for k, v in NOW.items() if k.removeprefix("ASSAY_").lower() in settings}
        for name, source, own in (("now", ROOT / "src", more), ("then", folder / "src", known)):
            chain = stack.enter_context(dollars())
            if chain is None:
                raise SystemExit("Node.js with npm is missing: the chain is anvil of npm.")
            data = folder / name
            both.append((stack.enter_context(seller(source, data, chain, upstream, own)), chain))
        found = measure(both, folder, asked.rounds, asked.calls)
    for name in ("cpu_us", "requests_s"):
        pairs = [one[name] for one in found]
        print(f"{name:10} {beside(pairs, asked.commit)}", flush=True)


if __name__ == "__main__":
    main()
