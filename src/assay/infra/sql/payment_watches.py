"""When settled payments are looked at again, in SQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, select, update

from assay.infra.sql.engine import Database, to_us
from assay.infra.sql.payment_rows import entry_of
from assay.infra.sql.tables import payments
from assay.payments.model import Entry
from assay.payments.watcher import Plan

_LOCK = "payment watches"
"""Rows are taken by several in one statement: two of them in two orders would wait crosswise."""

_PLAN = (
    update(payments)
    .where(payments.c.id == bindparam("an_id"), payments.c.watch_us.is_not(None))
    .values(watch_us=bindparam("a_watch_us"))
)


class SqlWatchStore:
    """Implements `payments.watcher.WatchStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_due(self, now: datetime, until: datetime, at_most: int) -> Sequence[Entry]:
        is_due = payments.c.watch_us <= to_us(now)
        due = select(payments.c.id).where(is_due).order_by(payments.c.watch_us).limit(at_most)
        async with self._database.read() as connection:
            ids = (await connection.execute(due)).scalars().all()
        if not ids:
            return []
        # Whoever claims a row first has made it due later: the others' condition fails.
        claim = (
            update(payments)
            .where(payments.c.id.in_(ids), is_due)
            .values(watch_us=to_us(until))
            .returning(payments)
        )
        async with self._database.write() as connection:
            await self._database.lock(connection, _LOCK)
            rows = (await connection.execute(claim)).mappings().all()
        return [entry_of(row) for row in rows]

    async def plan(self, plans: Sequence[Plan]) -> None:
        """An entry that is not watched any more stays so."""
        if not plans:
            return
        values = [
            {"an_id": entry_id, "a_watch_us": None if at is None else to_us(at)}
            for entry_id, at in sorted(plans, key=lambda plan: plan[0])
        ]
        async with self._database.write() as connection:
            await self._database.lock(connection, _LOCK)
            await connection.execute(_PLAN, values)
