"""The roll-ups against what they were made from, and made anew."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.analytics.store_derivations import COLUMNS, DROP_CELLS, MAKE_CELLS, OVER_CELLS
from assay.db.engine import Database

REBUILD_S: Final = 3600.0
"""How long it may take over all calls there are."""


class SqlRollupProof:
    """Implements `analytics.ports.RollupProof`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def differences(self) -> Mapping[str, int]:
        async with self._database.snapshot(REBUILD_S) as connection:
            return await _compared(connection, fix=False)

    async def rebuild(self) -> Mapping[str, int]:
        async with self._database.write(REBUILD_S) as connection:
            if self._database.kind == "postgresql":
                await _run(connection, "LOCK TABLE calls, payments IN SHARE MODE")
            return await _compared(connection, fix=True)


async def _compared(connection: AsyncConnection, *, fix: bool) -> Mapping[str, int]:
    """How many rows of each roll-up are not what they should be."""
    found: dict[str, int] = {}
    await _run(connection, MAKE_CELLS)
    for table, statement in OVER_CELLS.items():
        await _run(connection, f"CREATE TEMPORARY TABLE derived AS {statement}")
        found[table] = int((await connection.execute(text(_compare(table)))).scalar_one())
        if fix and found[table]:
            columns = ", ".join(COLUMNS[table])
            await _run(connection, f"DELETE FROM {table}")  # noqa: S608 - our own names
            await _run(connection, f"INSERT INTO {table} ({columns}) SELECT {columns} FROM derived")  # noqa: S608 - our own names
        await _run(connection, "DROP TABLE derived")
    await _run(connection, DROP_CELLS)
    return found


def _compare(table: str) -> str:
    """How many rows only one of the two has."""
    columns = ", ".join(COLUMNS[table])
    kept = f"SELECT {columns} FROM {table}"  # noqa: S608 - our own names
    derived = f"SELECT {columns} FROM derived"  # noqa: S608 - our own names
    return (
        f"SELECT (SELECT COUNT(*) FROM ({kept} EXCEPT {derived}) AS extra)"  # noqa: S608 - our own names
        f" + (SELECT COUNT(*) FROM ({derived} EXCEPT {kept}) AS missing)"
    )


async def _run(connection: AsyncConnection, statement: str) -> None:
    await connection.execute(text(statement))
