"""Daily counts in SQL: budgets, and costs of callers, exact over any number of processes.

Daily budgets, counted exactly across any number of processes.

Daily costs of callers in SQL: one ledger for every process on the database.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlalchemy import Insert, bindparam, delete, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import Clock
from assay.common.costs import CostKey
from assay.db.connect import DatabaseKind
from assay.db.engine import Database
from assay.db.schema.budgets import daily_costs
from assay.db.schema.payments import daily_budgets
from assay.db.sql_transaction import SqlRow, SqlTransaction, places, texts

_BUDGETS = daily_budgets
_ONE = (_BUDGETS.c.name == bindparam("a_name"), _BUDGETS.c.day == bindparam("a_day"))
_GIVE_BACK = update(_BUDGETS).where(*_ONE, _BUDGETS.c.used > 0).values(used=_BUDGETS.c.used - 1)
_USED = select(_BUDGETS.c.name, _BUDGETS.c.used)


def _take(kind: DatabaseKind) -> Insert:
    made = (sqlite_insert if kind == "sqlite" else postgresql_insert)(_BUDGETS)
    return made.values(name=bindparam("name"), day=bindparam("day"), used=1).on_conflict_do_update(
        index_elements=[_BUDGETS.c.name, _BUDGETS.c.day],
        set_={"used": _BUDGETS.c.used + 1},
        where=_BUDGETS.c.used < bindparam("a_limit"),
    )


class DailyBudgets:
    """Takes one unit at a time, in the caller's transaction or in one of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._take = _take(database.kind)

    async def take_within(
        self, transaction: SqlTransaction, name: str, day: int, limit: int
    ) -> bool:
        """Take a unit; return whether one was left. Callers must take names in one fixed order."""
        if limit <= 0:
            return False
        values = {"name": name, "day": day, "a_limit": limit}
        return await transaction.change(self._take, values) == 1

    @staticmethod
    async def give_back_within(transaction: SqlTransaction, name: str, day: int) -> None:
        """Return a unit that was not needed."""
        await transaction.change(_GIVE_BACK, {"a_name": name, "a_day": day})

    async def take_all(self, limits: Sequence[tuple[str, int]], day: int) -> str | None:
        """Take a unit of every budget, or none; return the name of a budget that is used up."""

        async def work(transaction: SqlTransaction) -> str | None:
            taken: list[str] = []
            for name, limit in limits:
                if not await self.take_within(transaction, name, day, limit):
                    for other in taken:
                        await self.give_back_within(transaction, other, day)
                    return name
                taken.append(name)
            return None

        return await self._database.change(work)

    async def used(self, names: Sequence[str], day: int) -> Mapping[str, int]:
        """Return the units taken of these budgets; untouched budgets are left out."""
        statement = _USED.where(_BUDGETS.c.name.in_(names), _BUDGETS.c.day == day)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return {name: int(used) for name, used in rows}

    async def forget(self, before_day: int) -> int:
        """Delete budgets of earlier days; return how many there were."""
        async with self._database.write() as connection:
            removed = await connection.execute(delete(_BUDGETS).where(_BUDGETS.c.day < before_day))
            return removed.rowcount


ROWS_MAX: Final = 50_000
"""Rows of one kind and day. Beyond it the lowest costs are removed first, so that many cheap
bearers cannot make an expensive one forgotten."""

TRIM_EVERY_S: Final = 60.0
_COSTS = daily_costs


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
        days = _COSTS.c.day.between(bindparam("first"), bindparam("last"))
        self._known = select(_COSTS).where(_COSTS.c.bearer.in_(named), days)

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
            partition_by=(_COSTS.c.cost, _COSTS.c.day), order_by=_COSTS.c.used.desc()
        )
        ranked = select(_COSTS, place.label("place")).where(_COSTS.c.day.in_(days)).subquery()
        statement = select(ranked).order_by(ranked.c.place).limit(limit)
        async with self._database.read() as connection:
            return _counts((await connection.execute(statement)).mappings().all())

    async def remove(self, before_day: int, limit: int) -> int:
        """Delete counts of earlier days; return how many were deleted."""
        key = tuple_(_COSTS.c.bearer, _COSTS.c.cost, _COSTS.c.day)
        old = select(_COSTS.c.bearer, _COSTS.c.cost, _COSTS.c.day).where(_COSTS.c.day < before_day)
        async with self._database.write() as connection:
            await self._database.lock(connection, "daily costs")
            removed = await connection.execute(delete(_COSTS).where(key.in_(old.limit(limit))))
            return removed.rowcount

    async def _trim_when_due(self, days: Collection[int]) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._trim_at_s:
            return
        self._trim_at_s = now_s + TRIM_EVERY_S
        counted = (
            select(_COSTS.c.cost, _COSTS.c.day, func.count().label("rows"))
            .where(_COSTS.c.day.in_(sorted(days)))
            .group_by(_COSTS.c.cost, _COSTS.c.day)
        )
        async with self._database.write() as connection:
            await self._database.lock(connection, "daily costs")
            for cost, day, rows in (await connection.execute(counted)).all():
                if rows > ROWS_MAX:
                    await _remove_least(connection, cost, day, rows - ROWS_MAX)


async def _remove_least(connection: AsyncConnection, cost: str, day: int, limit: int) -> None:
    mine = (_COSTS.c.cost == cost, _COSTS.c.day == day)
    least = select(_COSTS.c.bearer).where(*mine).order_by(_COSTS.c.used).limit(limit)
    await connection.execute(delete(_COSTS).where(*mine, _COSTS.c.bearer.in_(least)))


def _counts(rows: Collection[SqlRow]) -> Mapping[CostKey, int]:
    return {CostKey(row["bearer"], row["cost"], row["day"]): int(row["used"]) for row in rows}
