"""A wrapper beside nginx `proxy_pass` and a Node proxy: same core, same upstream, same run.

    ./.venv/bin/python bench/wrapper.py [--quick] [--json] [--only NAME]...

Every proxy runs on core 0; the upstream (nginx, static files) and the load run on core 1. Rounds
alternate between the proxies and medians are printed. CPU time is user + system of the proxy's
processes, from /proc, divided by the requests answered. `busy` is the share of core 0 the proxy
used: far below 1, the requests a second are the load's limit and not the proxy's. Latencies are
at a fixed rate, from when each request was due. nginx is not asked to log or to limit; the
wrapper has trust, rate limit and call log on. Needs: nginx; Node.js with npm.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx2

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from gate import make_pro, port_of  # noqa: E402
from upstream import (  # noqa: E402
    DEFAULT_BUFFERS,
    FILES,
    TUNED_BUFFERS,
    install_http_proxy,
    make_files,
    on_core,
    processes_of,
    proxy_nginx,
    proxy_node,
    static_nginx,
)

from assay_demo.world import World  # noqa: E402
from tests.services.assay import operator, served  # noqa: E402

NGINX, TUNED, NODE, ASSAY = "nginx", "nginx tuned", "node http-proxy", "assay free"
CONNECTIONS = {"1k": 32, "100k": 32, "10m": 8}
RATES = {"1k": 1000.0, "100k": 500.0, "10m": 10.0}
"""Requests a second of the latency pass: every proxy here can serve them."""
WARM_S = 1.0
SLOW_READERS = 32
AGENT = "0x" + "a5" * 20
PLENTY = 100_000_000


@dataclass(frozen=True)
class Proxy:
    """A running proxy: the files are at `prefix` + name."""

    name: str
    pids: tuple[int, ...]
    port: int
    prefix: str = "/files/"
    headers: tuple[tuple[str, str], ...] = ()


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
                taken[proxy.name].append(full | paced)
        rows += with_ratios([Row(file, name, **medians(of)) for name, of in taken.items()])
    return rows


def measure_memory(proxies: Sequence[Proxy], seconds: float) -> list[Memory]:
    """Each proxy once, after its rounds: what it holds for readers that hardly read."""
    say(f"memory with {SLOW_READERS} slow readers")
    return [
        Memory(proxy.name, **order(proxy, "slow", "10m", seconds, SLOW_READERS))
        for proxy in proxies
    ]


def order(
    proxy: Proxy, mode: str, file: str, seconds: float, connections: int, rate: float = 0
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
    }
    command = [sys.executable, str(Path(__file__).with_name("load.py")), json.dumps(said)]
    with on_core(1):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{proxy.name}, {mode}, {file}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout)


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


@asynccontextmanager
async def proxies_of(
    stack: AsyncExitStack, folder: Path, upstream: int, only: Sequence[str]
) -> AsyncGenerator[list[Proxy]]:
    """The proxies wanted, each alone on core 0; a sentence about each that is not there."""
    proxies: list[Proxy] = []
    world = None
    if ASSAY in only:
        with on_core(1):
            world = await stack.enter_async_context(World.start(say))
    with on_core(0):
        for name, buffers in ((NGINX, DEFAULT_BUFFERS), (TUNED, TUNED_BUFFERS)):
            if name in only:
                place = name.replace(" ", "-")
                pid, port = stack.enter_context(proxy_nginx(folder, place, upstream, buffers))
                proxies.append(Proxy(name, processes_of(pid), port))
        missing = install_http_proxy(folder) if NODE in only else None
        if missing:
            print(missing, file=sys.stderr)
        elif NODE in only:
            pid, port = stack.enter_context(proxy_node(folder, upstream))
            proxies.append(Proxy(NODE, processes_of(pid), port))
        if world is not None:
            assay = assay_free(stack, folder, world, upstream)
            proxies += [assay] if assay else []
    yield proxies


def assay_free(stack: AsyncExitStack, folder: Path, world: World, upstream: int) -> Proxy | None:
    """Assay with a free wrapper of the upstream: trust, rate limit and call log are on."""
    settings = {
        "ASSAY_WRAPPER_PER_MINUTE": str(PLENTY),
        "ASSAY_KEYED_PER_MINUTE": str(PLENTY),
        "ASSAY_LOG_LEVEL": "warning",
    }
    data, chains = folder / "assay", {"local": dict(world.network_override)}
    server = stack.enter_context(served(data, chains, **settings))
    assert server.process is not None
    with httpx2.Client(base_url=server.address, timeout=60, trust_env=False) as http:
        operator(http)
        make_pro(server.environment)
        operator_id, token = log_in(http)
        endpoint = {
            "path": "/files/*",
            "method": "GET",
            "pricePerCall": 0,
            "targetUrl": f"http://127.0.0.1:{upstream}",
            "trustEnabled": True,
            "minScore": 0,
            "identityProof": "asserted",
            "rateLimit": PLENTY,
        }
        made = http.post(
            "/operator/endpoints", json=endpoint, headers={"authorization": f"Bearer {token}"}
        )
        prefix, headers = f"/wrap/{operator_id}/files/", {"x-agent-address": AGENT}
        # The first call evaluates the agent and may take seconds.
        first = http.get(prefix + "1k", headers=headers)
    if made.status_code == 404:
        print("Assay: not served (404).", file=sys.stderr)
        return None
    assert made.is_success, made.text
    assert first.status_code == 200, first.text
    pids = processes_of(server.process.pid)
    return Proxy(ASSAY, pids, port_of(server.address), prefix, tuple(headers.items()))


def log_in(http: httpx2.Client) -> tuple[str, str]:
    """Operator id and dashboard token of the account `operator` registers."""
    body = {"email": "op@example.com", "password": "correct horse battery"}
    answer = http.post("/operator/login", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["operator"]["id"], answer.json()["token"]


def say(text: str) -> None:
    print(text, file=sys.stderr)


def print_tables(rows: Iterable[Row], memory: Iterable[Memory]) -> None:
    """For people."""

    def times(ratio: float | None) -> str:
        return "-" if ratio is None else f"{ratio:.2f}"

    print(
        f"{'file':5} {'proxy':16} {'requests/s':>10} {'CPU us/req':>11} {'x nginx':>8} "
        f"{'x tuned':>8} {'busy':>5} {'p50 ms':>7} {'p99 ms':>7}"
    )
    for row in rows:
        print(
            f"{row.file:5} {row.proxy:16} {row.requests_s:10.0f} {row.cpu_us:11.1f} "
            f"{times(row.x_nginx):>8} {times(row.x_tuned):>8} {row.busy:5.2f} "
            f"{row.p50_ms:7.2f} {row.p99_ms:7.2f}"
        )
    rates = ", ".join(f"{file} {rate:.0f}" for file, rate in RATES.items())
    print(f"p50 and p99 at a fixed rate of requests a second: {rates}.\n")
    print(f"{SLOW_READERS} slow readers of 10m: {'RSS before MiB':>16} {'peak':>7} {'taken':>7}")
    for held in memory:
        print(
            f"{held.proxy:22} {held.rss_before_mib:16.1f} {held.rss_peak_mib:7.1f} "
            f"{held.taken_mib:7.1f}"
        )


async def measure(quick: bool, only: Sequence[str], as_json: bool) -> None:  # noqa: FBT001
    """Start everything, load the proxies in turn, print."""
    if not shutil.which("nginx"):
        raise SystemExit("nginx is missing, and it is the upstream too: apt-get install nginx.")
    seconds, rounds = (1.0, 1) if quick else (4.0, 3)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with on_core(1):
            upstream = stack.enter_context(static_nginx(folder, make_files(folder)))
        proxies = await stack.enter_async_context(proxies_of(stack, folder, upstream, only))
        rows = await asyncio.to_thread(measure_free, proxies, seconds, rounds)
        memory = await asyncio.to_thread(measure_memory, proxies, 3 if quick else 8)
    if as_json:
        found = {"free": [asdict(r) for r in rows], "memory": [asdict(m) for m in memory]}
        print(json.dumps(found, indent=2))
    else:
        print_tables(rows, memory)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--json", action="store_true", help="figures for a machine")
    names = (NGINX, TUNED, NODE, ASSAY)
    parser.add_argument("--only", action="append", choices=names, help="these proxies alone")
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.quick, arguments.only or names, arguments.json))
