"""Short transactions of many callers on SQLite: one thread, one commit for all that are waiting.

A statement that crosses to another thread and back costs more processor time than SQLite takes to
run it, and a commit waits for the disk. Here a whole piece of work crosses once, with all that
came while the last commit was waiting, and nobody is answered before their common commit.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from sqlalchemy import ClauseElement, Executable, RowMapping
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.compiler import SQLCompiler

from assay.infra.sql.connect import connect_sqlite, refuse_unstorable
from assay.kit.errors import Unavailable

AT_ONCE = 64
"""Pieces of work in one transaction: each holds up the others by some 0.1 ms."""

T = TypeVar("T")
Row: TypeAlias = RowMapping | sqlite3.Row
Values: TypeAlias = Mapping[str, object]


class Desk(Protocol):
    """Where a piece of work asks its statements, in a transaction that somebody else ends."""

    async def rows(self, statement: Executable, values: Values) -> Sequence[Row]:
        """Every row of a question."""
        ...

    async def change(self, statement: Executable, values: Values) -> int:
        """How many rows a statement changed."""
        ...

    async def lock(self, name: str) -> None:
        """Wait for every other writer that locked the same name."""
        ...

    @property
    def connection(self) -> AsyncConnection:
        """For text in the database's own words: `exec_driver_sql`, and nothing else."""
        ...


Work: TypeAlias = Callable[[Desk], Coroutine[Any, Any, T]]
"""Waits for its desk and for nothing else; may be undone and is then not begun again."""


@dataclass(slots=True, eq=False)
class _Ticket:
    work: Work[Any]
    done: asyncio.Future[Any]


class Lane:
    """One connection to an SQLite file, used by one thread, for work that writes or only reads.

    What fails is undone by itself and fails nobody else; a commit that fails, fails for all whose
    work was in it. Work whose caller has gone before it began is left out.
    """

    def __init__(
        self,
        path: str,
        wait_s: float,
        turns: AbstractAsyncContextManager[object],
        *,
        writes: bool,
    ) -> None:
        """`turns` is held during a transaction; `wait_s` bounds waiting for other processes."""
        self._path = path
        self._wait_s = wait_s
        self._turns = turns
        self._writes = writes
        self._thread = ThreadPoolExecutor(1, "assay-sql")
        self._waiting: list[_Ticket] = []
        self._runner: asyncio.Task[None] | None = None
        self._connection: sqlite3.Connection | None = None

    async def do(self, work: Work[T]) -> T:
        """Its result, once it is committed. Raises what it raises, and `Unavailable`."""
        loop = asyncio.get_running_loop()
        ticket = _Ticket(work, loop.create_future())
        self._waiting.append(ticket)
        if self._runner is None:
            self._runner = loop.create_task(self._run())
        return await ticket.done

    def close(self) -> None:
        """End the thread and close the connection; to be called when nobody asks any more."""
        if self._connection is not None:
            self._thread.submit(self._forget)
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        some: list[_Ticket] = []
        try:
            while self._waiting:
                async with self._turns:
                    some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                    outcomes = await loop.run_in_executor(self._thread, self._together, some)
                for ticket, outcome in zip(some, outcomes, strict=True):
                    _answer(ticket, outcome)
        finally:
            self._runner = None
            left, self._waiting = (*some, *self._waiting), []
            for ticket in left:  # none, unless this task was called off
                _answer(ticket, _Failed(Unavailable("The database was closed.")))

    def _together(self, tickets: Sequence[_Ticket]) -> list[Any]:
        """What each came to: its result, or the exception. In the thread."""
        try:
            desk = _DirectDesk(self._opened())
            if not self._writes:
                return [self._alone(ticket, desk) for ticket in tickets]
            return self._committed(tickets, desk)
        except Exception as error:  # noqa: BLE001 - told to every caller, in their own tasks
            self._undo()
            return [_Failed(_translated(error)) for _ in tickets]

    def _committed(self, tickets: Sequence[_Ticket], desk: "_DirectDesk") -> list[Any]:
        run = desk.own.execute
        run("BEGIN IMMEDIATE")
        outcomes: list[Any] = []
        for ticket in tickets:
            run("SAVEPOINT work")
            outcome = self._alone(ticket, desk)
            if isinstance(outcome, _Failed):
                run("ROLLBACK TO work")  # raises where SQLite has undone everything itself
            run("RELEASE work")
            outcomes.append(outcome)
        run("COMMIT")
        return outcomes

    @staticmethod
    def _alone(ticket: _Ticket, desk: "_DirectDesk") -> object:
        if ticket.done.cancelled():
            return None
        try:
            return _result(ticket.work(desk))
        except Exception as error:  # noqa: BLE001 - its own caller's, and nobody else's
            return _Failed(_translated(error))

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect_sqlite(self._path, self._wait_s)
            self._connection.row_factory = sqlite3.Row
        return self._connection

    def _undo(self) -> None:
        """Leave no transaction behind; a connection that will not even do that is given up."""
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._forget()

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class _DirectDesk:
    """Implements `Desk` on a connection of the same thread: nothing in it ever waits."""

    __slots__ = ("own",)

    def __init__(self, own: sqlite3.Connection) -> None:
        self.own = own

    async def rows(self, statement: Executable, values: Values) -> Sequence[Row]:
        return self._run(statement, values).fetchall()

    async def change(self, statement: Executable, values: Values) -> int:
        return self._run(statement, values).rowcount

    async def lock(self, name: str) -> None:
        del name  # the one writer is alone

    @property
    def connection(self) -> AsyncConnection:
        # Whoever takes it asks `exec_driver_sql` of it alone, as `Desk` says.
        return cast("AsyncConnection", _DriverText(self.own))

    def _run(self, statement: Executable, values: Values) -> sqlite3.Cursor:
        text, names, fixed = _compiled(statement)
        bound = [values[name] if name in values else fixed[name] for name in names]
        refuse_unstorable((bound,))
        return self.own.execute(text, bound)


class _DriverText:
    """SQLAlchemy's `exec_driver_sql`, on a plain connection."""

    def __init__(self, own: sqlite3.Connection) -> None:
        self._own = own

    async def exec_driver_sql(
        self, text: str, parameters: Sequence[Any] = ()
    ) -> Sequence[sqlite3.Row]:
        if isinstance(parameters, list):
            refuse_unstorable(parameters)
            self._own.executemany(text, parameters)
            return ()
        refuse_unstorable((parameters,))
        return self._own.execute(text, parameters).fetchall()


class SessionDesk:
    """Implements `Desk` on a connection of the toolkit's."""

    def __init__(
        self, connection: AsyncConnection, lock: Callable[[AsyncConnection, str], Any]
    ) -> None:
        self.connection = connection
        self._lock = lock

    async def rows(self, statement: Executable, values: Values) -> Sequence[Row]:
        return (await self.connection.execute(statement, dict(values))).mappings().all()

    async def change(self, statement: Executable, values: Values) -> int:
        return (await self.connection.execute(statement, dict(values))).rowcount

    async def lock(self, name: str) -> None:
        await self._lock(self.connection, name)


_Compiled: TypeAlias = tuple[str, Sequence[str], Values]
_texts: dict[int, tuple[Executable, _Compiled]] = {}


def _compiled(statement: Executable) -> _Compiled:
    """SQLite's text, the names of its places in order, and the values that never change.

    Statements are made once a process, and so is this; whoever makes them anew pays for it anew.
    """
    known = _texts.get(id(statement))
    if known is not None and known[0] is statement:
        return known[1]
    compiled = cast("ClauseElement", statement).compile(dialect=sqlite_dialect())
    made = cast("SQLCompiler", compiled)  # what every statement compiles to; a type does not
    fixed = {name: bind.value for name, bind in made.binds.items() if not bind.required}
    names = cast("list[str]", made.positiontup)
    found = (str(made), names, fixed)
    _texts[id(statement)] = (statement, found)
    return found


def _result(work: Coroutine[Any, Any, T]) -> T:
    """What work comes to that has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise TypeError("work of a transaction waited for something else")


def _answer(ticket: _Ticket, outcome: object) -> None:
    if ticket.done.done():
        return
    if isinstance(outcome, _Failed):
        ticket.done.set_exception(outcome.error)
    else:
        ticket.done.set_result(outcome)


def _translated(error: Exception) -> Exception:
    """The driver's failures as `Unavailable`; a broken constraint is the store's to understand."""
    if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
        told = Unavailable("The database cannot be used now.", detail=repr(error), retry_after_s=5)
        told.__cause__ = error
        return told
    return error
