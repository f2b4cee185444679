"""Daily costs of callers in SQL: one ledger for every process on the database."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import bindparam, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import Clock
from assay.common.costs import CostKey
from assay.db.engine import Database
from assay.db.schema.costs import daily_costs
from assay.db.sql_transaction import SqlRow, SqlTransaction, places, texts

ROWS_MAX: Final = 50_000
"""Rows of one kind and day. Beyond it the lowest costs are removed first, so that many cheap
bearers cannot make an expensive one forgotten."""

TRIM_EVERY_S: Final = 60.0
_ROWS = daily_costs


class SqlCostStore:
    """Counts costs in SQL; implements `common.costs.CostStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._trim_at_s = clock.monotonic_s()
        self._add = (
            "INSERT INTO daily_costs (bearer, cost, day, used)"  # noqa: S608 - our own text
            f" VALUES ({places(database.kind, 4)}) ON CONFLICT (bearer, cost, day)"
            " DO UPDATE SET used = daily_costs.used + excluded.used"
        )
        named = texts(database.kind, "names")
        days = _ROWS.c.day.between(bindparam("first"), bindparam("last"))
        self._known = select(_ROWS).where(_ROWS.c.bearer.in_(named), days)

    async def add(self, counts: Mapping[CostKey, int]) -> Mapping[CostKey, int]:
        rows = [(*key, count) for key, count in sorted(counts.items())]
        names, days = sorted({key.name for key in counts}), {key.day for key in counts}
        known = {"names": json.dumps(names), "first": min(days) - 1, "last": max(days)}

        async def work(transaction: SqlTransaction) -> Sequence[SqlRow]:
            await transaction.lock("daily costs")
            await transaction.connection.exec_driver_sql(self._add, rows)
            return await transaction.rows(self._known, known)

        found = await self._database.change(work)
        await self._trim_when_due(days)
        return _counts(found)

    async def largest(self, days: Collection[int], limit: int) -> Mapping[CostKey, int]:
        place = func.row_number().over(
            partition_by=(_ROWS.c.cost, _ROWS.c.day), order_by=_ROWS.c.used.desc()
        )
        ranked = select(_ROWS, place.label("place")).where(_ROWS.c.day.in_(days)).subquery()
        statement = select(ranked).order_by(ranked.c.place).limit(limit)
        async with self._database.read() as connection:
            return _counts((await connection.execute(statement)).mappings().all())

    async def remove(self, before_day: int, at_most: int) -> int:
        """Delete counts of earlier days; return how many were deleted."""
        key = tuple_(_ROWS.c.bearer, _ROWS.c.cost, _ROWS.c.day)
        old = select(_ROWS.c.bearer, _ROWS.c.cost, _ROWS.c.day).where(_ROWS.c.day < before_day)
        async with self._database.write() as connection:
            await self._database.lock(connection, "daily costs")
            removed = await connection.execute(delete(_ROWS).where(key.in_(old.limit(at_most))))
            return removed.rowcount

    async def _trim_when_due(self, days: Collection[int]) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._trim_at_s:
            return
        self._trim_at_s = now_s + TRIM_EVERY_S
        counted = (
            select(_ROWS.c.cost, _ROWS.c.day, func.count().label("rows"))
            .where(_ROWS.c.day.in_(sorted(days)))
            .group_by(_ROWS.c.cost, _ROWS.c.day)
        )
        async with self._database.write() as connection:
            await self._database.lock(connection, "daily costs")
            for cost, day, rows in (await connection.execute(counted)).all():
                if rows > ROWS_MAX:
                    await _remove_least(connection, cost, day, rows - ROWS_MAX)


async def _remove_least(connection: AsyncConnection, cost: str, day: int, at_most: int) -> None:
    mine = (_ROWS.c.cost == cost, _ROWS.c.day == day)
    least = select(_ROWS.c.bearer).where(*mine).order_by(_ROWS.c.used).limit(at_most)
    await connection.execute(delete(_ROWS).where(*mine, _ROWS.c.bearer.in_(least)))


def _counts(rows: Collection[SqlRow]) -> Mapping[CostKey, int]:
    return {CostKey(row["bearer"], row["cost"], row["day"]): int(row["used"]) for row in rows}
