"""`assay serve --workers`: real workers, and whose connections they are."""

import os
import re
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from tests.support.assay import Served, served
from tests.support.eventually import eventually
from tests.support.rolling_restarts import Restarts
from tests.support.shop import NO_CHAIN, Shop, upstream


@cache
def compiled() -> str:
    """A folder for compiled modules: without it each worker compiles everything again."""
    return tempfile.mkdtemp(prefix="assay-pyc-")


def children(pid: int) -> list[int]:
    """The processes that a process has started, oldest first."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    except OSError:
        return []
    return [int(one) for one in text.split()]


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return "Z" not in Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    return False


def connections(pid: int, port: int) -> int:
    """How many callers' connections of that port a process holds."""
    table = Path(f"/proc/{pid}/net/tcp").read_text("ascii").splitlines()[1:]
    rows = [line.split() for line in table]
    ours = {
        f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"
    }
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += str(entry.readlink()) in ours
    return found


@dataclass
class Fleet:
    """A supervisor with its workers, and an operator with wrappers."""

    server: Served
    shop: Shop

    @property
    def workers(self) -> list[int]:
        return children(self.server.pid)

    @property
    def port(self) -> int:
        return int(urlsplit(self.server.address).port or 0)

    def said(self, event: str) -> int:
        """How often the log has it."""
        return self.server.said().count(f'"event": "{event}"')

    def ops(self) -> str:
        """The address of metrics, as it is said at the start; may be read once."""
        assert self.server.process is not None
        assert self.server.process.stdout is not None
        for line in self.server.process.stdout:
            if found := re.search(r"metrics\s+(http://\S+)/metrics", line):
                return found[1]
        raise AssertionError("it does not say where metrics are")

    def roll(self) -> None:
        """Replace every worker, and wait until it is so."""
        before = self.said("every worker was replaced")
        os.kill(self.server.pid, signal.SIGHUP)
        eventually(lambda: self.said("every worker was replaced") > before)


@contextmanager
def fleet(folder: Path, workers: int = 2, **settings: str) -> Iterator[Fleet]:
    """`workers` processes on one port; SQLite unless the settings name another database."""
    given = {
        "ASSAY_WORKERS": str(workers),
        "ASSAY_WRAPPER_PER_MINUTE": "10000000",
        "ASSAY_WRAPPER_UNREAD_MIB": "1000000",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": compiled(),
        **settings,
    }
    with (
        upstream() as up,
        served(folder, NO_CHAIN, **given) as server,
        httpx2.Client(base_url=server.address, timeout=40, trust_env=False) as http,
    ):
        made = Shop(server, http, None, up)  # type: ignore[arg-type] - no dollars here
        made.sign_up()
        yield Fleet(server, made)


@contextmanager
def calling_anew(url: str, made: Restarts) -> Iterator[None]:
    """A caller that opens a connection for each call until the block ends."""
    is_over = threading.Event()

    def call() -> None:
        while not is_over.wait(0.02):
            try:
                answer = httpx2.get(url, timeout=60, trust_env=False)
                made.answers[str(answer.status_code)] += 1
            except httpx2.HTTPError as error:
                made.answers[type(error).__name__] += 1

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def many(urls: Sequence[str], calls: int) -> list[httpx2.Response]:
    """That many calls of each address, over one connection."""
    with httpx2.Client(timeout=40, trust_env=False) as http:
        return [http.get(url) for url in urls for _ in range(calls)]
