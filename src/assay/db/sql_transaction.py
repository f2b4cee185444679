"""Runs the statements of a short transaction, on either path to the database."""

import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from sqlalchemy import (
    JSON,
    ClauseElement,
    Executable,
    RowMapping,
    Select,
    Text,
    bindparam,
    func,
    select,
)
from sqlalchemy import cast as cast_to
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.compiler import SQLCompiler

from assay.db.connect import DatabaseKind, refuse_unstorable

T = TypeVar("T")
SqlRow: TypeAlias = RowMapping | sqlite3.Row | dict[str, Any]
Values: TypeAlias = Mapping[str, object]


class SqlTransaction(Protocol):
    """Runs the statements of one piece of work; the caller ends the transaction."""

    async def rows(self, statement: Executable, values: Values) -> Sequence[SqlRow]:
        """Return every row of a query."""
        ...

    async def change(self, statement: Executable, values: Values) -> int:
        """Return how many rows a statement changed."""
        ...

    async def lock(self, name: str) -> None:
        """Wait for every other writer that locked the same name."""
        ...

    @property
    def connection(self) -> AsyncConnection:
        """For SQL text in the database's own dialect: use only `exec_driver_sql`."""
        ...


Work: TypeAlias = Callable[[SqlTransaction], Coroutine[Any, Any, T]]
"""A piece of work awaits only its `SqlTransaction`. It may be rolled back and is not retried."""


class DriverTransaction:
    """Implements `SqlTransaction` on a connection of the same thread, where nothing ever waits."""

    __slots__ = ("own",)

    def __init__(self, own: sqlite3.Connection) -> None:
        self.own = own

    async def rows(self, statement: Executable, values: Values) -> Sequence[SqlRow]:
        return self._run(statement, values).fetchall()

    async def change(self, statement: Executable, values: Values) -> int:
        return self._run(statement, values).rowcount

    async def lock(self, name: str) -> None:
        del name  # There is only one writer.

    @property
    def connection(self) -> AsyncConnection:
        # Callers use only its `exec_driver_sql`, as `SqlTransaction` says.
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


class SessionTransaction:
    """Implements `SqlTransaction` on an SQLAlchemy connection."""

    def __init__(
        self, connection: AsyncConnection, lock: Callable[[AsyncConnection, str], Any]
    ) -> None:
        self.connection = connection
        self._lock = lock

    async def rows(self, statement: Executable, values: Values) -> Sequence[SqlRow]:
        return (await self.connection.execute(statement, dict(values))).mappings().all()

    async def change(self, statement: Executable, values: Values) -> int:
        return (await self.connection.execute(statement, dict(values))).rowcount

    async def lock(self, name: str) -> None:
        await self._lock(self.connection, name)


def places(kind: DatabaseKind, count: int, start: int = 1) -> str:
    """Return this many placeholders for values, in the database's own dialect."""
    numbers = range(start, start + count)
    return ", ".join("?" if kind == "sqlite" else f"${number}" for number in numbers)


def texts(kind: DatabaseKind, name: str) -> Select[Any]:
    """Select the texts of a JSON array parameter: a list of any length in one statement."""
    named = bindparam(name, type_=Text)
    if kind == "sqlite":
        return select(func.json_each(named).table_valued("value").c.value)
    return select(func.json_array_elements_text(cast_to(named, JSON)))


@lru_cache(maxsize=256)
def _compiled(statement: Executable) -> tuple[str, Sequence[str], Values]:
    """Return the SQLite text, the parameter names in order, and the constant values.

    Statements are built once a process, so each is compiled once; building a statement per call
    would compile it each time.
    """
    compiled = cast("ClauseElement", statement).compile(dialect=sqlite_dialect())
    # Every statement compiles to this; the type does not say so.
    made = cast("SQLCompiler", compiled)
    fixed = {name: bind.value for name, bind in made.binds.items() if not bind.required}
    return str(made), cast("list[str]", made.positiontup), fixed
