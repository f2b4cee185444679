"""How well grades tell good agents from bad ones, over simulated days.

    ./.venv/bin/python bench/ground_truth.py                      # all agents, 30 simulated days
    ./.venv/bin/python bench/ground_truth.py --short              # a sample, first evaluation only
    ./.venv/bin/python bench/ground_truth.py --kinds patient,a2a --days 10
    ./.venv/bin/python bench/ground_truth.py --kinds fresh        # the set written afresh, alone
    ./.venv/bin/python bench/ground_truth.py --kinds second       # the one written after it
    ./.venv/bin/python bench/ground_truth.py --kinds third        # and the one after that
    ./.venv/bin/python bench/ground_truth.py --kinds fourth       # the one after that
    ./.venv/bin/python bench/ground_truth.py --kinds fifth        # the one after that
    ./.venv/bin/python bench/ground_truth.py --kinds sixth        # and after that
    ./.venv/bin/python bench/ground_truth.py --kinds seventh      # the newest set
    ./.venv/bin/python bench/ground_truth.py --out rows.jsonl     # keeps rows; goes on after a stop
    ./.venv/bin/python bench/ground_truth.py --out rows.jsonl --only-print
    ./.venv/bin/python bench/ground_truth.py --kinds honest --repeat 100    # false findings
    ./.venv/bin/python bench/ground_truth.py --days 0 --load 16             # a busy machine
    ./.venv/bin/python bench/ground_truth.py --days 0 --node-delay 3        # a slow chain
    ./.venv/bin/python bench/ground_truth.py --kinds x402 --days 7 --everybody --paid-calls 10

The real service runs in this process on a simulated clock and is asked over HTTP; agents run in a
second process, registered on a local chain (anvil). Prints, per kind: agents, admitted or denied at
the first completed evaluation, critical findings on honest agents, and the hours that a harmful
agent was let in; then the mean over kinds and the area under the curve.
"""

import argparse
import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
from aiohttp import ClientSession, web
from pydantic import SecretStr

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from bench.ground_truth_matrix import Row, print_matrix, verdict_of  # noqa: E402
from bench.ground_truth_proxy import proxies  # noqa: E402

from assay.app import App, address_of_key, assemble, sign_message  # noqa: E402
from assay.cli.serve import listen, serving  # noqa: E402
from assay.common.clock import SystemClock  # noqa: E402
from assay.settings import Settings, load  # noqa: E402
from assay_demo.agents.files import data_uri  # noqa: E402
from assay_demo.chain.accounts import ACCOUNTS  # noqa: E402
from assay_demo.chain.registries import Registries, Wallet, deploy, register  # noqa: E402
from tests.ground_truth.agents import AGENTS  # noqa: E402
from tests.ground_truth.site import SimulatedClock, Spec  # noqa: E402
from tests.support.reorganised_chain import anvil  # noqa: E402

CHAIN_ID = 31337
JSON = {"content-type": "application/json"}
ROOT = Path(__file__).parents[1]
VISITS_H = (0, 8, 24, 31, 50, 77, 98, 122, 150, 190, 236, 296, 362, 430, 520, 610, 719)
"""When visits are scheduled, in simulated hours: never at the same time of day."""

STEP_H = 0.5
"""How far the clock goes at once where the service visits by itself."""

COMPLETION_TRIES = 6
"""How often an evaluation that has not ended is asked for."""
TRY_AFTER_H = 1.2


class MovableClock:
    """The service's clock: it runs, and it can be moved on by hours while nothing is under way."""

    def __init__(self, shared: SimulatedClock) -> None:
        self._shared = shared
        self._start = SystemClock().now().replace(microsecond=0)
        self._began_s = time.monotonic()
        self._skipped_s = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic_s() - self._began_s)

    def monotonic_s(self) -> float:
        return time.monotonic() + self._skipped_s

    @property
    def hours(self) -> float:
        return (self.monotonic_s() - self._began_s) / 3600

    def move_to(self, hours: float) -> None:
        self._skipped_s += max(0.0, (hours - self.hours) * 3600)
        self._shared.hours = self.hours


@dataclass
class Subject:
    """A registered agent."""

    spec: Spec
    agent_id: str
    key: str

    @property
    def wallet(self) -> str:
        return address_of_key(self.key)


@dataclass
class Bench:
    """Everything that runs."""

    app: App
    http: httpx2.AsyncClient
    chain: Wallet
    clock: MovableClock
    subjects: Sequence[Subject]
    operator: Mapping[str, str]
    second_operator: Mapping[str, str]
    rows: list[Row]
    out: Path | None
    limit: asyncio.Semaphore
    scheduled: int = 0
    """Visits that the service's scheduler made, readings of robots.txt among them."""


def key_of(name: str) -> str:
    """The owner's key: each agent has an owner of its own."""
    return "0x" + hashlib.blake2b(f"ground truth {name}".encode(), digest_size=32).hexdigest()


def registered(
    chain: Wallet, registries: Registries, subjects: Sequence[Subject], files: Mapping[str, Any]
) -> None:
    """All agents on the chain, each by its own owner."""
    for subject in subjects:
        chain.request("anvil_setBalance", subject.wallet, hex(10**20))
        uri = data_uri(files[subject.spec.name])
        agent_id = register(chain, registries, subject.key, uri)
        assert agent_id == subject.agent_id, (agent_id, subject.agent_id)


@asynccontextmanager
async def agents_running(
    subjects: Sequence[Subject], registry: str, clock: Path
) -> AsyncGenerator[Mapping[str, Any]]:
    """The agents' process; yields their registration files by name."""
    rows = [
        {"name": s.spec.name, "agentId": int(s.agent_id), "wallet": s.wallet, "registry": registry}
        for s in subjects
    ]
    log = clock.with_suffix(".log").open("w+b")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.ground_truth.serve", "--clock", str(clock),
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=log, limit=2**24, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(rows).encode() + b"\n")
        await process.stdin.drain()
        line = await asyncio.wait_for(process.stdout.readline(), 120)
        if not line:
            log.seek(0)
            message = f"the agents did not start: {log.read()[-2000:].decode()}"
            raise RuntimeError(message)
        yield json.loads(line)
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 20)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)  # with the servers it started
            await process.wait()
        log.close()


@asynccontextmanager
async def running(options: argparse.Namespace, specs: Sequence[Spec]) -> AsyncGenerator[Bench]:
    """Chain, agents and service."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ground-truth-")))
        node = stack.enter_context(anvil(CHAIN_ID))
        registries = deploy(node.wallet, ACCOUNTS[0].key)
        subjects = [Subject(s, str(n), key_of(s.name)) for n, s in enumerate(specs)]
        shared = SimulatedClock(folder / "clock")
        registry = f"eip155:{CHAIN_ID}:{registries.identity}"
        files = await stack.enter_async_context(
            agents_running(subjects, registry, folder / "clock")
        )
        registered(node.wallet, registries, subjects, files)
        clock = MovableClock(shared)
        stack.enter_context(busy(options.load))
        rpc_url = await stack.enter_async_context(delayed(node.url, options.node_delay))
        settings = service_settings(folder, rpc_url, registries, options)
        if options.paid_calls:
            paying = stack.enter_context(paid_calls(options.paid_calls))
            settings = settings.model_copy(update=paying)
        if "visit_proxies" in type(settings).model_fields and options.proxies:
            ways = await stack.enter_async_context(proxies(options.proxies))
            settings = settings.model_copy(update={"visit_proxies": tuple(ways)})
        door, settings = stack.enter_context(listen(settings))
        app = await stack.enter_async_context(assemble(settings, clock))
        await stack.enter_async_context(serving(app, door))
        http = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=settings.address, timeout=120, trust_env=False)
        )
        elsewhere = httpx2.AsyncHTTPTransport(local_address="127.0.0.2")
        async with httpx2.AsyncClient(base_url=settings.address, transport=elsewhere) as other:
            # Operators that signed up at one address count as one.
            operators = [await new_operator(http, "first"), await new_operator(other, "second")]
        rows = read_rows(options.out)
        limit = asyncio.Semaphore(options.at_once)
        yield Bench(app, http, node.wallet, clock, subjects, *operators, rows, options.out, limit)


@contextmanager
def paid_calls(usd_per_day: float) -> Generator[Mapping[str, Any]]:
    """A chain where sellers are paid, and the settings of an operator who buys of them."""
    with anvil() as chain:
        key = key_of("the operator who buys")
        chain.wallet.request("anvil_setBalance", address_of_key(key), hex(10**20))
        chain.mint(address_of_key(key), 10**12)
        yield {
            "payment_rpc": {chain.network: (chain.url,)},
            "paid_calls_usd_per_day": Decimal(str(usd_per_day)),
            "paid_calls_key": SecretStr(key),
            "paid_calls_networks": (chain.network,),
            "paid_calls_gas_max": Decimal("0.01"),
        }


@contextmanager
def busy(count: int) -> Generator[None]:
    """So many processes that do nothing but compute."""
    command = [sys.executable, "-c", "while True: sum(range(10**6))"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@asynccontextmanager
async def delayed(url: str, seconds: float) -> AsyncGenerator[str]:
    """A chain node that takes this long for each request; the node itself without a delay."""
    if not seconds:
        yield url
        return
    async with ClientSession() as session:

        async def forward(request: web.Request) -> web.Response:
            await asyncio.sleep(seconds)
            async with session.post(url, data=await request.read(), headers=JSON) as answer:
                return web.Response(body=await answer.read(), content_type="application/json")

        proxy = web.Application()
        proxy.router.add_post("/", forward)
        runner = web.AppRunner(proxy, access_log=None)
        await runner.setup()
        made = web.TCPSite(runner, "127.0.0.1", 0)
        await made.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


def service_settings(
    folder: Path, url: str, registries: Registries, options: argparse.Namespace
) -> Settings:
    """A service as it comes, but for limits that only many callers would meet."""
    network = {
        "chain_id": CHAIN_ID,
        "identity_registry": registries.identity,
        "reputation_registry": registries.reputation,
        "rpc_urls": [url],
        "multicall3": False,
    }
    more = dict(pair.split("=", 1) for pair in options.set)
    return load(
        data_dir=folder / "data",
        port=0,
        chains={"local": network},
        default_chain="local",
        allow_private_upstreams=True,
        anonymous_per_minute=100_000,
        sandbox_per_minute=100_000,
        sandbox_per_agent_minute=1_000,
        accounts_per_address=1_000,
        self_registry="",
        log_level="error",
        scheduled_visits=False,  # they are made in `let_scheduler_work`: no clock moves meanwhile
        **more,
    )


async def new_operator(http: httpx2.AsyncClient, name: str) -> dict[str, str]:
    """An account's key, as a header."""
    body = {"email": f"{name}@example.com", "password": "correct horse battery", "name": "Truth"}
    answer = await http.post("/operator/register", json=body)
    answer.raise_for_status()
    return {"authorization": f"Bearer {answer.json()['apiKey']}"}


def read_rows(out: Path | None) -> list[Row]:
    """What an earlier run wrote."""
    if out is None or not out.exists():
        return []
    return [Row(**json.loads(line)) for line in out.read_text("utf-8").splitlines() if line]


async def prove(bench: Bench, subject: Subject) -> dict[str, str]:
    """The agent's own session; sessions end with simulated hours."""
    owner = subject.wallet
    told = (await bench.http.post(f"/operator/key/{owner}/challenge")).json()
    signature = sign_message(subject.key, told["challenge"])
    body = {"agentAddress": owner, "challenge": told["challenge"], "signature": signature}
    answer = await bench.http.post("/operator/key/verify", json=body)
    answer.raise_for_status()
    return {"x-agent-address": owner, "x-agent-session": answer.headers["x-agent-session"]}


async def gate(
    bench: Bench, subject: Subject, operator: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The gate's answer to the agent itself; the answer of a refusal has no `allow`."""
    headers = {**(operator or bench.operator), **await prove(bench, subject)}
    answer = await bench.http.post(f"/operator/gate/{subject.agent_id}", headers=headers)
    return answer.json() | {"status": answer.status_code}


async def visit(bench: Bench, subject: Subject) -> dict[str, Any]:
    """One scheduled visit. The scheduler's own visits take the place of this function."""
    answer = await bench.http.post(
        f"/operator/trigger-sandbox/{subject.agent_id}", headers=bench.operator
    )
    return answer.json() | {"status": answer.status_code}


async def let_scheduler_work(bench: Bench, until_h: float) -> None:
    """Move to the hour; a service that has a scheduler makes its visits on the way there."""
    scheduler = scheduler_of(bench)
    await bench.app.flush()  # whom gates were asked about
    while bench.clock.hours < until_h:
        step_h = STEP_H if scheduler is not None else until_h
        bench.clock.move_to(min(until_h, bench.clock.hours + step_h))
        while scheduler is not None and (made := await scheduler.run()):
            bench.scheduled += made
    bench.chain.request("anvil_mine", hex(1))


def scheduler_of(bench: Bench) -> Any:  # noqa: ANN401 - a part that older versions do not have
    """The service's own scheduler of visits; None where it has none."""
    return getattr(bench.app, "scheduler", None)


async def evaluated(bench: Bench, subject: Subject, round_h: int, *, first: bool) -> Row:
    """One agent at one scheduled time: a visit, then what the gate says."""
    async with bench.limit:
        began_s = time.monotonic()
        is_visited = first or scheduler_of(bench) is not None
        visited = {} if is_visited else await visit(bench, subject)
        decision = await gate(bench, subject)
        seconds = time.monotonic() - began_s
        if first:  # agents that two operators ask for are visited regularly
            await gate(bench, subject, bench.second_operator)
        profile = await bench.http.get(
            f"/operator/agent/{subject.agent_id}", headers=bench.operator
        )
    return verdict_of(subject.spec, round_h, seconds, decision, visited, profile.json())


async def one_round(bench: Bench, round_h: int, options: argparse.Namespace) -> None:
    """All agents at this hour, some at once; unfinished first ones are asked again."""
    await let_scheduler_work(bench, round_h)
    done = {(row.name, row.round_h) for row in bench.rows if not row.is_pending}
    waiting = [s for s in bench.subjects if (s.spec.name, round_h) not in done]
    waiting = [s for s in waiting if round_h == 0 or options.everybody or is_followed(s.spec)]
    for attempt in range(COMPLETION_TRIES):
        is_last = attempt == COMPLETION_TRIES - 1 or round_h > 0
        rows = await in_turns(bench, waiting, round_h, keep_pending=is_last)
        pending = {row.name for row in rows if row.is_pending}
        if is_last or not pending:
            return
        waiting = [s for s in waiting if s.spec.name in pending]
        await let_scheduler_work(bench, bench.clock.hours + TRY_AFTER_H)


async def in_turns(
    bench: Bench, subjects: Sequence[Subject], round_h: int, *, keep_pending: bool
) -> list[Row]:
    """Evaluate these, `at_once` of them at a time; rows are kept as they come."""

    async def one(subject: Subject) -> Row:
        row = await evaluated(bench, subject, round_h, first=round_h == 0)
        if keep_pending or not row.is_pending:
            keep(bench, row)
        return row

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(subject)) for subject in subjects]
    return [task.result() for task in tasks]


def keep(bench: Bench, row: Row) -> None:
    """In memory, and in the file where there is one."""
    bench.rows.append(row)
    if bench.out is not None:
        with bench.out.open("a", encoding="utf-8") as file:
            file.write(row.to_json() + "\n")


def is_followed(spec: Spec) -> bool:
    """Who is watched beyond the first evaluation: those that change, and a share of the rest."""
    return spec.truth == "patient" or spec.kind == "flapping" or int(key_of(spec.name), 16) % 3 == 0


def chosen(options: argparse.Namespace) -> list[Spec]:
    """The agents of this run; those that another one points at come with it."""
    kinds = set(options.kinds.split(",")) if options.kinds else None
    specs = [s for s in AGENTS if kinds is None or {s.kind, s.kind.split()[0], s.truth} & kinds]
    if options.names:
        specs = [s for s in specs if s.name in options.names.split(",")]
    if options.short:
        seen: dict[tuple[str, str], int] = {}
        specs = [s for s in specs if _count(seen, (s.truth, s.kind)) <= options.per_kind]
    names = {s.name for s in specs}
    for spec in AGENTS:
        needed = spec.kind in {s.kind for s in specs} and spec.kind.endswith("shared host")
        if spec.name not in names and (
            needed or (spec.name in VICTIMS and "clones" in {s.kind for s in specs})
        ):
            specs.append(spec)
    return sorted(specs, key=list(AGENTS).index)


VICTIMS = ("Desk assistant", "Atlas with a website", "Plain palette", "Measures", "Seller")
"""Whom clones copy: registered before them, whatever kinds are asked for."""


def _count(seen: dict[tuple[str, str], int], kind: tuple[str, str]) -> int:
    seen[kind] = seen.get(kind, 0) + 1
    return seen[kind]


async def run(options: argparse.Namespace) -> list[Row]:
    """All rounds."""
    specs = chosen(options)
    last_h = 0 if options.short else options.days * 24
    hours = range(options.repeat) if options.repeat else VISITS_H
    if options.repeat:
        last_h, options.everybody = options.repeat, True
    began_s = time.monotonic()
    async with running(options, specs) as bench:
        for round_h in hours:
            if round_h <= last_h:
                await one_round(bench, round_h, options)
                said = (
                    f"hour {round_h}: {len(bench.rows)} rows, {bench.scheduled} scheduled visits,"
                    f" {time.monotonic() - began_s:.0f} s"
                )
                print(said, file=sys.stderr)
        return bench.rows


def main() -> None:
    """Run, print, and end with status 1 where a bar is not held and `--strict` asks for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", help="kinds, or honest, immediate, patient; comma-separated")
    parser.add_argument("--names", help="of these only those of these names; comma-separated")
    parser.add_argument("--short", action="store_true", help="a sample, first evaluation only")
    parser.add_argument("--per-kind", type=int, default=2, help="agents of each kind with --short")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--everybody", action="store_true", help="follow all agents for all days")
    parser.add_argument("--load", type=int, default=0, help="busy processes beside the service")
    parser.add_argument(
        "--proxies", type=int, default=3, help="ways out for unannounced visits, where it has them"
    )
    parser.add_argument(
        "--paid-calls", type=float, default=0.0, help="USD a day for calls of sellers"
    )
    parser.add_argument("--node-delay", type=float, default=0.0, help="seconds per chain request")
    parser.add_argument(
        "--repeat", type=int, default=0, help="so many visits of each chosen agent, an hour apart"
    )
    parser.add_argument("--out", type=Path, help="JSON lines; rows in it are not made again")
    parser.add_argument("--only-print", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    options = parser.parse_args()
    rows = read_rows(options.out) if options.only_print else asyncio.run(run(options))
    is_held = print_matrix(rows, until_h=0 if options.short else options.days * 24)
    sys.exit(1 if options.strict and not is_held else 0)


if __name__ == "__main__":
    main()
