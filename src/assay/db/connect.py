"""Connects to each database: the URL, the driver, and the settings that make connections safe."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, TypeAlias, cast

from sqlalchemy import URL, Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from assay.common.errors import InvalidRequest

DatabaseKind: TypeAlias = Literal["sqlite", "postgresql"]

POOL_SIZE = 8
"""Connections of one process; by default PostgreSQL accepts 100 from all of them."""

CACHE_KIB = 32_768
CHECKPOINT_PAGES = 16_384
"""Pages of a file that SQLite caches in each connection's memory, and pages written to the WAL
before a checkpoint. Its defaults of 2 MB and 4 MB are too small for an index of millions of calls:
every page was read and written many times over, 175 us a row instead of 46 (`bench/analytics.py`,
200,000 rows)."""

NO_CONNECTION = ("08", "53", "57")
"""SQLSTATE classes of a server that does not serve now: the connection, resources, an operator's
intervention. Source: https://www.postgresql.org/docs/current/errcodes-appendix.html"""

_WAL_RETRY_S = 0.01

WRITES = "assay_writes"
"""The execution option that marks a transaction as writing."""


class DatabaseUrlError(ValueError):
    """The database URL cannot be used; the message says why but never contains the URL."""


def open_engine(url: str, wait_s: float) -> tuple[AsyncEngine, DatabaseKind]:
    """Return the engine for a URL, and its kind of database. Nothing is connected yet.

    `wait_s` bounds the wait for a connection, and for another process's lock on an SQLite file.
    Raises `DatabaseUrlError`.
    """
    scheme, found, rest = url.partition("://")
    if found and scheme == "sqlite" and rest.startswith("/"):
        return _sqlite(rest[1:], wait_s), "sqlite"
    if found and scheme in {"postgresql", "postgres"}:
        return _postgresql(url, wait_s), "postgresql"
    raise DatabaseUrlError("the database URL must begin with postgresql:// or sqlite:///")


def connect_sqlite(path: str, wait_s: float) -> sqlite3.Connection:
    """Return a separate connection with the engine's safe settings, for one thread at a time.

    It begins no transaction by itself. Raises `sqlite3.Error`.
    """
    _keep_private(path)
    connection = sqlite3.connect(
        path, timeout=wait_s, isolation_level=None, check_same_thread=False
    )
    try:
        cursor = connection.cursor()
        deadline_s = time.monotonic() + wait_s
        _turn_to_wal(cursor, deadline_s, lambda: time.sleep(_WAL_RETRY_S))
        _set_pragmas(cursor)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _sqlite(path: str, wait_s: float) -> AsyncEngine:
    """Open an SQLite engine. The path is taken literally, `?` and `%` included."""
    if path in {"", ":memory:"}:
        raise DatabaseUrlError("the database URL must name a file: sqlite:///path")
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=path),
        connect_args={"timeout": wait_s, "isolation_level": None},
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=wait_s,
        pool_use_lifo=True,  # The connection used last has the pages needed next in its memory.
        hide_parameters=True,
    )

    def keep_private(*_: object) -> None:
        _keep_private(path)

    def prepare(connection: Any, _entry: ConnectionPoolEntry) -> None:  # noqa: ANN401
        _prepare_sqlite(connection, wait_s)

    event.listen(engine.sync_engine, "do_connect", keep_private)
    event.listen(engine.sync_engine, "connect", prepare)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    event.listen(engine.sync_engine, "before_cursor_execute", _refuse_bound)
    return engine


def _keep_private(path: str) -> None:
    """Make the file readable by its owner only: it holds password hashes.

    The -wal and -shm files inherit the mode. Only a missing file is opened: closing one that SQLite
    has open would drop the locks of the whole process on it (https://sqlite.org/howtocorrupt.html,
    2.2).
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _prepare_sqlite(connection: Any, wait_s: float) -> None:  # noqa: ANN401
    cursor = connection.cursor()
    deadline_s = time.monotonic() + wait_s
    _turn_to_wal(cursor, deadline_s, lambda: connection.run_async(_wait_for_the_other))
    _set_pragmas(cursor)
    cursor.close()


def _set_pragmas(cursor: Any) -> None:  # noqa: ANN401
    """Set WAL, so that readers and the one writer run at once, and durable commits.

    With `synchronous=NORMAL` a power cut could lose the last commits: a used challenge would be
    valid again, a revoked key active.
    """
    for pragma in (
        "synchronous=FULL",
        "foreign_keys=ON",
        f"cache_size=-{CACHE_KIB}",
        f"wal_autocheckpoint={CHECKPOINT_PAGES}",
    ):
        cursor.execute(f"PRAGMA {pragma}")


def _turn_to_wal(cursor: Any, deadline_s: float, wait: Callable[[], object]) -> None:  # noqa: ANN401
    """Switch a new file to WAL once; SQLite does not wait for another process doing so, we do."""
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline_s:
                raise
            wait()
        else:
            return


async def _wait_for_the_other(_driver: object) -> None:
    await asyncio.sleep(_WAL_RETRY_S)


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction for writes only: a read is one statement, a transaction by itself."""
    if connection.get_execution_options().get(WRITES):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _postgresql(url: str, wait_s: float) -> AsyncEngine:
    """Open a PostgreSQL engine.

    The URL goes to the driver unchanged, with options and several hosts as libpq supports them.
    READ COMMITTED is set whatever the server's default: a statement must see what was committed
    while it waited for a lock, or a chain of snapshots would fork.
    """
    import asyncpg  # noqa: PLC0415 - an installation on SQLite does without it  # pyright: ignore[reportMissingTypeStubs]

    wrong_url = (
        ValueError,
        asyncpg.exceptions.UndefinedObjectError,
        asyncpg.exceptions.InvalidParameterValueError,
    )
    # The driver has no type annotations.
    dial = cast("Callable[..., Awaitable[object]]", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]

    async def connect() -> object:
        try:
            return await dial(url, timeout=wait_s)
        except wrong_url:
            raise DatabaseUrlError(
                "the database URL has a part or an option that cannot be used"
            ) from None
        except asyncpg.PostgresError as error:
            if str(getattr(error, "sqlstate", None)).startswith(NO_CONNECTION):
                # It starts or stops, or is full.
                raise ConnectionError(repr(error)) from error
            raise

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        isolation_level="READ COMMITTED",
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=wait_s,
        pool_pre_ping=True,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "before_cursor_execute", _refuse_bound)
    return engine


def _refuse_bound(
    _connection: object,
    _cursor: object,
    _statement: object,
    parameters: Any,  # noqa: ANN401 - a row, or rows, of whatever is bound
    _context: object,
    many: bool,  # noqa: FBT001
) -> None:
    refuse_unstorable(parameters if many else (parameters,))


def refuse_unstorable(rows: Iterable[Iterable[object]]) -> None:
    """Refuse text that no database can store: that is the sender's error, not the database's.

    All texts are checked joined together, which is one check for thousands. Raises
    `InvalidRequest`.
    """
    text = "".join([value for row in rows for value in row if type(value) is str])
    if "\0" in text or not (text.isascii() or _is_encodable(text)):
        raise InvalidRequest("Text must hold no NUL character and no half characters.")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
