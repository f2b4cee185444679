"""Removes payments that moved nothing and have ended; what was counted of them stays as sums."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import DAY_US
from assay.db.engine import Database, to_us

_MOVED_NOTHING: Final = (
    "state IN ('released', 'failed') AND watch_us IS NULL AND settled_us IS NULL"
    " AND expires_us < :before_us AND updated_us < :before_us"
    " AND (state = 'failed' OR (tx = '' AND gas_spent IS NULL))"
    " AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.payment_id = payments.id)"
    " AND NOT EXISTS (SELECT 1 FROM paid_responses r WHERE r.payment_id = payments.id)"
)
REMOVE: Final = text(
    f"DELETE FROM payments WHERE {_MOVED_NOTHING} AND id IN (SELECT id FROM payments"  # noqa: S608 - our own words
    f" WHERE {_MOVED_NOTHING} ORDER BY expires_us LIMIT :at_most)"
    f" RETURNING operator_id, updated_us / {DAY_US} AS day, state, gas_currency, gas_spent"
)
_ADD: Final = text(
    "INSERT INTO removed_payments (operator_id, day, gas_currency, failed, gas_spent)"
    " VALUES (:operator_id, :day, :gas_currency, :failed, :gas_spent)"
    " ON CONFLICT (operator_id, day, gas_currency) DO UPDATE SET"
    " failed = removed_payments.failed + excluded.failed,"
    " gas_spent = removed_payments.gas_spent + excluded.gas_spent"
)


class SqlOldPayments:
    """Removes a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, before: datetime, at_most: int) -> int:
        """Remove payments that ended before then and whose authorisation did; how many.

        Never one that is in flight or is still looked at, that money came in for, that was
        released after something was sent for it, or that an answer, a refund or a transfer points
        to. Of those that failed, `removed_payments` counts how many and what gas they cost.
        """
        values = {"before_us": to_us(before), "at_most": at_most}
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of payments")
            gone = (await connection.execute(REMOVE, values)).all()
            await _sum_up(connection, (row for row in gone if row.state == "failed"))
        return len(gone)


async def _sum_up(connection: AsyncConnection, failed: Iterable[Row[tuple[object, ...]]]) -> None:
    counts, gas = Counter[tuple[str, int, str]](), Counter[tuple[str, int, str]]()
    for row in failed:
        key = (row.operator_id, row.day, row.gas_currency)
        counts[key] += 1
        gas[key] += row.gas_spent or 0
    names = ("operator_id", "day", "gas_currency")
    for key, count in sorted(counts.items()):
        values = dict(zip(names, key, strict=True))
        await connection.execute(_ADD, {**values, "failed": count, "gas_spent": gas[key]})
