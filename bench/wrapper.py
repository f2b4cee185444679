"""A wrapper beside nginx `proxy_pass` and a Node proxy: same core, same upstream, same run.

    ./.venv/bin/python bench/wrapper.py [--quick] [--json] [--only NAME]...

Every proxy runs on core 0; the upstream (nginx, static files) and the load run on core 1. Rounds
alternate between the proxies and medians are printed. CPU time is user + system of the proxy's
processes, from /proc, divided by the requests answered. `busy` is the share of core 0 the proxy
used: far below 1, the requests a second are the load's limit and not the proxy's. Latencies are
at a fixed rate, from when each request was due. nginx is not asked to log or to limit; the
wrapper has trust, rate limit and call log on. The paid wrapper comes last and alone; its calls
are settled on a local chain that runs on core 1 too. At the end each goal gets a verdict
(`goals.py`). Needs: nginx; Node.js with npm.
"""

import argparse
import asyncio
import base64
import json
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from itertools import cycle, islice
from pathlib import Path
from types import MappingProxyType

import httpx2
from eth_account import Account

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from dollars import dollars  # noqa: E402
from goals import AtLeast, AtMost, judged, print_verdicts  # noqa: E402
from upstream import (  # noqa: E402
    ASSAY,
    FILES,
    NGINX,
    NODE,
    PAID,
    TUNED,
    Proxy,
    assay_free,
    assay_paid,
    make_files,
    on_core,
    plain_proxies,
    say,
    static_nginx,
)

from assay.app import sign_authorization  # noqa: E402
from assay.payments.networks import ROWS  # noqa: E402
from assay.payments.ports import Authorization  # noqa: E402
from assay_demo.world import World  # noqa: E402

CONNECTIONS = {"1k": 32, "100k": 32, "10m": 8}
RATES = {"1k": 1000.0, "100k": 500.0, "10m": 10.0}
"""Requests a second of the latency pass: every proxy here can serve them."""
PAYMENT_VALID_S = 86_400
"""The local chain mines every payment at once and dates its blocks a second apart: its clock runs
ahead of ours as fast as payments settle, and stands while none do."""
PAID_CALLS = {"1k": 480, "100k": 480, "10m": 32}
PAID_RATES = {"1k": 50.0, "100k": 50.0, "10m": 5.0}
GOALS = (
    AtMost("1k", ASSAY, 2.8, NGINX),
    AtMost("1k", ASSAY, 1.0, NODE),
    AtMost("100k", ASSAY, 2.0, TUNED),
    AtLeast("1k", PAID, 100),
)
"""Of the free wrapper with trust, rate limit and call log on; and of paid calls, settled."""
WARM_S = 1.0
SLOW_READERS = 32


class LoadError(RuntimeError):
    """A proxy gave another answer than the file; the message says which."""


@dataclass(frozen=True)
class Row:
    """Medians of one proxy with one file; ratios of CPU per request."""

    file: str
    proxy: str
    requests_s: float
    cpu_us: float
    busy: float
    p50_ms: float
    p99_ms: float
    x_nginx: float | None = None
    x_tuned: float | None = None


@dataclass(frozen=True)
class Memory:
    """Resident memory while slow readers read the largest file."""

    proxy: str
    rss_before_mib: float
    rss_peak_mib: float
    taken_mib: float


@dataclass
class Found:
    """Everything that was measured."""

    free: list[Row] = field(default_factory=list[Row])
    paid: list[Row] = field(default_factory=list[Row])
    memory: list[Memory] = field(default_factory=list[Memory])


def measure_free(proxies: Sequence[Proxy], seconds: float, rounds: int) -> list[Row]:
    """Alternating rounds of the closed and the open loop, file by file."""
    rows: list[Row] = []
    for file in FILES:
        taken: dict[str, list[dict[str, float]]] = {proxy.name: [] for proxy in proxies}
        for proxy in proxies:  # compilers, pools and heaps find their size
            order(proxy, "closed", file, WARM_S, CONNECTIONS[file])
        for number in range(rounds):
            say(f"{file}: round {number + 1} of {rounds}")
            for proxy in proxies:
                full = order(proxy, "closed", file, seconds, CONNECTIONS[file])
                paced = order(proxy, "open", file, seconds, 64, rate=RATES[file])
                taken[proxy.name].append(paced | full)
        rows += with_ratios([Row(file, name, **medians(of)) for name, of in taken.items()])
    return rows


def measure_memory(proxies: Sequence[Proxy], seconds: float) -> list[Memory]:
    """Each proxy once, after its rounds: what it holds for readers that hardly read."""
    say(f"memory with {SLOW_READERS} slow readers")
    return [
        Memory(proxy.name, **order(proxy, "slow", "10m", seconds, SLOW_READERS))
        for proxy in proxies
    ]


def measure_paid(proxy: Proxy, folder: Path, keys: Sequence[str], rounds: int) -> list[Row]:
    """All payments at once on 32 connections, then at a fixed rate; each is good for one call."""
    rows: list[Row] = []
    for file, count in PAID_CALLS.items():
        taken: list[dict[str, float]] = []
        for number in range(rounds):
            say(f"{file}, paid: round {number + 1} of {rounds}")
            found: list[dict[str, float]] = []
            for rate, connections in ((1e6, CONNECTIONS[file]), (PAID_RATES[file], 64)):
                tickets = {
                    "ticket_header": "payment-signature",
                    "tickets": str(sign_payments(proxy, file, folder, keys, count)),
                }
                seconds = (count + 0.5) / rate
                found.append(order(proxy, "open", file, seconds, connections, rate, tickets))
            latencies = {name: found[1][name] for name in ("p50_ms", "p99_ms")}
            taken.append(found[0] | latencies)
        rows.append(Row(file, proxy.name, **medians(taken)))
    return rows


def sign_payments(proxy: Proxy, file: str, folder: Path, keys: Sequence[str], count: int) -> Path:
    """A file of `count` payments for what the wrapper asks (x402 version 2, scheme `exact`)."""
    url = f"http://127.0.0.1:{proxy.port}{proxy.prefix}{file}"
    answer = httpx2.get(url, headers=dict(proxy.headers), trust_env=False, timeout=60)
    required = json.loads(base64.b64decode(answer.headers["payment-required"]))
    asked = required["accepts"][0]
    network = next(row for row in ROWS if row.id == asked["network"] and row.protocol == "x402")
    now = int(time.time())
    payments: list[str] = []
    for key in islice(cycle(keys), count):
        signed = sign_authorization(
            key,
            Authorization(
                payer=Account.from_key(key).address.lower(),
                to=asked["payTo"].lower(),
                value=int(asked["amount"]),
                valid_after=0,
                valid_before=now + PAYMENT_VALID_S,
                nonce="0x" + secrets.token_hex(32),
                signature="",
            ),
            network,
        )
        authorization = {
            "from": signed.payer,
            "to": signed.to,
            "value": str(signed.value),
            "validAfter": str(signed.valid_after),
            "validBefore": str(signed.valid_before),
            "nonce": signed.nonce,
        }
        payment = {
            "x402Version": 2,
            "resource": required.get("resource"),
            "accepted": asked,
            "payload": {"signature": signed.signature, "authorization": authorization},
        }
        payments.append(base64.b64encode(json.dumps(payment).encode()).decode())
    path = folder / "payments.json"
    path.write_text(json.dumps(payments), "utf-8")
    return path


def order(  # noqa: PLR0913, PLR0917 - an order's parts
    proxy: Proxy,
    mode: str,
    file: str,
    seconds: float,
    connections: int,
    rate: float = 0,
    more: Mapping[str, str] = MappingProxyType({}),
    *,
    is_last: bool = False,
) -> dict[str, float]:
    """One order to the load process, on its own core."""
    said = {
        "mode": mode,
        "port": proxy.port,
        "path": proxy.prefix + file,
        "size": FILES[file],
        "seconds": seconds,
        "connections": connections,
        "rate": rate,
        "pids": proxy.pids,
        "headers": dict(proxy.headers),
        **more,
    }
    command = [sys.executable, str(Path(__file__).with_name("load.py")), json.dumps(said)]
    with on_core(1):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.returncode:
        return json.loads(done.stdout)
    failure = f"{proxy.name}, {mode}, {file}: {done.stderr.strip()[-600:]}"
    if is_last or more:  # a payment is good once
        raise LoadError(failure)
    say(f"{failure}\nonce more")
    return order(proxy, mode, file, seconds, connections, rate, is_last=True)


def medians(rounds: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of each figure by itself."""
    return {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}


def with_ratios(rows: Sequence[Row]) -> list[Row]:
    """CPU per request against both nginx columns of the same run, where they ran."""
    cpu = {row.proxy: row.cpu_us for row in rows}

    def ratio(row: Row, base: str) -> float | None:
        return row.cpu_us / cpu[base] if base in cpu else None

    return [
        Row(**asdict(row) | {"x_nginx": ratio(row, NGINX), "x_tuned": ratio(row, TUNED)})
        for row in rows
    ]


def print_tables(found: Found) -> None:
    """For people."""

    def times(ratio: float | None) -> str:
        return "-" if ratio is None else f"{ratio:.2f}"

    print(
        f"{'file':5} {'proxy':16} {'requests/s':>10} {'CPU us/req':>11} {'x nginx':>8} "
        f"{'x tuned':>8} {'busy':>5} {'p50 ms':>7} {'p99 ms':>7}"
    )
    for row in [*found.free, *found.paid]:
        print(
            f"{row.file:5} {row.proxy:16} {row.requests_s:10.0f} {row.cpu_us:11.1f} "
            f"{times(row.x_nginx):>8} {times(row.x_tuned):>8} {row.busy:5.2f} "
            f"{row.p50_ms:7.2f} {row.p99_ms:7.2f}"
        )
    for name, of, rows in (("free", RATES, found.free), ("paid", PAID_RATES, found.paid)):
        rates = ", ".join(f"{file} {rate:.0f}" for file, rate in of.items())
        if rows:
            print(f"p50 and p99, {name}: at a fixed rate of requests a second: {rates}.")
    if found.memory:
        print(
            f"{SLOW_READERS} slow readers of 10m: {'RSS before MiB':>16} {'peak':>7} {'taken':>7}"
        )
    for held in found.memory:
        print(
            f"{held.proxy:22} {held.rss_before_mib:16.1f} {held.rss_peak_mib:7.1f} "
            f"{held.taken_mib:7.1f}"
        )
    print_verdicts(judged(GOALS, [*found.free, *found.paid]))


async def measure(quick: bool, only: Sequence[str]) -> Found:  # noqa: FBT001
    """Start everything and load the proxies in turn."""
    if not shutil.which("nginx"):
        raise SystemExit("nginx is missing, and it is the upstream too: apt-get install nginx.")
    seconds, rounds = (1.0, 1) if quick else (4.0, 3)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with on_core(1):
            upstream = stack.enter_context(static_nginx(folder, make_files(folder)))
            wanted = {ASSAY, PAID} & set(only)
            world = await stack.enter_async_context(World.start(say)) if wanted else None
        proxies = plain_proxies(stack, folder, upstream, only)
        if world and ASSAY in only and (free := assay_free(stack, folder, world, upstream)):
            proxies.append(free)
        found = Found()
        if proxies:
            found.free = await asyncio.to_thread(measure_free, proxies, seconds, rounds)
            found.memory = await asyncio.to_thread(measure_memory, proxies, 3 if quick else 8)
        if not world or PAID not in only:
            return found
        chain = stack.enter_context(dollars())
        url = chain.url if chain else world.dollar_url
        keys = chain.payers if chain else [world.agents[0].owner_key]
        if paid := assay_paid(stack, folder, world, upstream, url):
            try:
                found.paid = await asyncio.to_thread(measure_paid, paid, folder, keys, rounds)
            except LoadError as error:  # what was measured before is worth printing
                say(str(error))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--json", action="store_true", help="figures for a machine")
    names = (NGINX, TUNED, NODE, ASSAY, PAID)
    parser.add_argument("--only", action="append", choices=names, help="these proxies alone")
    arguments = parser.parse_args()
    everything = asyncio.run(measure(arguments.quick, arguments.only or names))
    if arguments.json:
        verdicts = judged(GOALS, [*everything.free, *everything.paid])
        print(json.dumps(asdict(everything) | {"goals": [asdict(v) for v in verdicts]}, indent=2))
    else:
        print_tables(everything)
