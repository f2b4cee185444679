"""The project's own programs, each in a process of its own that need not import everything first.

A process that has imported what the program needs is forked for each of them: that takes a tenth of
the processor time of a new interpreter. Environment, arguments, standard streams, signals and exit
are those of a new process; the folder is the checkout.
"""

import array
import atexit
import gc
import json
import os
import random
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]

SERVICE = (
    "assay.__main__",
    "assay.cli.accounts",
    "assay.cli.doctor",
    "assay.cli.evidence",
    "assay.cli.serve",
    "assay.app.web",
    "assay.app.protocol",
)
CHAIN = ("assay_demo.chain.node",)
"""What a program imports, and with it all programs that import no more."""


class Process:
    """A running program; its names are those of `subprocess.Popen`."""

    def __init__(self, forker: "_Forker", pid: int, stdout: IO[str] | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._forker = forker
        self._ended = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            watched = select.poll()
            watched.register(self._ended, select.POLLIN)
            if not watched.poll(None if timeout is None else timeout * 1000):
                return None
            self.returncode = self._forker.status(self.pid)
            os.close(self._ended)
        return self.returncode


def start(
    module: str,
    *arguments: str,
    imported: Sequence[str],
    environment: Mapping[str, str] | None = None,
    streams: tuple[int | None, int | None, int | None] = (None, None, None),
    files: tuple[int, int] | None = None,
) -> Process:
    """Run `python -m module`; a stream is a descriptor, or None for this process's own.

    `subprocess.PIPE` for the second one makes it `stdout`, as text. `files` is how many files it
    may have open: the soft limit and the hard one.
    """
    read = None
    given = [number if own is None else own for number, own in enumerate(streams)]
    if given[1] == subprocess.PIPE:
        read, given[1] = os.pipe()
    try:
        forker = _forker(tuple(imported))
        pid = forker.start(
            {
                "module": module,
                "arguments": arguments,
                "environment": dict(os.environ if environment is None else environment),  # noqa: TID251
                "files": files,
            },
            given,
        )
    finally:
        if read is not None:
            os.close(given[1])
    return Process(forker, pid, None if read is None else os.fdopen(read, encoding="utf-8"))


class _Forker:
    """The process that is forked, as its owner sees it."""

    def __init__(self, imported: tuple[str, ...]) -> None:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forked", str(other.fileno()), *imported],
                cwd=ROOT,
                env=plain | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
            )
        self._one_at_a_time = threading.Lock()
        atexit.register(self.end)

    def start(self, asked: Mapping[str, Any], streams: list[int]) -> int:
        """The number of the new process."""
        return self._ask(asked, streams)

    def status(self, pid: int) -> int:
        """Of a process that has ended; negative for a signal."""
        return self._ask({"ended": pid})

    def end(self) -> None:
        self._socket.close()
        self._process.wait()

    def _ask(self, asked: Mapping[str, Any], streams: Sequence[int] = ()) -> int:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))]
        with self._one_at_a_time:
            self._socket.sendmsg([json.dumps(asked).encode()], rights if streams else [])
            return int(self._socket.recv(64))


@cache
def _forker(imported: tuple[str, ...]) -> _Forker:
    return _Forker(imported)


def _fork_for(asker: socket.socket, imported: Sequence[str]) -> None:
    """Fork a process for each thing asked, and end those that are left when nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in imported:
        import_module(module)
    gc.collect()
    gc.freeze()
    running: set[int] = set()
    while True:
        text, streams, _, _ = socket.recv_fds(asker, 1 << 20, 3)
        if not text:
            break
        asked = json.loads(text)
        if "ended" in asked:
            _, status = os.waitpid(asked["ended"], 0)
            running.discard(asked["ended"])
            asker.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            asker.close()
            _become(asked, streams)
            return
        for number in streams:
            os.close(number)
        running.add(pid)
        asker.send(str(pid).encode())
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _become(asked: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Be the program; this process ends with it, as an interpreter does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    os.environ.clear()  # noqa: TID251
    os.environ.update(asked["environment"])  # noqa: TID251
    time.tzset()
    for number, given in enumerate(streams):
        os.dup2(given, number)
        os.close(given)
    if asked["files"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, tuple(asked["files"]))
    sys.argv = [asked["module"].partition(".__main__")[0], *asked["arguments"]]
    import_module(asked["module"]).main()


if __name__ == "__main__":
    _fork_for(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
