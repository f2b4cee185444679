"""Where statements of a short transaction are asked, whichever way they reach the database."""

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
    """Where a piece of work asks its statements, in a transaction that somebody else ends."""

    async def rows(self, statement: Executable, values: Values) -> Sequence[SqlRow]:
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


Work: TypeAlias = Callable[[SqlTransaction], Coroutine[Any, Any, T]]
"""Waits for its desk and for nothing else; may be undone and is then not begun again."""


class DriverTransaction:
    """Implements `SqlTransaction` on a connection of the same thread: nothing in it ever waits."""

    __slots__ = ("own",)

    def __init__(self, own: sqlite3.Connection) -> None:
        self.own = own

    async def rows(self, statement: Executable, values: Values) -> Sequence[SqlRow]:
        return self._run(statement, values).fetchall()

    async def change(self, statement: Executable, values: Values) -> int:
        return self._run(statement, values).rowcount

    async def lock(self, name: str) -> None:
        del name  # the one writer is alone

    @property
    def connection(self) -> AsyncConnection:
        # Whoever takes it asks `exec_driver_sql` of it alone, as `SqlTransaction` says.
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
    """Implements `SqlTransaction` on a connection of the toolkit's."""

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
    """So many places for values, in text in the database's own words."""
    numbers = range(start, start + count)
    return ", ".join("?" if kind == "sqlite" else f"${number}" for number in numbers)


def texts(kind: DatabaseKind, name: str) -> Select[Any]:
    """The texts of a JSON array that is bound to a name: a list of any length in one statement."""
    named = bindparam(name, type_=Text)
    if kind == "sqlite":
        return select(func.json_each(named).table_valued("value").c.value)
    return select(func.json_array_elements_text(cast_to(named, JSON)))


@lru_cache(maxsize=256)
def _compiled(statement: Executable) -> tuple[str, Sequence[str], Values]:
    """SQLite's text, the names of its places in order, and the values that never change.

    Statements are made once a process, and so is this; whoever makes them anew pays for it anew.
    """
    compiled = cast("ClauseElement", statement).compile(dialect=sqlite_dialect())
    made = cast("SQLCompiler", compiled)  # what every statement compiles to; a type does not
    fixed = {name: bind.value for name, bind in made.binds.items() if not bind.required}
    return str(made), cast("list[str]", made.positiontup), fixed
