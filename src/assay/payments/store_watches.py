"""Stores when settled payments are looked at again, and removes old unpaid ones, in SQL.

It removes payments that moved nothing and have ended; their counts stay as sums.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import (
    BigInteger,
    Row,
    Select,
    Update,
    bindparam,
    case,
    func,
    null,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import DAY_US
from assay.db.connect import DatabaseKind
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import payments
from assay.db.sql_transaction import SqlRow, SqlTransaction, Values, places, texts
from assay.payments.model import OPEN, LedgerEntry, PaymentState, WatchedPayment
from assay.payments.store import direct_fee_of, entry_of
from assay.payments.watcher import RecheckPlan

_LOCK = "payment watches"
"""Several rows are taken in one statement; in different orders, two statements would deadlock."""

UNPAID_SHARE: Final = 4
"""One in this many of a batch is for payments that ended unpaid, however many have settled."""

UNPAID_WINDOW: Final = 2000
"""Of those, the number that are due longest, among which payers take turns."""

_OF_NETWORK = payments.c.network == bindparam("a_network")
_IS_DUE = payments.c.watch_us <= bindparam("now_us")
_SETTLED = (
    select(payments.c.id)
    .where(_OF_NETWORK, _IS_DUE, payments.c.settled_us.is_not(None))
    .order_by(payments.c.watch_us)
    .limit(bindparam("limit"))
)
_window = (
    select(payments.c.id, payments.c.payer, payments.c.watch_us)
    .where(_OF_NETWORK, _IS_DUE, payments.c.settled_us.is_(None))
    .order_by(payments.c.watch_us)
    .limit(bindparam("window"))
    .subquery()
)
_turn = func.row_number().over(partition_by=_window.c.payer, order_by=_window.c.watch_us)
_UNPAID = select(_window.c.id).order_by(_turn, _window.c.watch_us).limit(bindparam("limit"))
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
    """Return the statement that claims rows by their ids, a JSON array.

    The first to claim a row postpones it, so the others' condition fails. The same statement gives
    up an open one: settling it makes it due, and nothing may undo that.
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
        self, network: str, now: datetime, until: datetime, limit: int
    ) -> Sequence[WatchedPayment]:
        values = {"a_network": network, "now_us": to_us(now), "limit": limit}
        settled = await self._ids(_SETTLED, values)
        unpaid = await self._ids(_UNPAID, {**values, "window": UNPAID_WINDOW})
        left = max(limit - len(settled), -(-limit // UNPAID_SHARE))
        unpaid = unpaid[:left]
        ids = [*settled[: limit - len(unpaid)], *unpaid]
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
        """Plan the next looks; an entry that is no longer watched stays so."""
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


_MOVED_NOTHING: Final = (
    "state IN ('released', 'failed') AND watch_us IS NULL AND settled_us IS NULL"
    " AND expires_us < :before_us AND updated_us < :before_us"
    " AND (state = 'failed' OR (tx = '' AND gas_spent IS NULL))"
    " AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.payment_id = payments.id)"
    " AND NOT EXISTS (SELECT 1 FROM paid_responses r WHERE r.payment_id = payments.id)"
)
REMOVE: Final = text(
    f"DELETE FROM payments WHERE {_MOVED_NOTHING} AND id IN (SELECT id FROM payments"  # noqa: S608 - our own words
    f" WHERE {_MOVED_NOTHING} ORDER BY expires_us LIMIT :limit)"
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
    """Removes old unpaid payments, a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, before: datetime, limit: int) -> int:
        """Remove payments that ended, with their authorisation, before then; return how many.

        It never removes one that is in flight or still looked at, that money came in for, that was
        released after something was sent for it, or that an answer, a refund or a transfer refers
        to. `removed_payments` counts the failed ones and their gas.
        """
        values = {"before_us": to_us(before), "limit": limit}
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
