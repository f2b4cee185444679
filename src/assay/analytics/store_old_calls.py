"""Removes old rows of the call log; what roll-ups are proven by stays as sums."""

from typing import Final

from sqlalchemy import bindparam, delete, select, text

from assay.analytics.store_derivations import OF_CALLS
from assay.analytics.store_missing_calls import OVERLAP_US, recovered_until_us
from assay.common.clock import DAY_US
from assay.db.engine import Database
from assay.db.schema.everything import call_totals, calls

_ADDED: Final = ("calls", "errors", "latency_us", "asked", "denied", "limited")

_SUM_UP = text(
    f"""
INSERT INTO removed_calls
  (operator_id, agent_id, wrapper_id, day, {", ".join(_ADDED)}, first_us, last_us)
SELECT operator_id, COALESCE(agent_id, ''), wrapper_id, day,
  {", ".join(f"CAST(SUM({name}) AS BIGINT)" for name in _ADDED)}, MIN(first_us), MAX(last_us)
FROM ({OF_CALLS} WHERE seq IN :seqs AND at_us < :before_us) AS events WHERE 1 = 1
GROUP BY operator_id, COALESCE(agent_id, ''), wrapper_id, day
ON CONFLICT (operator_id, agent_id, wrapper_id, day) DO UPDATE SET
  {", ".join(f"{name} = removed_calls.{name} + excluded.{name}" for name in _ADDED)},
  first_us = CASE WHEN excluded.first_us < removed_calls.first_us
    THEN excluded.first_us ELSE removed_calls.first_us END,
  last_us = CASE WHEN excluded.last_us > removed_calls.last_us
    THEN excluded.last_us ELSE removed_calls.last_us END"""  # noqa: S608 - our own names
).bindparams(bindparam("seqs", expanding=True))


class SqlOldCalls:
    """Removes a bounded number at a time; roll-ups, payments and what was paid for stay."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, before_day: int, at_most: int) -> int:
        """Remove calls of UTC days before that one; how many.

        Those that `SqlMissingCalls` may still look for stay. They are found by the index of each
        operator, so that nothing is read in vain where there are none. Sums and removal are one
        transaction, and each asks again for the age: SQLite gives numbers to new rows again.
        """
        before_us = before_day * DAY_US
        looked_for_us = await recovered_until_us(self._database)
        if looked_for_us is not None:
            before_us = min(before_us, looked_for_us - OVERLAP_US)
        whose = select(call_totals.c.operator_id)
        is_old = calls.c.at_us < before_us
        found = select(calls.c.seq).where(calls.c.operator_id.in_(whose), is_old).limit(at_most)
        async with self._database.read() as connection:
            seqs = (await connection.execute(found)).scalars().all()
        if not seqs:
            return 0
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of calls")
            await connection.execute(_SUM_UP, {"seqs": seqs, "before_us": before_us})
            gone = await connection.execute(delete(calls).where(calls.c.seq.in_(seqs), is_old))
        return gone.rowcount
