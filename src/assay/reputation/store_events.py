"""Stores events of chains in SQL, and deletes what is no longer needed.

Deletes payment streams, then their rows in parts, and unneeded fundings.

A deleted stream begins again when it is needed again. Its rows are removed afterwards, as `gone`,
unless a stream that is read has them: a stream that returned meanwhile keeps them.

Stores events of chains in SQL; implements `reputation.ports.EventStore`.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    Row,
    RowMapping,
    Table,
    TextClause,
    and_,
    bindparam,
    delete,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import Clock
from assay.db.engine import Database, to_us
from assay.db.schema.everything import (
    chain_feedback,
    chain_fundings,
    chain_notes,
    chain_owners,
    chain_transfers,
    index_streams,
)
from assay.reputation.events import DAY_S
from assay.reputation.model import Batch, FeedbackEvent, ProvenPayment, TransferRow
from assay.reputation.ports import NEUTRAL_FROM, EventCursor, EventKind, LedgerPayment, Stream
from assay.reputation.store_files import ask_files, proven
from assay.reputation.store_sellers import (
    BY_BLOCK,
    READ_MAX,
    ROWS_LOCK,
    cursor_of,
    paid_to,
    parts,
    resold,
    rows_of,
    spent_elsewhere,
    stream_of,
    stream_row,
    these,
    touch,
)

EXCHANGE: Final = "exchange"
"""The kind of a row that records an address that funded as many accounts as an exchange."""

_ADD: Final = text(
    "INSERT INTO index_streams"
    " (kind, network, subject, block, block_hash, rows, is_done, is_whole, asked_day)"
    " VALUES (:kind, :network, :subject, -1, '', 0, TRUE, FALSE, 0) ON CONFLICT DO NOTHING"
)

_IDLE: Final = text(
    "SELECT network, subject FROM index_streams"
    " WHERE kind = 'payments' AND asked_day < :before_day ORDER BY asked_day LIMIT :limit"
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
    " s.rows DESC, s.asked_day, s.network, s.subject LIMIT :limit"
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
    " LIMIT :limit) AS gone)"
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
    " WHERE s.kind = 'funding' AND s.asked_day < :before_day ORDER BY s.asked_day LIMIT :limit"
)
_FUNDED: Final = text(
    "SELECT COUNT(*) FROM (SELECT 1 FROM chain_fundings"
    " WHERE network = :network AND funder = :funder LIMIT :limit) AS funded"
)


class SqlOldStreams:
    """Deletes a bounded number at a time; several processes may run it at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def forget_idle(self, before_day: int, limit: int) -> int:
        """Delete payment streams that no evaluation has needed since that day; return how many."""
        values = {"before_day": before_day, "limit": limit}
        if not await self._found(_IDLE, {**values, "limit": 1}):
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
        self, rows_max: int, used_since: datetime, kept: Collection[str], limit: int
    ) -> int:
        """Delete payment streams until at most `rows_max` rows are kept; return how many streams.

        Each stream is a row as well. The largest go first; those of wallets of agents that were on
        rung 3 since `used_since` go when there are no others, and those to the addresses of `kept`
        never.
        """
        (total,) = (await self._found(_TOTAL, {}))[0].values()
        if total <= rows_max:
            return 0
        values = {"used_us": to_us(used_since), "kept": sorted(kept) or [""], "limit": limit}
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

    async def remove_rows(self, limit: int) -> bool:
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
                part = {**gone, "limit": limit}
                removed = (await connection.execute(REMOVE_ROWS, part)).rowcount
            if removed < limit:
                await connection.execute(_REMOVED, dict(gone))
        return True

    async def look_at_fundings(self, before_day: int, today: int, limit: int) -> int:
        """Check fundings not checked since that day; return how many.

        Fundings that lead to payers of a stream that is kept stay.
        """
        values = {"before_day": before_day, "limit": limit}
        if not await self._found(LOOK, {**values, "limit": 1}):
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
            whose = {"network": network, "funder": funder, "limit": NEUTRAL_FROM}
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


ROWS_MAX = 100_000
"""Rows of one stream; then it is full: an address with more is a flood, or not a seller."""

_S = index_streams.c


class _Overtaken(Exception):
    """Another process has already read the range."""


class SqlEventStore:
    """Implements `reputation.ports.EventStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._insert = sqlite_insert if database.kind == "sqlite" else postgresql_insert

    async def networks(self) -> Sequence[str]:
        statement = select(_S.network).distinct().order_by(_S.network)
        async with self._database.read() as connection:
            return list((await connection.execute(statement)).scalars())

    async def watch(self, streams: Sequence[Stream], block: int) -> Mapping[Stream, EventCursor]:
        rows, today = await self._rows(streams), self._today()
        await touch(self._database, [s for s, row in rows.items() if row.asked_day < today], today)
        new = [one for one in dict.fromkeys(streams) if one not in rows]
        if new:
            begun = [stream_row(one, block, today) for one in new]
            async with self._database.write() as connection:
                await self._add(connection, index_streams, begun)
            rows |= await self._rows(new)
        # A stream deleted at this very moment begins again next time.
        return dict.fromkeys(new, EventCursor(block)) | {
            s: cursor_of(row) for s, row in rows.items()
        }

    async def due(
        self, kind: EventKind, network: str, below: int, limit: int
    ) -> Sequence[tuple[Stream, EventCursor]]:
        mine = (_S.kind == kind, _S.network == network, _S.is_done.is_(False), _S.block < below)
        lowest = select(func.min(_S.block)).where(*mine).scalar_subquery()
        statement = (
            select(index_streams)
            .where(*mine, _S.block == lowest)
            .order_by(_S.block_hash, _S.subject)
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        same = [row for row in rows if row.block_hash == rows[0].block_hash]
        return [(stream_of(row), cursor_of(row)) for row in same]

    async def advance(
        self, streams: Sequence[Stream], was: EventCursor, now: EventCursor, batch: Batch
    ) -> bool:
        mine = and_(these(streams), _S.block == was.block, _S.block_hash == was.block_hash)
        network = streams[0].network
        try:
            async with self._database.write() as connection:
                await self._database.lock(connection, ROWS_LOCK)
                values: dict[str, Any] = {"block": now.block, "block_hash": now.block_hash}
                values |= {"is_whole": True} if now.is_whole else {}
                moved = await connection.execute(update(index_streams).where(mine).values(values))
                _require(moved.rowcount == len(streams))
                for table, rows in rows_of(network, batch):
                    await self._add(connection, table, rows)
                await self._finish(connection, streams, batch)
        except _Overtaken:
            return False
        return True

    async def rewind(self, network: str, block: int) -> None:
        async with self._database.write() as connection:
            await self._database.lock(connection, ROWS_LOCK)
            for table in BY_BLOCK:
                gone = (table.c.network == network, table.c.block > block)
                await connection.execute(delete(table).where(*gone))
            later = update(index_streams).where(_S.network == network, _S.block > block)
            await connection.execute(later.values(block=block, block_hash="", is_done=False))
            # An account whose funding was deleted must be read again, whatever its cursor says.
            funded = select(chain_fundings.c.account).where(chain_fundings.c.network == network)
            lost = update(index_streams).where(
                _S.network == network, _S.kind == "funding", _S.subject.not_in(funded)
            )
            await connection.execute(lost.values(is_done=False))

    async def feedback(self, network: str, agent_id: str) -> Sequence[FeedbackEvent]:
        columns, notes = chain_feedback.c, await self._notes(network, agent_id)
        statement = (
            select(chain_feedback)
            .where(columns.network == network, columns.agent_id == agent_id)
            .order_by(columns.block.desc(), columns.client, columns.number)
            .limit(READ_MAX)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return [
            FeedbackEvent(
                client=row.client,
                index=row.number,
                rating=None if row.file == "bad" else row.rating,
                day=row.day,
                uri=row.uri,
                digest=row.digest,
                is_revoked=(row.client, row.number, True) in notes,
                responses=notes.get((row.client, row.number, False), 0),
                file=row.file,
            )
            for row in rows
        ]

    async def owners(self, network: str, agent_id: str) -> frozenset[str]:
        columns = chain_owners.c
        statement = (
            select(columns.owner)
            .where(columns.network == network, columns.agent_id == agent_id)
            .distinct()
            .limit(READ_MAX)
        )
        async with self._database.read() as connection:
            return frozenset((await connection.execute(statement)).scalars())

    async def transfers(self, network: str, addresses: Sequence[str]) -> Sequence[TransferRow]:
        columns = chain_transfers.c
        statement = (
            select(chain_transfers)
            .where(
                columns.network == network,
                or_(columns.recipient.in_(addresses), columns.sender.in_(addresses)),
            )
            .order_by(columns.block.desc(), columns.tx, columns.log)
            .limit(READ_MAX)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return [
            TransferRow(
                *(row.tx, row.log, row.sender, row.recipient),
                *(row.amount, row.block, row.day, row.is_charge),
            )
            for row in rows
        ]

    async def fundings(self, network: str, accounts: Sequence[str]) -> Mapping[str, str]:
        columns = chain_fundings.c
        found: dict[str, str] = {}
        for part in parts(accounts):
            statement = select(columns.account, columns.funder).where(
                columns.network == network, columns.account.in_(part)
            )
            async with self._database.read() as connection:
                rows = (await connection.execute(statement)).all()
            found.update((row.account, row.funder) for row in rows)
        return found

    async def funded(self, network: str, funders: Sequence[str]) -> Mapping[str, int]:
        columns = chain_fundings.c
        found: dict[str, int] = {}
        for part in parts(funders):
            statement = (
                select(columns.funder, func.count())
                .where(columns.network == network, columns.funder.in_(part))
                .group_by(columns.funder)
            )
            async with self._database.read() as connection:
                found.update((f, int(n)) for f, n in (await connection.execute(statement)).all())
            of_kind = (_S.kind == EXCHANGE, _S.network == network, _S.subject.in_(part))
            known = select(_S.subject).where(*of_kind)
            async with self._database.read() as connection:
                for one in (await connection.execute(known)).scalars():
                    found[one] = max(found.get(one, 0), NEUTRAL_FROM)
        return found

    async def elsewhere(
        self,
        network: str,
        payers: Sequence[str],
        side: Sequence[str],
        listed: Collection[str] = (),
        *,
        is_shared: bool = False,
        until_day: int | None = None,
    ) -> Mapping[str, int]:
        return await spent_elsewhere(
            *(self._database, network, payers, side, listed, self._today()),
            is_shared=is_shared,
            until_day=until_day,
        )

    async def ask_files(self, network: str, agent_id: str) -> None:
        await ask_files(self._database, network, agent_id)

    async def proven(self, network: str, agent_id: str) -> Sequence[ProvenPayment]:
        return await proven(self._database, network, agent_id)

    async def ledger(self, network: str, payees: Sequence[str]) -> Sequence[LedgerPayment]:
        return await paid_to(self._database, network, payees)

    async def resold(
        self, network: str, subject_key: str, endpoints: Sequence[str], side: Collection[str]
    ) -> Sequence[LedgerPayment]:
        about = (self._database, network, subject_key, endpoints, side)
        return await resold(*about, to_us(self._clock.now()))

    async def _rows(self, streams: Sequence[Stream]) -> dict[Stream, Row[Any]]:
        found: dict[Stream, Row[Any]] = {}
        for part in parts(streams):
            async with self._database.read() as connection:
                rows = (await connection.execute(select(index_streams).where(these(part)))).all()
            found.update((stream_of(row), row) for row in rows)
        return found

    def _today(self) -> int:
        return int(self._clock.now().timestamp()) // DAY_S

    async def _notes(self, network: str, agent_id: str) -> Mapping[tuple[str, int, bool], int]:
        columns = chain_notes.c
        what = (columns.client, columns.number, columns.is_revocation)
        statement = (
            select(*what, func.count())
            .where(columns.network == network, columns.agent_id == agent_id)
            .group_by(*what)
            .limit(READ_MAX)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return {(client, number, bool(gone)): int(count) for client, number, gone, count in rows}

    async def _finish(
        self, connection: AsyncConnection, streams: Sequence[Stream], batch: Batch
    ) -> None:
        """Mark finished streams as done."""
        kind, network = streams[0].kind, streams[0].network
        if kind == "funding" and batch.fundings:
            found = (_S.kind == kind, _S.network == network, _S.subject.in_(list(batch.fundings)))
            await connection.execute(update(index_streams).where(*found).values(is_done=True))
        if kind != "payments" or not batch.transfers:
            return
        counts: dict[str, int] = {}
        for row in batch.transfers:
            for one in {row.sender, row.recipient}:
                counts[one] = counts.get(one, 0) + 1
        for stream in streams:
            if stream.subject in counts:
                more = _S.rows + counts[stream.subject]
                one = update(index_streams).where(these([stream]))
                whole = or_(_S.is_whole, more > ROWS_MAX)
                values = {"rows": more, "is_done": more > ROWS_MAX, "is_whole": whole}
                await connection.execute(one.values(values))

    async def _add(
        self, connection: AsyncConnection, table: Table, rows: Sequence[dict[str, Any]]
    ) -> None:
        if rows:
            await connection.execute(self._insert(table).on_conflict_do_nothing(), list(rows))


def _require(mine: bool) -> None:  # noqa: FBT001 - the one thing it is asked
    if not mine:
        raise _Overtaken
