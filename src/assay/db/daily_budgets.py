"""Daily budgets, counted exactly across any number of processes."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Insert, bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from assay.db.connect import DatabaseKind
from assay.db.engine import Database
from assay.db.schema.gas import daily_budgets
from assay.db.sql_transaction import SqlTransaction

_ROWS = daily_budgets
_ONE = (_ROWS.c.name == bindparam("a_name"), _ROWS.c.day == bindparam("a_day"))
_GIVE_BACK = update(_ROWS).where(*_ONE, _ROWS.c.used > 0).values(used=_ROWS.c.used - 1)
_USED = select(_ROWS.c.name, _ROWS.c.used)


def _take(kind: DatabaseKind) -> Insert:
    made = (sqlite_insert if kind == "sqlite" else postgresql_insert)(_ROWS)
    return made.values(name=bindparam("name"), day=bindparam("day"), used=1).on_conflict_do_update(
        index_elements=[_ROWS.c.name, _ROWS.c.day],
        set_={"used": _ROWS.c.used + 1},
        where=_ROWS.c.used < bindparam("a_limit"),
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
        statement = _USED.where(_ROWS.c.name.in_(names), _ROWS.c.day == day)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return {name: int(used) for name, used in rows}

    async def forget(self, before_day: int) -> int:
        """Delete budgets of earlier days; return how many there were."""
        async with self._database.write() as connection:
            removed = await connection.execute(delete(_ROWS).where(_ROWS.c.day < before_day))
            return removed.rowcount
