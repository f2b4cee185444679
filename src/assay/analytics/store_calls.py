"""The call log in SQL."""

from collections.abc import Sequence

from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from assay.analytics.model import BatchId, CallLogEntry
from assay.analytics.ports import CallsRefused
from assay.analytics.rollup import RollupTally, tally_calls
from assay.analytics.store_call_rows import call_of, insertions
from assay.analytics.store_rollups import RollupWriter
from assay.common.clock import DAY_US
from assay.common.errors import InvalidRequest
from assay.db.engine import Database, DataRefused, to_us
from assay.db.schema.everything import calls
from assay.db.sql_transaction import SqlTransaction

_REFUSALS = (DataRefused, InvalidRequest, IntegrityError, OverflowError, TypeError)

_ONCE = text(
    "INSERT INTO state (key, value, expires_us) VALUES (:key, :value, :expires_us)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_us = excluded.expires_us"
    " WHERE state.value <> excluded.value RETURNING key"
)
"""The last batch of a writer. Whoever hands the same one in again waits for the first to end."""

_KEPT_DAYS = 7
"""A writer that has been silent for so long has ended."""


class SqlCallStore:
    """Implements `analytics.ports.CallStore`; the roll-ups are written with the rows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rollups = RollupWriter(database.kind)

    async def add(self, batch: Sequence[CallLogEntry], batch_id: BatchId | None = None) -> None:
        try:
            timed = [(to_us(call.at), call) for call in batch]
            tally = tally_calls(timed)
            await self._add(timed, tally, batch_id)
        except _REFUSALS as error:
            why = error.detail if isinstance(error, DataRefused) else None
            raise CallsRefused(why or str(error)) from error
        self._rollups.written(tally)

    async def _add(
        self,
        timed: Sequence[tuple[int, CallLogEntry]],
        tally: RollupTally,
        batch_id: BatchId | None,
    ) -> None:
        statements = list(insertions(self._database.kind, timed))

        async def work(transaction: SqlTransaction) -> None:
            if batch_id is not None and not await _is_new(transaction, batch_id, timed[-1][0]):
                return
            for statement, sets in statements:
                await transaction.connection.exec_driver_sql(statement, sets)
            await self._rollups.write(transaction.connection, tally)

        await self._database.change(work)

    async def recent(self, operator_id: str, at_most: int) -> Sequence[CallLogEntry]:
        statement = (
            select(calls)
            .where(calls.c.operator_id == operator_id)
            .order_by(calls.c.at_us.desc(), calls.c.seq.desc())
            .limit(at_most)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [call_of(row) for row in rows]


async def _is_new(transaction: SqlTransaction, batch_id: BatchId, at_us: int) -> bool:
    """Whether this transaction is the first with the batch."""
    values = {
        "key": f"calls written by {batch_id.writer}",
        "value": str(batch_id.number),
        "expires_us": at_us + _KEPT_DAYS * DAY_US,
    }
    return bool(await transaction.rows(_ONCE, values))
