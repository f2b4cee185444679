"""One database, SQLite or PostgreSQL, and the two ways to use it: read and write."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import URL, Connection, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from assay.infra.sql.migrate import upgrade
from assay.kit.errors import Unavailable

BUSY_S = 10
"""How long a writer waits for another's transaction to end, and a caller for a connection."""

POOL_SIZE = 8

_WRITES = "assay_writes"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DatabaseUrlError(ValueError):
    """The database URL cannot be used; the message says why, and never the URL itself."""


class Database:
    """Opened by `open`; every store of the service stands on one of these."""

    def __init__(self, engine: AsyncEngine, kind: Literal["sqlite", "postgresql"]) -> None:
        self._engine = engine
        self.kind = kind

    @classmethod
    async def open(cls, url: str) -> "Database":
        """`sqlite:///path` or `postgresql://...`. Nothing is connected yet.

        Raises `DatabaseUrlError`.
        """
        parsed = _parse(url)
        if parsed.drivername == "sqlite+aiosqlite":
            engine = create_async_engine(
                parsed, connect_args={"timeout": BUSY_S, "isolation_level": None}
            )
            event.listen(engine.sync_engine, "connect", _prepare_sqlite)
            event.listen(engine.sync_engine, "begin", _begin_sqlite)
            return cls(engine, "sqlite")
        engine = create_async_engine(
            parsed, pool_size=POOL_SIZE, pool_timeout=BUSY_S, pool_pre_ping=True
        )
        return cls(engine, "postgresql")

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """A connection for reading. Raises `Unavailable` when the database cannot be used."""
        async with _translated(), self._engine.connect() as connection:
            yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction: committed at the end, rolled back on any exception.

        On SQLite it takes the write lock at its beginning, so that a transaction that reads
        before it writes never fails half-way for another's sake. `IntegrityError` passes through.
        """
        async with _translated(), self._engine.connect() as plain:
            connection = await plain.execution_options(**{_WRITES: True})
            async with connection.begin():
                yield connection

    async def migrate(self) -> None:
        """Bring the schema up to date; of several processes one does, the others wait.

        Raises `SchemaTooNew`.
        """
        async with self.write() as connection:
            if self.kind == "postgresql":
                await connection.execute(text("SELECT pg_advisory_xact_lock(8004)"))
            await connection.run_sync(upgrade)

    async def lock(self, connection: AsyncConnection, name: str) -> None:
        """Within a write: wait for every other writer that locked the same name."""
        if self.kind == "postgresql":
            statement = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 8004))")
            await connection.execute(statement, {"name": name})

    async def ping(self) -> None:
        """Ask the database for an answer. Raises `Unavailable`."""
        async with self.read() as connection:
            await connection.execute(text("SELECT 1"))

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()


def to_us(moment: datetime) -> int:
    """Microseconds since 1970, exactly: how times are stored."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_us(microseconds: int) -> datetime:
    """The inverse of `to_us`."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise DatabaseUrlError("the database URL cannot be read") from None
    if parsed.drivername == "sqlite" and parsed.database:
        return parsed.set(drivername="sqlite+aiosqlite")
    if parsed.drivername in {"postgresql", "postgres"}:
        return parsed.set(drivername="postgresql+asyncpg")
    raise DatabaseUrlError("the database URL must begin with postgresql:// or sqlite:///")


def _prepare_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:  # noqa: ANN401
    """WAL lets readers and the one writer work at once; synchronous=FULL makes a commit durable.

    With NORMAL a power cut could take back the last commits: a used challenge would be fresh
    again, a revoked key alive.
    """
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={BUSY_S * 1000}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@asynccontextmanager
async def _translated() -> AsyncGenerator[None]:
    """The driver's failures as `Unavailable`; a broken constraint is the store's to understand."""
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeout, OSError) as error:
        raise Unavailable(
            "The database cannot be used now.", detail=repr(error), retry_after_s=5
        ) from error
