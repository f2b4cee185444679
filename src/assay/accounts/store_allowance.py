"""Monthly counts in SQL."""

from collections.abc import Mapping

from sqlalchemy import select, text

from assay.db.engine import Database
from assay.db.schema.everything import allowance

_ADD = text(
    "INSERT INTO allowance (operator_id, month, used) VALUES (:operator_id, :month, :count)"
    " ON CONFLICT (operator_id, month) DO UPDATE SET used = allowance.used + excluded.used"
    " RETURNING used"
)


class SqlAllowanceStore:
    """Implements `accounts.ports.AllowanceStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def used(self, operator_id: str, month: str) -> int:
        statement = select(allowance.c.used).where(
            allowance.c.operator_id == operator_id, allowance.c.month == month
        )
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one_or_none() or 0

    async def add(self, counts: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
        totals: dict[tuple[str, str], int] = {}
        async with self._database.write() as connection:
            for (operator_id, month), count in sorted(counts.items()):
                values = {"operator_id": operator_id, "month": month, "count": count}
                totals[operator_id, month] = (await connection.execute(_ADD, values)).scalar_one()
        return totals
