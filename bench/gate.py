"""The gate from its cache, beside a bare ASGI "hello" on the same core in the same run.

    ./.venv/bin/python bench/gate.py [--seconds 4] [--rounds 3]

The server runs on core 0, the load on core 1 (32 keep-alive connections, one request each at a
time). Rounds alternate between the two servers; medians are printed. CPU time is user + system of
the server process, from /proc, divided by the requests it answered.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2
import uvloop

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from assay_demo.world import World  # noqa: E402
from tests.support.assay import operator, served, session  # noqa: E402

CONNECTIONS = 32

HELLO = """
import uvicorn
async def app(scope, receive, send):
    body = b'{"hello":"world"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
uvicorn.run(app, port=PORT, http="httptools", loop="uvloop", access_log=False,
            log_level="error", lifespan="off")
"""


@dataclass(frozen=True)
class Target:
    """A running server and the request it is asked."""

    name: str
    pid: int
    port: int
    request: bytes


class Connection(asyncio.Protocol):
    """Sends the next request as soon as the answer to the last one is whole."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.done = 0
        self.bad = 0
        self.buffer = b""
        self.running = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        lower = self.buffer[:head].lower()
        start = lower.index(b"content-length:") + 15
        length = int(lower[start : (lower + b"\r\n").index(b"\r\n", start)])
        if len(self.buffer) < head + 4 + length:
            return
        self.bad += not self.buffer.startswith(b"HTTP/1.1 200")
        self.buffer = self.buffer[head + 4 + length :]
        self.done += 1
        if self.running:
            self.transport.write(self.request)


def cpu_s(pid: int) -> float:
    """User and system seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    """Resident memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def load(target: Target, seconds: float) -> tuple[float, float]:
    """Requests a second, CPU microseconds a request."""
    loop = asyncio.get_running_loop()
    connections = [
        (
            await loop.create_connection(
                lambda: Connection(target.request), "127.0.0.1", target.port
            )
        )[1]
        for _ in range(CONNECTIONS)
    ]
    await asyncio.sleep(0.3)
    before, cpu, begun = sum(c.done for c in connections), cpu_s(target.pid), time.monotonic()
    await asyncio.sleep(seconds)
    done = sum(c.done for c in connections) - before
    used, wall = cpu_s(target.pid) - cpu, time.monotonic() - begun
    bad = sum(c.bad for c in connections)
    for connection in connections:
        connection.running = False
        connection.transport.close()
    if bad or not done:
        raise SystemExit(f"{target.name}: {bad} answers were not 200, {done} were")
    return done / wall, used / done * 1e6


def request_bytes(method: str, path: str, headers: dict[str, str]) -> bytes:
    """One HTTP/1.1 request."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "content-length: 0"]
    return "\r\n".join([*lines, *(f"{k}: {v}" for k, v in headers.items()), "", ""]).encode()


def make_pro(environment: dict[str, str]) -> None:
    """The Free plan's monthly allowance ends in seconds here."""
    command = [sys.executable, "-m", "assay", "accounts", "set-plan", "op@example.com", "pro"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    time.sleep(6)  # the serving process remembers a key's operator for five seconds


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


async def measure(seconds: float, rounds: int) -> None:
    """Start both servers, load them in turn, print the table."""
    os.sched_setaffinity(0, {0})
    async with World.start(lambda text: print(text, file=sys.stderr)) as world:
        with tempfile.TemporaryDirectory() as folder:
            limits = {"ASSAY_KEYED_PER_MINUTE": "1000000000"}
            chains = {"local": dict(world.network_override)}
            with served(Path(folder), chains, **limits) as server:
                agent = world.agents[0]
                with httpx2.Client(base_url=server.address, timeout=40, trust_env=False) as http:
                    headers = operator(http) | session(http, agent.owner_key)
                    make_pro(server.environment)
                    path = f"/operator/gate/{agent.agent_id}"
                    assert http.post(path, headers=headers).status_code == 200
                hello = subprocess.Popen([sys.executable, "-c", HELLO.replace("PORT", "18999")])
                await asyncio.sleep(1)
                os.sched_setaffinity(0, {1} if os.cpu_count() != 1 else {0})
                assert server.process is not None
                gate_request = request_bytes("POST", path, headers)
                targets = [
                    Target("bare ASGI hello", hello.pid, 18999, request_bytes("GET", "/", {})),
                    Target(
                        "gate, cached", server.process.pid, port_of(server.address), gate_request
                    ),
                ]
                try:
                    await report(targets, seconds, rounds)
                finally:
                    hello.send_signal(signal.SIGTERM)
                    hello.wait()


async def report(targets: list[Target], seconds: float, rounds: int) -> None:
    """Medians over the rounds, and the ratio to the baseline."""
    results: dict[str, list[tuple[float, float]]] = {t.name: [] for t in targets}
    for _ in range(rounds):
        for target in targets:
            results[target.name].append(await load(target, seconds))
    base = statistics.median(cpu for _, cpu in results[targets[0].name])
    print(f"{'server':18} {'requests/s':>10} {'CPU us/request':>15} {'ratio':>6} {'RSS MiB':>8}")
    for target in targets:
        rate = statistics.median(r for r, _ in results[target.name])
        cpu = statistics.median(c for _, c in results[target.name])
        print(
            f"{target.name:18} {rate:10.0f} {cpu:15.1f} {cpu / base:6.2f} "
            f"{rss_mib(target.pid):8.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(arguments.seconds, arguments.rounds))
