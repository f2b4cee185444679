"""Rows of payouts and refunds, and an account's pages of them."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping, func, select, tuple_

from assay.db.engine import Database, from_us, to_us
from assay.db.schema.transfers import transfers
from assay.payments.transfer_model import Transfer, TransferNotFound, TransferState

_PLAIN = (
    *("id", "kind", "operator_id", "payment_id", "network", "asset", "sender", "recipient"),
    *("amount", "of_balance", "nonce", "reason", "moves"),
)


class SqlTransferRows:
    """Implements `payments.transfer_pages.TransferRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, operator_id: str, before: str | None, limit: int, offset: int
    ) -> Sequence[Transfer]:
        mine = transfers.c.operator_id == operator_id
        place = tuple_(transfers.c.created_us, transfers.c.id)
        statement = select(transfers).where(mine)
        async with self._database.read() as connection:
            if before is not None:
                start = select(transfers.c.created_us).where(mine, transfers.c.id == before)
                at_us = (await connection.execute(start)).scalar_one_or_none()
                if at_us is None:
                    raise TransferNotFound("The transfer that the page begins after is not there.")
                statement = statement.where(place < tuple_(at_us, before))
            newest = statement.order_by(transfers.c.created_us.desc(), transfers.c.id.desc())
            rows = (await connection.execute(newest.limit(limit).offset(offset))).mappings().all()
        return [transfer_of(row) for row in rows]

    async def count(self, operator_id: str) -> int:
        statement = select(func.count()).where(transfers.c.operator_id == operator_id)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one()


def values_of(made: Transfer) -> dict[str, Any]:
    """The columns of a transfer."""
    return {name: getattr(made, name) for name in _PLAIN} | {
        "fee_rate": None if made.fee_rate is None else str(made.fee_rate),
        "state": made.state.value,
        "tx": made.transaction,
        "created_us": to_us(made.created_at),
        "updated_us": to_us(made.updated_at),
        "check_us": to_us(made.check_at),
    }


def transfer_of(row: RowMapping) -> Transfer:
    """The transfer of a row."""
    return Transfer(
        **{name: row[name] for name in _PLAIN},
        fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
        state=TransferState(row["state"]),
        transaction=row["tx"],
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        check_at=from_us(row["check_us"]),
    )
