"""Removes what is kept of callers' conduct once it speaks for nobody any more.

Whoever went through the course has nothing to show for a run that it left, or that is too old.
"""

from datetime import datetime

from sqlalchemy import delete, select, tuple_, union_all

from assay.infra.sql.engine import Database, to_us
from assay.infra.sql.tables import course_calls, course_runs, wrapper_conduct


class SqlConductRetention:
    """Removes a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove_runs(
        self, finished_before: datetime, begun_before: datetime, at_most: int
    ) -> int:
        """Remove runs that ended before one moment, or begun before the other and never ended.

        With everything that was noted of them; how many runs.
        """
        ended, begun = course_runs.c.finished_us, course_runs.c.begun_us
        parts = (
            select(course_runs.c.id).where(ended < to_us(finished_before)),
            select(course_runs.c.id).where(ended.is_(None), begun < to_us(begun_before)),
        )
        old = union_all(*parts).limit(at_most)
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of course runs")
            ids = list((await connection.execute(old)).scalars())
            if ids:
                calls = delete(course_calls).where(course_calls.c.run_id.in_(ids))
                await connection.execute(calls)
                await connection.execute(delete(course_runs).where(course_runs.c.id.in_(ids)))
        return len(ids)

    async def remove_counts(self, before_day: str, at_most: int) -> int:
        """Remove counts of conduct at wrappers from days before that one; how many."""
        rows = wrapper_conduct.c
        old = select(rows.address, rows.day).where(rows.day < before_day).limit(at_most)
        statement = delete(wrapper_conduct).where(tuple_(rows.address, rows.day).in_(old))
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of conduct")
            return (await connection.execute(statement)).rowcount
