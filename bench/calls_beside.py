"""Cached gates and free wrapper calls of this tree beside those of another commit: processor time.

    .venv/bin/python bench/calls_beside.py --commit 89c988e [--rounds 11] [--calls 6000]

Both services run at the same time on one core, with the same chain, agent and upstream, and are
called by turns from another core. Every request has an id, a `traceparent` and (wrappers) a query
of its own. The wrapper asks for trust and has a rate limit. Printed is the processor time a call
and the ratio of this tree to the commit, round by round: the median and its 95 % interval.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import httpx2
import uvloop

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from interval import ROUNDS_MIN, beside  # noqa: E402
from upstream import PLENTY, log_in, make_files, on_core, say, static_nginx  # noqa: E402

from assay_demo.world import World  # noqa: E402
from gate import cpu_s, make_pro, port_of  # noqa: E402
from tests.support.assay import operator, session  # noqa: E402

CONNECTIONS = 16
SETTINGS = {
    "ASSAY_PORT": "0",
    "ASSAY_DEFAULT_CHAIN": "local",
    "ASSAY_ALLOW_PRIVATE_UPSTREAMS": "1",
    "ASSAY_SELF_REGISTRY": "",
    "ASSAY_LOG_LEVEL": "warning",
    "ASSAY_WRAPPER_PER_MINUTE": str(PLENTY),
    "ASSAY_KEYED_PER_MINUTE": str(PLENTY),
    "ASSAY_ANONYMOUS_PER_MINUTE": str(PLENTY),
}


Asked: TypeAlias = tuple[str, str, Mapping[str, str]]
"""Method, path and headers."""


@dataclass(frozen=True)
class Side:
    """One of the two services, and what it is asked."""

    pid: int
    port: int
    gate: Asked
    wrapper: Asked

    def request(self, kind: str, number: int) -> bytes:
        """A request that is like no other."""
        method, path, headers = self.gate if kind == "gate" else self.wrapper
        query = f"?page={number}&session={uuid4().hex[:8]}" if kind == "wrapper" else ""
        trace = f"00-{uuid4().hex}-{uuid4().hex[:16]}-01"
        own = {"x-request-id": uuid4().hex, "traceparent": trace, **headers}
        lines = [f"{method} {path}{query} HTTP/1.1", "host: localhost", "content-length: 0"]
        return "\r\n".join([*lines, *(f"{k}: {v}" for k, v in own.items()), "", ""]).encode()


@contextmanager
def service(source: Path, data: Path, world: World, upstream: int) -> Iterator[Side]:
    """A service of some source that has judged an agent, with a wrapper of the upstream."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
    chains = json.dumps({"local": dict(world.network_override)})
    own = {"ASSAY_DATA_DIR": str(data), "PYTHONPATH": str(source), "ASSAY_CHAINS": chains}
    environment = plain | SETTINGS | own
    command = [sys.executable, "-m", "assay", "serve"]
    with on_core(0):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise SystemExit(f"{source}: the service did not start")
        with httpx2.Client(base_url=found.group(), timeout=60, trust_env=False) as http:
            gate, wrapper = _asked(http, environment, world, upstream)
        yield Side(process.pid, port_of(found.group()), gate, wrapper)
    finally:
        process.terminate()
        process.wait(30)


def _asked(
    http: httpx2.Client, environment: dict[str, str], world: World, upstream: int
) -> tuple[Asked, Asked]:
    """A gate and a wrapper call that were answered once."""
    agent = world.agents[0]
    key = operator(http)
    make_pro(environment)
    proven = session(http, agent.owner_key)
    operator_id, token = log_in(http)
    endpoint = {
        "path": "/files/*",
        "method": "GET",
        "targetUrl": f"http://127.0.0.1:{upstream}",
        "trustEnabled": True,
        "minScore": 0,
        "rateLimit": PLENTY,
        "pricePerCall": 0,
    }
    bearer = {"authorization": f"Bearer {token}"}
    made = http.post("/operator/endpoints", json=endpoint, headers=bearer)
    assert made.is_success, made.text
    gate = "POST", f"/operator/gate/{agent.agent_id}", key | proven
    wrapper = "GET", f"/wrap/{operator_id}/files/1k", proven | {"x-agent-id": agent.agent_id}
    for method, path, headers in (gate, wrapper):
        answer = http.request(method, path, headers=headers)
        assert answer.status_code == 200, answer.text
    return gate, wrapper


async def call(side: Side, kind: str, calls: int) -> float:
    """Processor microseconds a call."""
    waiting = iter([side.request(kind, number) for number in range(calls)])
    before = cpu_s(side.pid)
    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(_connection(side.port, waiting))
    return (cpu_s(side.pid) - before) / calls * 1e6


async def _connection(port: int, waiting: Iterator[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in waiting:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise SystemExit(f"not answered with 200: {head!r}")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
    writer.close()


async def measure(commit: str, rounds: int, calls: int) -> None:
    """Call both by turns; print the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        archive = folder / "commit.tar"
        for command in (
            ["git", "archive", f"--output={archive}", commit, "src"],
            ["tar", "-xf", str(archive), "-C", str(folder)],
        ):
            subprocess.run(command, cwd=ROOT, check=True)
        os.sched_setaffinity(0, {1} if os.cpu_count() != 1 else {0})
        upstream = stack.enter_context(static_nginx(folder, make_files(folder)))
        async with World.start(say) as world:
            sides = [
                stack.enter_context(service(source, folder / name, world, upstream))
                for name, source in (("now", ROOT / "src"), ("then", folder / "src"))
            ]
            for kind in ("gate", "wrapper"):
                show(
                    kind,
                    commit,
                    [await one_round(sides, kind, n, calls) for n in range(rounds + 1)],
                )


async def one_round(
    sides: Sequence[Side], kind: str, number: int, calls: int
) -> tuple[float, float]:
    """The figures of this tree and of the commit; who is first changes."""
    found = [0.0, 0.0]
    for index in (0, 1) if number % 2 else (1, 0):
        found[index] = await call(sides[index], kind, calls)
    return found[0], found[1]


def show(kind: str, commit: str, pairs: Sequence[tuple[float, float]]) -> None:
    """One line; the first round warmed both."""
    print(f"{kind:8} us  {beside(pairs[1:], commit)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--commit", required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--calls", type=int, default=6000, help="of each service in a round")
    asked = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(asked.commit, asked.rounds, asked.calls))
