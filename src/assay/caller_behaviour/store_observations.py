"""Stores observations at wrappers in SQL."""

from collections.abc import Sequence

from sqlalchemy import func, select

from assay.caller_behaviour.observations import DailyTally
from assay.db.engine import Database
from assay.db.schema.everything import wrapper_conduct
from assay.db.sql_transaction import SqlTransaction, places

_ADD = (
    "INSERT INTO wrapper_conduct (address, day, calls, limited, early, error_run)"
    " VALUES ({}) ON CONFLICT (address, day) DO UPDATE SET"
    " calls = wrapper_conduct.calls + excluded.calls,"
    " limited = wrapper_conduct.limited + excluded.limited,"
    " early = wrapper_conduct.early + excluded.early,"
    " error_run = CASE WHEN excluded.error_run > wrapper_conduct.error_run"
    " THEN excluded.error_run ELSE wrapper_conduct.error_run END"
)


class SqlConductStore:
    """Stores counts in SQL; implements `caller_behaviour.observations.ObservationStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._add = _ADD.format(places(database.kind, 6))

    async def add(self, counts: Sequence[tuple[str, str, DailyTally]]) -> None:
        """Add counts in one fixed order, so that two processes cannot deadlock."""
        rows = [
            (address, day, tally.calls, tally.limited, tally.early, tally.error_run)
            for address, day, tally in sorted(counts, key=lambda row: row[:2])
        ]

        async def work(transaction: SqlTransaction) -> None:
            await transaction.connection.exec_driver_sql(self._add, rows)

        await self._database.change(work)

    async def total(self, addresses: Sequence[str], since_day: str) -> DailyTally:
        columns = wrapper_conduct.c
        statement = (
            select(
                func.coalesce(func.sum(columns.calls), 0),
                func.coalesce(func.sum(columns.limited), 0),
                func.coalesce(func.sum(columns.early), 0),
                func.coalesce(func.max(columns.error_run), 0),
            )
            .where(columns.address.in_(addresses))
            .where(columns.day >= since_day)
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).one()
        return DailyTally(*(int(value) for value in row))
