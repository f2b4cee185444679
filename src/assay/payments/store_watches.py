"""When settled payments are looked at again, in SQL."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import (
    BigInteger,
    Select,
    Update,
    bindparam,
    case,
    func,
    null,
    or_,
    select,
    update,
)

from assay.db.connect import DatabaseKind
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import payments
from assay.db.sql_transaction import SqlRow, SqlTransaction, Values, places, texts
from assay.payments.model import OPEN, LedgerEntry, PaymentState, WatchedPayment
from assay.payments.store_rows import direct_fee_of, entry_of
from assay.payments.watcher import RecheckPlan

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


_WATCHED = (
    payments.c.id,
    payments.c.protocol,
    payments.c.asset,
    payments.c.payer,
    payments.c.nonce,
    payments.c.amount,
    payments.c.pay_to,
    payments.c.direct_fee,
    payments.c.direct_fee_payee,
    payments.c.state,
    payments.c.tx,
    func.coalesce(payments.c.settled_us, payments.c.updated_us).label("since_us"),
)


def _claiming(kind: DatabaseKind) -> Update:
    """Claims rows by their ids, a JSON array.

    Whoever claims a row first has made it due later: the others' condition fails. An open one is
    given up in the same statement: settling it makes it due, and nothing may undo that.
    """
    is_open = or_(*(payments.c.state == state for state in sorted(OPEN)))
    until_us = bindparam("until_us", type_=BigInteger)
    return (
        update(payments)
        .where(payments.c.id.in_(texts(kind, "ids")), _IS_DUE)
        .values(watch_us=case((is_open, null()), else_=until_us))
        .returning(*_WATCHED)
    )


class SqlWatchStore:
    """Implements `payments.watcher.WatchStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._claim = _claiming(database.kind)
        self._entries = select(payments).where(payments.c.id.in_(texts(database.kind, "ids")))
        at, entry_id, state = places(database.kind, 3).split(", ")
        self._plan = (
            f"UPDATE payments SET watch_us = {at}"  # noqa: S608 - our own text
            f" WHERE id = {entry_id} AND state = {state} AND watch_us IS NOT NULL"
        )

    async def claim_due(
        self, network: str, now: datetime, until: datetime, at_most: int
    ) -> Sequence[WatchedPayment]:
        values = {"a_network": network, "now_us": to_us(now), "at_most": at_most}
        settled = await self._ids(_SETTLED, values)
        unpaid = await self._ids(_UNPAID, {**values, "window": UNPAID_WINDOW})
        left = max(at_most - len(settled), -(-at_most // UNPAID_SHARE))
        unpaid = unpaid[:left]
        ids = [*settled[: at_most - len(unpaid)], *unpaid]
        if not ids:
            return []
        named = {"ids": json.dumps(ids), "now_us": to_us(now), "until_us": to_us(until)}

        async def work(transaction: SqlTransaction) -> Sequence[SqlRow]:
            await transaction.lock(_LOCK)
            return await transaction.rows(self._claim, named)

        rows = await self._database.change(work)
        return [_watched(row) for row in rows if row["state"] not in OPEN]

    async def entries(self, ids: Sequence[str]) -> Sequence[LedgerEntry]:
        values = {"ids": json.dumps(ids)}
        rows = await self._database.look(
            lambda transaction: transaction.rows(self._entries, values)
        )
        return [entry_of(row) for row in rows]

    async def _ids(self, statement: Select[tuple[str]], values: Values) -> list[str]:
        rows = await self._database.look(lambda transaction: transaction.rows(statement, values))
        return [row["id"] for row in rows]

    async def plan(self, plans: Sequence[RecheckPlan]) -> None:
        """An entry that is not watched any more stays so."""
        if not plans:
            return
        rows = [
            (None if plan.at is None else to_us(plan.at), plan.id, plan.state.value)
            for plan in sorted(plans, key=lambda plan: plan.id)
        ]

        async def work(transaction: SqlTransaction) -> None:
            await transaction.lock(_LOCK)
            await transaction.connection.exec_driver_sql(self._plan, rows)

        await self._database.change(work)


def _watched(row: SqlRow) -> WatchedPayment:
    return WatchedPayment(
        row["id"],
        row["protocol"],
        row["asset"],
        row["payer"],
        row["nonce"],
        row["amount"],
        row["pay_to"],
        direct_fee_of(row),
        PaymentState(row["state"]),
        row["tx"],
        from_us(row["since_us"]),
    )
