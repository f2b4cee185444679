"""Restarts two processes in turn behind HAProxy while callers go on; counts the calls that fail."""

import http.client
import signal
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from tests.support.assay import Served, served
from tests.support.databases import migrated_postgresql
from tests.support.debian import program
from tests.support.eventually import eventually
from tests.support.reverse_proxies import Command, Configure, Route, running
from tests.support.shop import NO_CHAIN, Shop, free_port, upstream

CALLERS = 8
CHECK_MS = 200
UNREADY_S = 2.0
"""HAProxy needs two failed checks; the rest is for a machine that does other things as well."""


@dataclass
class Restarts:
    """What became of the calls."""

    restarts: int = 0
    answers: Counter[str] = field(default_factory=Counter[str])
    """By status, or by the exception's name."""
    calling_s: float = 0.0
    """How long calls were made."""

    @property
    def failed(self) -> int:
        return self.answers.total() - self.answers["200"]


def _haproxy(nodes: Sequence[int], stats: int) -> Configure:
    def configure(folder: Path, routes: Sequence[Route]) -> Command:
        listed = "\n".join(
            f"    server n{number} 127.0.0.1:{port} check inter {CHECK_MS}ms fall 2 rise 1"
            for number, port in enumerate(nodes)
        )
        (folder / "haproxy.cfg").write_text(f"""
defaults
    mode http
    timeout connect 5s
    timeout client 120s
    timeout server 120s
frontend assay
    bind 127.0.0.1:{routes[0].listen}
    http-request set-header X-Forwarded-For %[src]
    default_backend assay
frontend stats
    bind 127.0.0.1:{stats}
    stats enable
    stats uri /
backend assay
    retries 0
    option httpchk GET /readyz
{listed}
""")
        found = program("haproxy")
        return Command([found.path, "-db", "-f", "haproxy.cfg"], found.environment())

    return configure


@contextmanager
def calling(
    url: str, calls_s: float, made: Restarts, context: ssl.SSLContext | None = None
) -> Iterator[None]:
    """Callers that together make that many calls a second until the block ends."""
    is_over = threading.Event()
    parts = urlsplit(url)

    def call() -> None:
        connection = (
            http.client.HTTPSConnection(
                str(parts.hostname), parts.port, timeout=60, context=context
            )
            if context
            else http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        )
        due_s = time.monotonic()
        with closing(connection):
            while not is_over.wait(due_s - time.monotonic()):
                due_s += CALLERS / calls_s
                try:
                    connection.request("GET", parts.path)
                    answer = connection.getresponse()
                    answer.read()
                    made.answers[str(answer.status)] += 1
                except (OSError, http.client.HTTPException) as error:
                    made.answers[type(error).__name__] += 1
                    connection.close()

    threads = [threading.Thread(target=call) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def is_up(stats: int, name: str) -> bool:
    """Whether HAProxy sends calls to the node of that name."""
    page = httpx2.get(f"http://127.0.0.1:{stats}/;csv", timeout=20, trust_env=False).text
    [row] = [line.split(",") for line in page.splitlines() if line.startswith(f"assay,{name},")]
    return row[17] == "UP"


def rolling_restarts(folder: Path, restarts: int, calls_s: float) -> Restarts:
    """Restart two processes that share a PostgreSQL, one after the other, under steady calls."""
    made, ports, stats = Restarts(), (free_port(), free_port()), free_port()
    settings = {
        "ASSAY_DATABASE_URL": migrated_postgresql(),
        "ASSAY_TRUSTED_PROXIES": "127.0.0.1",
        "ASSAY_UNREADY_S": str(UNREADY_S),
        "ASSAY_WRAPPER_PER_MINUTE": "10000000",
    }
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        nodes: list[Served] = [
            stack.enter_context(served(folder, NO_CHAIN, **settings, ASSAY_PORT=str(port)))
            for port in ports
        ]
        client = httpx2.Client(base_url=nodes[0].address, timeout=40, trust_env=False)
        store = Shop(nodes[0], stack.enter_context(client), None, up)  # type: ignore[arg-type] - no dollars here
        store.sign_up()
        path = urlsplit(store.wrap("/steady", 0)).path
        [address] = stack.enter_context(running(_haproxy(ports, stats), ports[:1]))
        for number in range(len(nodes)):
            eventually(lambda number=number: is_up(stats, f"n{number}"))
        eventually(lambda: httpx2.get(address + path, trust_env=False).status_code == 200)
        begun_s = time.monotonic()
        with calling(address + path, calls_s, made):
            for turn in range(restarts):
                node = nodes[turn % 2]
                node.stop(signal.SIGTERM)
                eventually(lambda turn=turn: not is_up(stats, f"n{turn % 2}"))
                node.start()
                eventually(lambda turn=turn: is_up(stats, f"n{turn % 2}"))
                made.restarts += 1
        made.calling_s = time.monotonic() - begun_s
    return made
