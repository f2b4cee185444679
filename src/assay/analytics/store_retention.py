"""Removes old rows of the call log, and agents that never brought money.

The sums that prove roll-ups stay. Payers and key agents that never paid go with their calls.
"""

from collections import Counter
from typing import Final

from sqlalchemy import bindparam, delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.analytics.store_calls import OVERLAP_US, recovered_until_us
from assay.analytics.store_rollups import OF_CALLS
from assay.common.clock import DAY_US
from assay.db.engine import Database
from assay.db.schema.everything import call_totals, calls

_ADDED: Final = ("calls", "errors", "latency_us", "asked", "denied", "limited")

_INTO_REMOVED: Final = f"""
INSERT INTO removed_calls
  (operator_id, agent_id, wrapper_id, day, {", ".join(_ADDED)}, first_us, last_us)"""

_SUMMED: Final = f"""
  {", ".join(f"CAST(SUM({name}) AS BIGINT)" for name in _ADDED)}, MIN(first_us), MAX(last_us)"""

_ADDING: Final = f"""
ON CONFLICT (operator_id, agent_id, wrapper_id, day) DO UPDATE SET
  {", ".join(f"{name} = removed_calls.{name} + excluded.{name}" for name in _ADDED)},
  first_us = CASE WHEN excluded.first_us < removed_calls.first_us
    THEN excluded.first_us ELSE removed_calls.first_us END,
  last_us = CASE WHEN excluded.last_us > removed_calls.last_us
    THEN excluded.last_us ELSE removed_calls.last_us END"""

_SUM_UP: Final = text(
    f"""{_INTO_REMOVED}
SELECT operator_id, COALESCE(agent_id, ''), wrapper_id, day,{_SUMMED}
FROM ({OF_CALLS} WHERE seq IN :seqs AND at_us < :before_us) AS events WHERE 1 = 1
GROUP BY operator_id, COALESCE(agent_id, ''), wrapper_id, day{_ADDING}"""  # noqa: S608 - our own names
).bindparams(bindparam("seqs", expanding=True))


class SqlOldCalls:
    """Removes a bounded number at a time; roll-ups, payments and what was paid for stay."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, before_day: int, limit: int) -> int:
        """Remove calls of UTC days before that one; return how many.

        Those that `SqlMissingCalls` may still search for stay. They are found by each operator's
        index, so nothing is read if there are none. Sums and removal are one transaction, and each
        checks the age again, because SQLite uses the numbers of removed rows again.
        """
        before_us = before_day * DAY_US
        looked_for_us = await recovered_until_us(self._database)
        if looked_for_us is not None:
            before_us = min(before_us, looked_for_us - OVERLAP_US)
        whose = select(call_totals.c.operator_id)
        is_old = calls.c.at_us < before_us
        found = select(calls.c.seq).where(calls.c.operator_id.in_(whose), is_old).limit(limit)
        async with self._database.read() as connection:
            seqs = (await connection.execute(found)).scalars().all()
        if not seqs:
            return 0
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of calls")
            await connection.execute(_SUM_UP, {"seqs": seqs, "before_us": before_us})
            gone = await connection.execute(delete(calls).where(calls.c.seq.in_(seqs), is_old))
        return gone.rowcount


_DUE: Final = text(
    "SELECT operator_id, agent_id FROM agent_totals a"
    " WHERE operator_id IN (SELECT operator_id FROM call_totals)"
    " AND last_us < :before_us AND revenue = 0"
    " AND NOT EXISTS (SELECT 1 FROM agent_chains c"
    " WHERE c.operator_id = a.operator_id AND c.agent_id = a.agent_id)"
    " AND NOT EXISTS (SELECT 1 FROM calls c"
    " WHERE c.operator_id = a.operator_id AND c.at_us <= a.last_us)"
    " AND NOT EXISTS (SELECT 1 FROM payments p"
    " WHERE p.state = 'reversed' AND p.operator_id = a.operator_id"
    " AND COALESCE(NULLIF(p.agent_id, ''), p.payer) = a.agent_id)"
    " LIMIT :limit"
)
_OF: Final = " WHERE operator_id = :operator_id AND agent_id IN :agents"
_FOLD: Final = text(
    f"""{_INTO_REMOVED}
SELECT operator_id, '', wrapper_id, day,{_SUMMED}
FROM removed_calls{_OF} GROUP BY operator_id, wrapper_id, day{_ADDING}"""  # noqa: S608 - our own words
).bindparams(bindparam("agents", expanding=True))
_REMOVE: Final = tuple(
    text(f"DELETE FROM {table}{_OF}").bindparams(bindparam("agents", expanding=True))  # noqa: S608 - our own words
    for table in ("removed_calls", "agent_days", "agent_totals")
)
_COUNT_LESS: Final = text(
    "UPDATE call_totals SET agents = agents - :gone WHERE operator_id = :operator_id"
)


class SqlOldAgents:
    """Removes a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fold(self, before_day: int, limit: int) -> int:
        """Count removed calls of agents last seen before that UTC day for nobody; return how many.

        It does so for agents that are registered nowhere and brought no money, once every call of
        theirs has been removed. They leave the lists and the number of agents; all other sums stay.
        """
        values = {"before_us": before_day * DAY_US, "limit": limit}
        async with self._database.read() as connection:
            if not (await connection.execute(_DUE, values | {"limit": 1})).all():
                return 0
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of calls")
            await self._stop_writers(connection)
            due = [(str(a), str(b)) for a, b in (await connection.execute(_DUE, values)).all()]
            for operator_id, gone in sorted(Counter(who for who, _ in due).items()):
                agents = [agent for who, agent in due if who == operator_id]
                whose = {"operator_id": operator_id, "agents": agents}
                for statement in (_FOLD, *_REMOVE):
                    await connection.execute(statement, whose)
                less = {"operator_id": operator_id, "gone": gone}
                await connection.execute(_COUNT_LESS, less)
        return len(due)

    async def _stop_writers(self, connection: AsyncConnection) -> None:
        """Stop writers until the end of the transaction: an agent being counted is seen here.

        It locks in the order of writers of calls, and of a rebuild.
        """
        if self._database.kind == "postgresql":
            await connection.execute(text("LOCK TABLE calls IN ROW EXCLUSIVE MODE"))
            await connection.execute(text("LOCK TABLE agent_totals IN SHARE ROW EXCLUSIVE MODE"))
