"""When settled payments are looked at again, in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, case, func, select, update

from assay.infra.sql.engine import Database, to_us
from assay.infra.sql.payment_rows import entry_of
from assay.infra.sql.tables import payments
from assay.payments.model import Entry
from assay.payments.watcher import OPEN, Plan

_LOCK = "payment watches"
"""Rows are taken by several in one statement: two of them in two orders would wait crosswise."""

UNPAID_SHARE: Final = 4
"""Of a batch, one in so many is left to payments that ended unpaid, however many have settled."""

UNPAID_WINDOW: Final = 2000
"""Of those, the ones due longest among which payers take turns."""

_OF_NETWORK = payments.c.network == bindparam("a_network")
_IS_DUE = payments.c.watch_us <= bindparam("now_us")
_SETTLED = (
    select(payments.c.id)
    .where(_OF_NETWORK, _IS_DUE, payments.c.settled_us.is_not(None))
    .order_by(payments.c.watch_us)
    .limit(bindparam("at_most"))
)
_window = (
    select(payments.c.id, payments.c.payer, payments.c.watch_us)
    .where(_OF_NETWORK, _IS_DUE, payments.c.settled_us.is_(None))
    .order_by(payments.c.watch_us)
    .limit(bindparam("window"))
    .subquery()
)
_turn = func.row_number().over(partition_by=_window.c.payer, order_by=_window.c.watch_us)
_UNPAID = select(_window.c.id).order_by(_turn, _window.c.watch_us).limit(bindparam("at_most"))
"""Each payer's first before anybody's second."""

_PLAN = (
    update(payments)
    .where(payments.c.id == bindparam("an_id"), payments.c.watch_us.is_not(None))
    .values(watch_us=bindparam("a_watch_us"))
)


class SqlWatchStore:
    """Implements `payments.watcher.WatchStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim_due(
        self, network: str, now: datetime, until: datetime, at_most: int
    ) -> Sequence[Entry]:
        values = {"a_network": network, "now_us": to_us(now), "at_most": at_most}
        async with self._database.read() as connection:
            settled = (await connection.execute(_SETTLED, values)).scalars().all()
            values["window"] = UNPAID_WINDOW
            unpaid = (await connection.execute(_UNPAID, values)).scalars().all()
        left = max(at_most - len(settled), -(-at_most // UNPAID_SHARE))
        unpaid = unpaid[:left]
        ids = [*settled[: at_most - len(unpaid)], *unpaid]
        if not ids:
            return []
        # Whoever claims a row first has made it due later: the others' condition fails. An open one
        # is given up in the same statement: settling it makes it due, and nothing may undo that.
        claim = (
            update(payments)
            .where(payments.c.id.in_(ids), payments.c.watch_us <= to_us(now))
            .values(watch_us=case((payments.c.state.in_(OPEN), None), else_=to_us(until)))
            .returning(payments)
        )
        async with self._database.write() as connection:
            await self._database.lock(connection, _LOCK)
            rows = (await connection.execute(claim)).mappings().all()
        return [entry_of(row) for row in rows if row["state"] not in OPEN]

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
