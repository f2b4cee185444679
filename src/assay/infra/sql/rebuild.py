"""The roll-ups against what they were made from, and made anew."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.infra.sql.derivations import COLUMNS, DERIVED
from assay.infra.sql.engine import Database

REBUILD_S: Final = 3600.0
"""How long it may take over all calls there are."""


class SqlRollupProof:
    """Implements `calls.ports.RollupProof`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def differences(self) -> Mapping[str, int]:
        # Each comparison is one statement, and so sees one moment, whoever writes meanwhile.
        async with self._database.write(REBUILD_S) as connection:
            return await _differences(connection)

    async def rebuild(self) -> Mapping[str, int]:
        async with self._database.write(REBUILD_S) as connection:
            if self._database.kind == "postgresql":
                await connection.execute(text("LOCK TABLE calls, payments IN SHARE MODE"))
            found = await _differences(connection)
            for table, wrong in found.items():
                if wrong:
                    await connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608 - our own names
                    await connection.execute(text(_make(table)))
        return found


async def _differences(connection: AsyncConnection) -> Mapping[str, int]:
    return {
        table: int((await connection.execute(text(_compare(table)))).scalar_one())
        for table in DERIVED
    }


def _make(table: str) -> str:
    columns = ", ".join(COLUMNS[table])
    return f"INSERT INTO {table} ({columns}) SELECT {columns} FROM ({DERIVED[table]}) AS derived"  # noqa: S608 - our own names


def _compare(table: str) -> str:
    """How many rows only one of the two has."""
    columns = ", ".join(COLUMNS[table])
    kept = f"SELECT {columns} FROM {table}"  # noqa: S608 - our own names
    derived = f"SELECT {columns} FROM ({DERIVED[table]}) AS derived"  # noqa: S608 - our own names
    return (
        f"SELECT (SELECT COUNT(*) FROM ({kept} EXCEPT {derived}) AS extra)"  # noqa: S608 - our own names
        f" + (SELECT COUNT(*) FROM ({derived} EXCEPT {kept}) AS missing)"
    )
