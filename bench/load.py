"""The load of `bench/wrapper.py`, a process of its own: reads one order, prints one result.

    python bench/load.py '{"mode": "closed", "port": 8000, "path": "/1k", "size": 1024, ...}'

`closed`: every connection asks again as soon as its answer is whole. `open`: requests are due at
a fixed rate whatever the answers do, and a latency counts from when its request was due. `slow`:
readers that take 64 KiB and pause, while the proxy's memory is watched.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import cast

import uvloop

READ_BYTES = 64 * 1024
PAUSE_S = 0.25
SETTLE_S = 0.3
DRAIN_S = 20
_BUFFER = bytearray(256 * 1024)
"""Shared by all connections: what was read is counted, not kept."""


@dataclass(frozen=True)
class Order:
    """What is asked of whom.

    `pids`: the proxy's processes. `rate`: of `open`, a second. `tickets`: a file with a JSON list
    of values of the header `ticket_header`, each for one request (a payment is good once).
    """

    mode: str
    port: int
    path: str
    size: int
    seconds: float
    connections: int
    rate: float = 0
    pids: tuple[int, ...] = ()
    headers: dict[str, str] = field(default_factory=dict[str, str])
    ticket_header: str = ""
    tickets: str = ""

    def requests(self) -> Iterator[bytes]:
        """The same for ever, or one a ticket."""
        if not self.tickets:
            return repeat(self._request())
        values = json.loads(Path(self.tickets).read_text("utf-8"))
        return iter([self._request(f"{self.ticket_header}: {value}") for value in values])

    def _request(self, *more: str) -> bytes:
        lines = [f"GET {self.path} HTTP/1.1", f"host: 127.0.0.1:{self.port}", *more]
        return "\r\n".join(
            [*lines, *(f"{k}: {v}" for k, v in self.headers.items()), "", ""]
        ).encode()


def cpu_s(pids: Iterable[int]) -> float:
    """Processor time of all threads that still run, to the nanosecond: `stat` counts in 10 ms."""
    return sum(
        int((task / "schedstat").read_text().split()[0]) / 1e9
        for pid in pids
        for task in Path(f"/proc/{pid}/task").iterdir()
    )


def rss_mib(pids: Iterable[int]) -> float:
    """Resident memory of the processes."""
    return sum(int(_stat(pid)[21]) for pid in pids) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()


class Connection(asyncio.BufferedProtocol):
    """One request at a time; only an answer of 200 with the expected length is an answer."""

    def __init__(
        self, requests: Iterator[bytes], size: int, on_done: "Callable[[Connection], None]"
    ) -> None:
        self.requests, self.size, self.on_done = requests, size, on_done
        self.view = memoryview(_BUFFER)
        self.head = b""
        self.left = -1  # of the body; below zero: the head is awaited
        self.body_bytes = 0
        self.due_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def ask(self) -> None:
        self.transport.write(next(self.requests))

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self.view

    def buffer_updated(self, nbytes: int) -> None:
        if self.left < 0:
            self.head += self.view[:nbytes]
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            nbytes = len(self.head) - end - 4
            self._judge(self.head[:end].lower())
            self.head, self.left = b"", self.size
        self.left -= nbytes
        self.body_bytes += nbytes
        if not self.left:
            self.left = -1
            self.on_done(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.left >= 0:
            fail(f"the connection ended inside an answer: {exc}")
        self.on_lost(self)

    def on_lost(self, connection: "Connection") -> None:
        """An idle connection that the server closed; the pacer opens another."""

    def _judge(self, head: bytes) -> None:
        if (
            not head.startswith(b"http/1.1 200")
            or b"\r\ncontent-length: %d" % self.size not in head
        ):
            fail(f"not the file: {self.head[:600].decode('latin-1')!r}")


def fail(text: str) -> None:
    """End with a sentence; what was measured until now is worth nothing."""
    print(text, file=sys.stderr, flush=True)
    os._exit(1)


async def connect(order: Order, on_done: Callable[[Connection], None]) -> list[Connection]:
    """All connections of an order."""
    loop, requests = asyncio.get_running_loop(), order.requests()
    return [
        (
            await loop.create_connection(
                lambda: Connection(requests, order.size, on_done), "127.0.0.1", order.port
            )
        )[1]
        for _ in range(order.connections)
    ]


async def closed(order: Order) -> dict[str, float]:
    """Requests a second, CPU microseconds a request, and how busy the proxy was (1: one core)."""
    running, idle = True, asyncio.Semaphore(0)

    def again(connection: Connection) -> None:
        if running:
            connection.ask()
        else:
            idle.release()

    connections = await connect(order, again)
    for connection in connections:
        connection.ask()
    await asyncio.sleep(SETTLE_S)

    def asked() -> float:
        """Answers so far, with the share of those under way."""
        return sum(c.body_bytes for c in connections) / order.size

    before, cpu, begun_s = asked(), cpu_s(order.pids), time.monotonic()
    await asyncio.sleep(order.seconds)
    done, used, wall = asked() - before, cpu_s(order.pids) - cpu, time.monotonic() - begun_s
    if not done:
        fail("no answer at all")
    running = False  # whole answers to the last: a proxy's pool is clean for the next round
    async with asyncio.timeout(DRAIN_S):
        for _ in connections:
            await idle.acquire()
    return {"requests_s": done / wall, "cpu_us": used / done * 1e6, "busy": used / wall}


class Pace:
    """Asks when a request is due; one that finds no free connection waits, and is late."""

    def __init__(self, order: Order) -> None:
        self.rate, self.total = order.rate, int(order.rate * order.seconds)
        self.peer = ("127.0.0.1", order.port)
        self.free: deque[Connection] = deque()
        self.opening: set[asyncio.Task[None]] = set()
        self.waiting: deque[float] = deque()
        self.latencies_s: list[float] = []
        self.finished = asyncio.Event()
        self.begun_s, self.sent = 0.0, 0

    def tick(self) -> None:
        """Everything that is due by now."""
        now_s = time.monotonic()
        while self.sent < self.total:
            due_s = self.begun_s + self.sent / self.rate
            if due_s > now_s:
                break
            self.sent += 1
            self.waiting.append(due_s)
        if self.sent == self.total:
            signal.setitimer(signal.ITIMER_REAL, 0)
        while self.waiting and self.free:
            self._ask(self.free.popleft())

    def done(self, connection: Connection) -> None:
        """An answer is whole."""
        self.latencies_s.append(time.monotonic() - connection.due_s)
        if self.waiting:
            self._ask(connection)
        else:
            self.free.append(connection)
        if len(self.latencies_s) == self.total:
            self.finished.set()

    def lost(self, connection: Connection) -> None:
        """The server closed one that was idle: open another in its place."""
        if connection in self.free and not self.finished.is_set():
            self.free.remove(connection)
            task = asyncio.ensure_future(self._open(connection))
            self.opening.add(task)
            task.add_done_callback(self.opening.discard)

    async def _open(self, lost: Connection) -> None:
        peer = self.peer
        _, made = await asyncio.get_running_loop().create_connection(
            lambda: Connection(lost.requests, lost.size, self.done), *peer
        )
        made.on_lost = self.lost
        if self.waiting:
            self._ask(made)
        else:
            self.free.append(made)

    def _ask(self, connection: Connection) -> None:
        connection.due_s = self.waiting.popleft()
        connection.ask()


async def paced(order: Order) -> dict[str, float]:
    """As `closed`, and p50 and p99 of the latency in milliseconds."""
    pace = Pace(order)
    pace.free.extend(await connect(order, pace.done))
    for connection in pace.free:
        connection.on_lost = pace.lost
    pace.begun_s = time.monotonic() + SETTLE_S
    # The kernel's interval timer: a loop's own timers are only good to a millisecond.
    asyncio.get_running_loop().add_signal_handler(signal.SIGALRM, pace.tick)
    signal.setitimer(signal.ITIMER_REAL, SETTLE_S, min(max(1 / order.rate, 1e-4), 0.01))
    cpu = cpu_s(order.pids)
    async with asyncio.timeout(120 + order.seconds):
        await pace.finished.wait()
    used, wall = cpu_s(order.pids) - cpu, time.monotonic() - pace.begun_s
    ordered = sorted(pace.latencies_s)
    return {
        "requests_s": pace.total / wall,
        "cpu_us": used / pace.total * 1e6,
        "busy": used / wall,
        "p50_ms": ordered[len(ordered) // 2] * 1e3,
        "p99_ms": ordered[int(len(ordered) * 0.99)] * 1e3,
    }


async def slow(order: Order) -> dict[str, float]:
    """Memory before, and its peak while the readers read; their share of the files."""
    before = peak = rss_mib(order.pids)
    taken = 0

    async def read() -> None:
        nonlocal taken
        loop = asyncio.get_running_loop()
        with socket.socket() as reader:
            reader.setblocking(False)  # noqa: FBT003
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READ_BYTES)
            await loop.sock_connect(reader, ("127.0.0.1", order.port))
            await loop.sock_sendall(reader, next(order.requests()))
            while piece := await loop.sock_recv(reader, READ_BYTES):
                taken += len(piece)
                await asyncio.sleep(PAUSE_S)

    readers = [asyncio.ensure_future(read()) for _ in range(order.connections)]
    end_s = time.monotonic() + order.seconds
    while time.monotonic() < end_s:
        await asyncio.sleep(0.05)
        peak = max(peak, rss_mib(order.pids))
    ended = [r for r in readers if r.done()]
    if ended or not taken:
        fail(f"{len(ended)} slow readers were ended early")
    return {"rss_before_mib": before, "rss_peak_mib": peak, "taken_mib": taken / 2**20}


async def obey(order: Order) -> None:
    """Carry the order out and print its result."""
    result = await {"closed": closed, "open": paced, "slow": slow}[order.mode](order)
    print(json.dumps(result), flush=True)
    os._exit(0)  # answers under way are of no interest


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(obey(Order(**json.loads(sys.argv[1]))))
