"""What a statement is made of, in SQL: sums over the ledger itself."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from sqlalchemy import RowMapping, TextClause, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import Database
from assay.payments.statement import LedgerSum

STATEMENT_S = 60.0
"""How long the sums over every account may take."""

_ALIKE = "operator_id, network, asset, fee_rate, of_balance, kind, is_done"

_RECEIVED = """
SELECT operator_id, network, asset, fee_rate, 'received' AS kind, amount, direct_fee,
  CASE WHEN watch_us IS NULL THEN 1 ELSE 0 END AS is_done,
  CASE WHEN direct_fee = 0 AND (fee_rate IS NOT NULL OR pay_to IN :payees)
    THEN 1 ELSE 0 END AS of_balance
FROM payments WHERE settled_us IS NOT NULL AND state IN ('settled', 'delivered')"""
"""Payments whose money is there: one that was taken back has left these states. Those from before
the rate was noted have none. While one is watched it is not final."""

_SENT = """
SELECT operator_id, network, asset, fee_rate, kind,
  CASE WHEN state = 'paid' THEN 1 ELSE 0 END AS is_done, amount, 0 AS direct_fee,
  CASE WHEN of_balance THEN 1 ELSE 0 END AS of_balance
FROM transfers WHERE state <> 'cancelled'"""


class SqlStatementStore:
    """Implements `payments.statement.StatementStore`. `payees` are the platform's wallets."""

    def __init__(self, database: Database, payees: Iterable[str]) -> None:
        self._database = database
        self._payees = tuple(sorted(payees))

    async def sums(self, operator_id: str) -> Sequence[LedgerSum]:
        async with self._database.snapshot(STATEMENT_S) as connection:
            return await sums_of(connection, self._payees, operator_id)

    async def sums_for_admin(self) -> Sequence[LedgerSum]:
        async with self._database.snapshot(STATEMENT_S) as connection:
            return await sums_of(connection, self._payees, None)


async def sums_of(
    connection: AsyncConnection, payees: Sequence[str], operator_id: str | None
) -> Sequence[LedgerSum]:
    """Of one operator or of all, as the caller's transaction sees them."""
    whose = {} if operator_id is None else {"operator_id": operator_id}
    found: list[LedgerSum] = []
    for events, values in ((_RECEIVED, {"payees": payees or ("",)}), (_SENT, {})):
        statement = _summed(events, is_of_one=operator_id is not None)
        rows = (await connection.execute(statement, {**values, **whose})).mappings().all()
        found += map(_sum, rows)
    return found


def _summed(events: str, *, is_of_one: bool) -> TextClause:
    mine = " AND operator_id = :operator_id" if is_of_one else ""
    statement = text(
        f"SELECT {_ALIKE}, COUNT(*) AS events, SUM(amount) AS amount,"  # noqa: S608 - our own words
        f" SUM(direct_fee) AS direct_fee FROM ({events}{mine}) AS alike GROUP BY {_ALIKE}"
    )
    has_payees = events is _RECEIVED
    return statement.bindparams(bindparam("payees", expanding=True)) if has_payees else statement


def _sum(row: RowMapping) -> LedgerSum:
    return LedgerSum(
        operator_id=row["operator_id"],
        network=row["network"],
        asset=row["asset"],
        kind=row["kind"],
        of_balance=bool(row["of_balance"]),
        is_done=bool(row["is_done"]),
        fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
        count=int(row["events"]),
        amount=int(row["amount"]),
        direct_fee=int(row["direct_fee"]),
    )
