"""Deletes payment streams, then their rows in parts, and unneeded fundings.

A deleted stream begins again when it is needed again. Its rows are removed afterwards, as `gone`,
unless a stream that is read has them: a stream that returned meanwhile keeps them.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import RowMapping, TextClause, bindparam, delete, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import Database, to_us
from assay.db.schema.everything import chain_fundings, index_streams
from assay.reputation.ports import NEUTRAL_FROM, Stream
from assay.reputation.store_event_rows import ROWS_LOCK, these

EXCHANGE: Final = "exchange"
"""The kind of a row that records an address that funded as many accounts as an exchange."""

_ADD: Final = text(
    "INSERT INTO index_streams"
    " (kind, network, subject, block, block_hash, rows, is_done, is_whole, asked_day)"
    " VALUES (:kind, :network, :subject, -1, '', 0, TRUE, FALSE, 0) ON CONFLICT DO NOTHING"
)

_IDLE: Final = text(
    "SELECT network, subject FROM index_streams"
    " WHERE kind = 'payments' AND asked_day < :before_day ORDER BY asked_day LIMIT :at_most"
)
_FORGET_IDLE: Final = text(
    "DELETE FROM index_streams WHERE kind = 'payments' AND network = :network"
    " AND subject = :subject AND asked_day < :before_day"
)
_TOTAL: Final = text(
    "SELECT COALESCE(SUM(rows), 0) + COUNT(*) FROM index_streams WHERE kind = 'payments'"
)
_LARGEST: Final = text(
    "SELECT s.network, s.subject, s.rows FROM index_streams s"
    " WHERE s.kind = 'payments' AND s.subject NOT IN :kept"
    " ORDER BY EXISTS (SELECT 1 FROM evaluations e WHERE e.wallet = s.subject"
    " AND e.rung >= 3 AND e.evaluated_us >= :used_us),"
    " s.rows DESC, s.asked_day, s.network, s.subject LIMIT :at_most"
).bindparams(bindparam("kept", expanding=True))
_FORGET: Final = text(
    "DELETE FROM index_streams"
    " WHERE kind = 'payments' AND network = :network AND subject = :subject"
)
_GONE: Final = text(
    "SELECT network, subject FROM index_streams"
    " WHERE kind = 'gone' ORDER BY network, subject LIMIT 1"
)
_IS_READ: Final = text(
    "SELECT 1 FROM index_streams"
    " WHERE kind = 'payments' AND network = :network AND subject = :subject"
)
_OF: Final = "SELECT t.network, t.tx, t.log FROM chain_transfers t WHERE t.network = :network"
_NOT_OF: Final = (
    " AND NOT EXISTS (SELECT 1 FROM index_streams s"
    " WHERE s.kind = 'payments' AND s.network = :network AND s.subject = "
)
REMOVE_ROWS: Final = text(
    "DELETE FROM chain_transfers WHERE (network, tx, log) IN (SELECT * FROM ("  # noqa: S608 - our own words
    f"{_OF} AND t.recipient = :subject{_NOT_OF} t.sender)"
    " UNION ALL "
    f"{_OF} AND t.sender = :subject AND t.recipient <> :subject{_NOT_OF} t.recipient)"
    " LIMIT :at_most) AS gone)"
)
_REMOVED: Final = text(
    "DELETE FROM index_streams WHERE kind = 'gone' AND network = :network AND subject = :subject"
)
LOOK: Final = text(
    "SELECT s.network, s.subject, f.funder,"
    " EXISTS (SELECT 1 FROM chain_transfers t"
    " WHERE t.network = s.network AND t.sender = s.subject)"
    " OR EXISTS (SELECT 1 FROM chain_fundings o"
    " WHERE o.network = s.network AND o.funder = s.subject) AS is_used"
    " FROM index_streams s LEFT JOIN chain_fundings f"
    " ON f.network = s.network AND f.account = s.subject"
    " WHERE s.kind = 'funding' AND s.asked_day < :before_day ORDER BY s.asked_day LIMIT :at_most"
)
_FUNDED: Final = text(
    "SELECT COUNT(*) FROM (SELECT 1 FROM chain_fundings"
    " WHERE network = :network AND funder = :funder LIMIT :at_most) AS funded"
)


class SqlOldStreams:
    """Deletes a bounded number at a time; several processes may run it at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def forget_idle(self, before_day: int, at_most: int) -> int:
        """Delete payment streams that no evaluation has needed since that day; return how many."""
        values = {"before_day": before_day, "at_most": at_most}
        if not await self._found(_IDLE, {**values, "at_most": 1}):
            return 0
        async with self._database.write() as connection:
            await self._database.lock(connection, ROWS_LOCK)
            idle = (await connection.execute(_IDLE, values)).mappings().all()
            for row in idle:
                gone = {**row, "before_day": before_day}
                if (await connection.execute(_FORGET_IDLE, gone)).rowcount:
                    await connection.execute(_ADD, {**row, "kind": "gone"})
        return len(idle)

    async def forget_largest(
        self, rows_max: int, used_since: datetime, kept: Collection[str], at_most: int
    ) -> int:
        """Delete payment streams until at most `rows_max` rows are kept; return how many streams.

        Each stream is a row as well. The largest go first; those of wallets of agents that were on
        rung 3 since `used_since` go when there are no others, and those to the addresses of `kept`
        never.
        """
        (total,) = (await self._found(_TOTAL, {}))[0].values()
        if total <= rows_max:
            return 0
        values = {"used_us": to_us(used_since), "kept": sorted(kept) or [""], "at_most": at_most}
        async with self._database.write() as connection:
            await self._database.lock(connection, ROWS_LOCK)
            over = (await connection.execute(_TOTAL)).scalar_one() - rows_max
            forgotten = 0
            for row in (await connection.execute(_LARGEST, values)).mappings().all():
                if over <= 0:
                    break
                over -= row["rows"] + 1
                forgotten += 1
                gone = {"network": row["network"], "subject": row["subject"]}
                await connection.execute(_FORGET, gone)
                await connection.execute(_ADD, {**gone, "kind": "gone"})
        return forgotten

    async def remove_rows(self, at_most: int) -> bool:
        """Remove transfers of one deleted stream; return whether there may be more to remove."""
        if not await self._found(_GONE, {}):
            return False
        async with self._database.write() as connection:
            await self._database.lock(connection, ROWS_LOCK)
            gone = (await connection.execute(_GONE)).mappings().one_or_none()
            if gone is None:
                return False
            removed = 0
            if (await connection.execute(_IS_READ, dict(gone))).one_or_none() is None:
                part = {**gone, "at_most": at_most}
                removed = (await connection.execute(REMOVE_ROWS, part)).rowcount
            if removed < at_most:
                await connection.execute(_REMOVED, dict(gone))
        return True

    async def look_at_fundings(self, before_day: int, today: int, at_most: int) -> int:
        """Check fundings not checked since that day; return how many.

        Fundings that lead to payers of a stream that is kept stay.
        """
        values = {"before_day": before_day, "at_most": at_most}
        if not await self._found(LOOK, {**values, "at_most": 1}):
            return 0
        async with self._database.write() as connection:
            await self._database.lock(connection, ROWS_LOCK)
            rows = (await connection.execute(LOOK, values)).mappings().all()
            unused = [row for row in rows if not row["is_used"]]
            await self._remember_exchanges(connection, unused)
            kept = [_funding(row) for row in rows if row["is_used"]]
            gone = [_funding(row) for row in unused]
            looked = update(index_streams).where(these(kept)).values(asked_day=today)
            await connection.execute(looked)
            await connection.execute(delete(index_streams).where(these(gone)))
            for network in {one.network for one in gone}:
                mine = [one.subject for one in gone if one.network == network]
                of = (chain_fundings.c.network == network, chain_fundings.c.account.in_(mine))
                await connection.execute(delete(chain_fundings).where(*of))
        return len(rows)

    async def _remember_exchanges(
        self, connection: AsyncConnection, unused: Sequence[RowMapping]
    ) -> None:
        """Keep exchanges: a forgotten one would join its customers into one when little used."""
        for network, funder in sorted({(r["network"], r["funder"]) for r in unused if r["funder"]}):
            whose = {"network": network, "funder": funder, "at_most": NEUTRAL_FROM}
            if (await connection.execute(_FUNDED, whose)).scalar_one() == NEUTRAL_FROM:
                row = {"kind": EXCHANGE, "network": network, "subject": funder}
                await connection.execute(_ADD, row)

    async def _found(
        self, statement: TextClause, values: Mapping[str, Any]
    ) -> Sequence[RowMapping]:
        async with self._database.read() as connection:
            return (await connection.execute(statement, values)).mappings().all()


def _funding(row: RowMapping) -> Stream:
    return Stream("funding", row["network"], row["subject"])
