"""A database, SQLite or PostgreSQL: its migrations, and the ways to read and write it.

Runs versioned migrations from code: no configuration file and no command for operators.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from assay.common.errors import SourceAway, Unavailable
from assay.db.connect import NO_CONNECTION, WRITES, DatabaseKind, open_engine
from assay.db.group_commit import GroupCommitWriter
from assay.db.migration_plan import (
    PlannedMigration,
    configured,
    current_revision,
    planned,
    scripts,
)
from assay.db.sql_transaction import SessionTransaction, Work

HEAD = "0046"
"""The newest file in `migrations/versions`; a test checks that the two agree."""


def _is_current(connection: Connection) -> bool:
    """Return whether the schema is up to date, which lets the usual start skip Alembic."""
    if not inspect(connection).has_table("alembic_version"):
        return False
    statement = text("SELECT version_num FROM alembic_version")
    return list(connection.execute(statement).scalars()) == [HEAD]


def upgrade(connection: Connection) -> None:
    """Apply every migration the database lacks, inside the caller's transaction.

    Raises `SchemaTooNew` if the database has a migration unknown to this code.
    """
    from alembic import command  # noqa: PLC0415 - costs a start a tenth of a second

    current_revision(connection, scripts())
    command.upgrade(configured(connection=connection), "head")


USE_S = 15.0
"""Time limit of one use of the database, waiting included."""

MIGRATION_S = 3600.0
"""Time limit of a migration, or of waiting for another process's."""

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class DataRefused(Unavailable):
    """The database rejected a value: too long, too large or invalid."""


class Database:
    """A database, opened by `open`; every store of the service uses one."""

    def __init__(self, engine: AsyncEngine, kind: DatabaseKind, use_s: float) -> None:
        self._engine = engine
        # A read is one statement, which is a transaction by itself: no BEGIN, no ROLLBACK.
        self._reading = (
            engine if kind == "sqlite" else engine.execution_options(isolation_level="AUTOCOMMIT")
        )
        self.kind: DatabaseKind = kind
        self._use_s = use_s
        self._uses, self._idle = 0, asyncio.Event()
        self._idle.set()
        self._is_closed = self._is_away = False
        self._reads: set[asyncio.Timeout] = set()
        # SQLite itself waits by polling and without order; under load some caller waits too long.
        self._turns: AbstractAsyncContextManager[object] = (
            asyncio.Lock() if kind == "sqlite" else nullcontext()
        )
        path = engine.url.database
        self._writers: tuple[GroupCommitWriter, GroupCommitWriter] | None = None
        if kind == "sqlite" and path is not None:
            wait_s = _own_wait_s(use_s)
            changes = GroupCommitWriter(path, wait_s, self._turns, writes=True)
            self._writers = changes, GroupCommitWriter(path, wait_s, nullcontext(), writes=False)

    @classmethod
    async def open(cls, url: str, use_s: float = USE_S) -> "Database":
        """Open `sqlite:///path` or `postgresql://...`. Nothing is connected yet.

        Raises `DatabaseUrlError`; errors that only the server can detect are raised on first use.
        """
        engine, kind = open_engine(url, wait_s=_own_wait_s(use_s))
        return cls(engine, kind, use_s)

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """Yield a connection for one statement that reads.

        Raises `SourceAway` when the database does not answer, `Unavailable` when it cannot be used
        for another reason, and `InvalidRequest` for text that no database can store.
        """
        async with self._used(self._use_s) as limit:
            self._reads.add(limit)
            try:
                async with self._reading.connect() as connection:
                    yield connection
            finally:
                self._reads.discard(limit)

    @asynccontextmanager
    async def write(self, use_s: float | None = None) -> AsyncGenerator[AsyncConnection]:
        """Yield a transaction: committed at the end, rolled back on any exception. Never nested.

        On SQLite it takes the write lock at its beginning, so that a transaction that reads before
        it writes never fails half-way because of another. Raises like `read`; `IntegrityError`
        passes through.
        """
        limit_s = self._use_s if use_s is None else use_s
        async with self._used(limit_s), self._turns, self._engine.connect() as plain:
            connection = await plain.execution_options(**{WRITES: True})
            async with connection.begin():
                yield connection

    async def change(self, work: Work[T], *, is_sure: bool = False) -> T:
        """Run a short transaction of statements only; return its result once it is committed.

        On SQLite it shares its commit with whatever else is waiting, and costs a tenth of `write`.
        `is_sure`: after its first change it fails only if the database does, and then everything
        that shares its commit fails too. The order of two concurrent calls is unspecified. Raises
        like `write`.
        """
        if self._writers is not None:
            return await self._done(self._writers[0], work, is_sure=is_sure)
        async with self.write() as connection:
            return await work(SessionTransaction(connection, self.lock))

    async def look(self, work: Work[T]) -> T:
        """Run one statement that reads, as cheaply as `change`. Raises like `read`."""
        if self._writers is not None:
            return await self._done(self._writers[1], work)
        async with self.read() as connection:
            return await work(SessionTransaction(connection, self.lock))

    @asynccontextmanager
    async def snapshot(self, use_s: float) -> AsyncGenerator[AsyncConnection]:
        """Yield a transaction with one consistent snapshot that never blocks writers.

        For reading, and for temporary tables of its own. Raises like `read`.
        """
        sqlite = self.kind == "sqlite"
        begin = "BEGIN" if sqlite else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        async with self._used(use_s), self._engine.connect() as connection, connection.begin():
            await connection.exec_driver_sql(begin)
            yield connection

    async def migrate(self) -> None:
        """Bring the schema up to date; one process does so while the others wait.

        Raises `SchemaTooNew`.
        """
        async with self.read() as connection:
            if await connection.run_sync(_is_current):
                return
        async with self.write(MIGRATION_S) as connection:
            if self.kind == "postgresql":
                await connection.execute(text("SELECT pg_advisory_xact_lock(8004)"))
            await connection.run_sync(upgrade)

    async def plan(self) -> tuple[str | None, Sequence[PlannedMigration]]:
        """Return the schema's revision, and what `migrate` would run now; runs nothing.

        Raises `SchemaTooNew`, and like `read`.
        """
        known = scripts()
        async with self.read() as connection:
            current = await connection.run_sync(current_revision, known)
        return current, planned(known, current)

    async def lock(self, connection: AsyncConnection, name: str) -> None:
        """Wait, within a write, for every other writer that locked the same name."""
        if self.kind == "postgresql":
            statement = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 8004))")
            await connection.execute(statement, {"name": name})

    async def revision(self) -> str:
        """Return the schema's revision. Raises like `read`."""
        async with self.read() as connection:
            found = await connection.execute(text("SELECT version_num FROM alembic_version"))
            return str(found.scalar_one_or_none())

    async def ping(self) -> None:
        """Check that the database answers. Raises `Unavailable`."""
        async with self.read() as connection:
            await connection.execute(text("SELECT 1"))

    async def close(self) -> None:
        """Close every connection after its current use; later uses raise `Unavailable`."""
        self._is_closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._use_s):
                await self._idle.wait()
        for writer in self._writers or ():
            await asyncio.to_thread(writer.close)
        await self._engine.dispose()

    @property
    def is_away(self) -> bool:
        """Return whether the database is known not to answer: every use fails at once."""
        return self._is_away

    def set_away(self, *, is_away: bool) -> None:
        """Say whether the database answers; when it stops answering, running reads fail at once.

        The caller must go on asking a database that is away, and say when it answers.
        """
        if is_away and not self._is_away:
            now_s = asyncio.get_running_loop().time()
            for limit in self._reads:
                if not limit.expired():
                    limit.reschedule(now_s)
        self._is_away = is_away

    @asynccontextmanager
    async def _used(self, limit_s: float) -> AsyncGenerator[asyncio.Timeout]:
        """Turn the driver's failures into `Unavailable`.

        Constraint violations pass to the store.
        """
        self._begin()
        try:
            async with asyncio.timeout(limit_s) as limit:
                yield limit
        except IntegrityError:
            raise
        except _FAILURES as error:
            raise _translated(error) from error
        finally:
            self._end()

    async def _done(self, writer: GroupCommitWriter, work: Work[T], *, is_sure: bool = False) -> T:
        """Run work like `_used`, without context managers: they cost more than the rest here."""
        self._begin()
        try:
            return await writer.do(work, self._use_s, is_sure=is_sure)
        except IntegrityError:
            raise
        except _FAILURES as error:
            raise _translated(error) from error
        finally:
            self._end()

    def _begin(self) -> None:
        if self._is_closed:
            raise Unavailable("The database is closed: the service is ending.", retry_after_s=5)
        if self._is_away:
            raise SourceAway("The database cannot be used now.", retry_after_s=RETRY_S)
        self._uses += 1
        self._idle.clear()

    def _end(self) -> None:
        self._uses -= 1
        if not self._uses:
            self._idle.set()


_FAILURES = (DBAPIError, PoolTimeout, OSError)


RETRY_S = 5
"""Seconds after which a caller may try again: a database that answers again is used at once."""


def _translated(error: Exception) -> Unavailable:
    error_type = SourceAway if _is_about_connection(error) else Unavailable
    error_type = DataRefused if _is_about_data(error) else error_type
    return error_type("The database cannot be used now.", detail=repr(error), retry_after_s=RETRY_S)


def _is_about_connection(error: Exception) -> bool:
    """Return whether the database did not answer, and so said nothing about what was asked."""
    if not isinstance(error, DBAPIError):
        return True  # no turn in the pool, no connection, or no time left
    if error.connection_invalidated or isinstance(error, (InterfaceError, OperationalError)):
        return True
    return str(getattr(error.orig, "sqlstate", None)).startswith(NO_CONNECTION)


def _own_wait_s(use_s: float) -> float:
    """Return a shorter wait for SQLite itself, whose waiting statements cannot be cancelled."""
    return use_s * 2 / 3


def to_us(moment: datetime) -> int:
    """Return microseconds since 1970, exactly: how times are stored."""
    return (moment - _EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """Return the time of `to_us` again."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _is_about_data(error: Exception) -> bool:
    """Return whether the stored value caused it: SQLSTATE class 22, or the driver's own check."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    return isinstance(error, DataError) or str(state).startswith("22")
