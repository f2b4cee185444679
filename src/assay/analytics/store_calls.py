"""Stores the call log in SQL, and restores calls that a crash kept out of it.

Ids of calls are UUIDv7 (RFC 9562), made of a row's time and of its number under a key. The number
counts the calls of all tenants, so nobody may see it. Under a key that is drawn with the table it
gives the id's 62 random bits. They are always the same for a row, and need not be stored.

The log is flushed every second, the ledger at every step. If a process is killed, the calls of some
payments are in no row. They are written again from the ledger (ADR 0021), so the totals of calls
are never below what was settled.
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Final, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, RowMapping, and_, case, exists, func, or_, select, text
from sqlalchemy.exc import IntegrityError

from assay.analytics.model import (
    BatchId,
    CallKind,
    CallLogEntry,
    CallsRefused,
    LogFilter,
    LoggedCall,
    bound,
)
from assay.analytics.rollup import RollupTally, tally_calls
from assay.analytics.store_rollups import RollupWriter, short_key
from assay.common.clock import DAY_US, Clock
from assay.common.errors import InvalidRequest
from assay.db.connect import DatabaseKind
from assay.db.engine import Database, DataRefused, from_us, to_us
from assay.db.schema.analytics import call_id_key
from assay.db.schema.everything import calls, paid_responses, payments, wrappers
from assay.db.sql_transaction import SqlTransaction
from assay.payments.model import PaymentState

_RANDOM_BITS = 62
_FRACTION = 4096
"""Of the 12 bits behind the milliseconds. Source: RFC 9562, section 6.2, method 3."""


class CallIds:
    """Makes the ids, with the key of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._key: bytes | None = None

    async def ready(self) -> None:
        """Read the key, once. Raises `Unavailable`."""
        if self._key is None:
            async with self._database.read() as connection:
                row = (await connection.execute(select(call_id_key.c.key))).one()
            self._key = bytes(row[0])

    def of(self, at_us: int, seq: int) -> str:
        """Return the id of a row; await `ready` before."""
        if self._key is None:
            raise RuntimeError("the key of the call ids was not read")
        digest = hmac.digest(self._key, seq.to_bytes(8), hashlib.sha256)
        ms, us = divmod(at_us, 1000)
        bits = ms << 80 | 7 << 76 | us * _FRACTION // 1000 << 64 | 0b10 << _RANDOM_BITS
        return str(UUID(int=bits | int.from_bytes(digest[:8]) >> 64 - _RANDOM_BITS))


def time_of(call_id: str) -> int | None:
    """Return the microseconds since 1970 of a call's id; None for any other id."""
    try:
        bits = UUID(call_id).int
    except ValueError:
        return None
    fraction = bits >> 64 & _FRACTION - 1
    return (bits >> 80) * 1000 + -(-fraction * 1000 // _FRACTION)


AT_ONCE: Final = (250, 25, 1)
"""Rows of one statement: at most 24 values each, and SQLite takes 32,766."""

BOUGHT_BY: Final = and_(
    calls.c.payment_id == payments.c.id,
    # SQLite keeps no statistics and would read all calls of the operator; no index has a sum.
    calls.c.operator_id + "" == payments.c.operator_id,
    calls.c.outcome != "replayed",
)
"""The condition that a call is what a payment was for. A replay is not, nor is another seller's
call that was not served."""

_KIND: Final = tuple(f.name for f in fields(CallKind) if f.name != "is_bounded")
_OTHERS: Final = frozenset({"kind", "at", "payment_id", "is_sale"})
_CALL: Final = tuple(f.name for f in fields(CallLogEntry) if f.name not in _OTHERS)
_KEYS: Final = ("agent_key", "wrapper_key")

_of_kind = attrgetter(*_KIND)
_of_call = attrgetter(*_CALL)

_Columns: TypeAlias = tuple[str, ...]
_Timed: TypeAlias = Sequence[tuple[int, CallLogEntry]]
"""Calls, each with its time in microseconds since 1970."""


def _call_of(row: RowMapping) -> CallLogEntry:
    """Return the call of a row."""
    kind = CallKind(**{name: row[name] for name in _KIND}, is_bounded=True)
    plain = {name: row[name] for name in (*_CALL, "payment_id")}
    return CallLogEntry(kind=kind, at=from_us(row["at_us"]), **plain)


def agent_key(kind: CallKind) -> int | None:
    """Return what the index by agent holds of a call; None for a call of nobody."""
    return None if kind.agent is None else short_key(kind.operator_id, kind.agent)


def _insertions(
    kind: DatabaseKind, timed: _Timed
) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Return statements, each with its sets of values, for the driver's `executemany`.

    The toolkit's own costs five times as much.
    """
    numbered = kind == "postgresql"
    for columns, values in _by_columns(timed, has_booleans=numbered).items():
        width, at = len(columns), 0
        for rows in (1,) if numbered else AT_ONCE:
            size = rows * width
            end = at + (len(values) - at) // size * size
            if end > at:
                sets = [tuple(values[start : start + size]) for start in range(at, end, size)]
                yield _insert(columns, rows, numbered=numbered), sets
                at = end


def _by_columns(timed: _Timed, *, has_booleans: bool) -> dict[_Columns, list[object]]:
    """Return the values of all rows in a row, for each set of columns that have a value."""
    found: dict[_Columns, list[object]] = {}
    kinds: dict[int, tuple[list[object], list[object], list[object]]] = {}
    for at_us, call in timed:
        known = kinds.get(id(call.kind))
        if known is None:
            known = _prepared(call.kind, found, has_booleans=has_booleans)
            kinds[id(call.kind)] = known
        own, free, bought = known
        if call.payment_id is None:
            values = free
        else:
            values = bought
            values.append(call.payment_id)
        values.append(at_us)
        values += _of_call(call)
        values += own
    return found


def _prepared(
    kind: CallKind, found: dict[_Columns, list[object]], *, has_booleans: bool
) -> tuple[list[object], list[object], list[object]]:
    """Return a kind's own values, and its tables: for calls without and with a payment."""
    named = [*zip(_KIND, _of_kind(kind), strict=True)]
    named += zip(_KEYS, (agent_key(kind), short_key(kind.wrapper_id)), strict=True)
    if not has_booleans:
        named = [(name, int(v) if isinstance(v, bool) else v) for name, v in named]
    given = [(name, value) for name, value in named if value is not None]
    columns = ("at_us", *_CALL, *(name for name, _ in given))
    free = found.setdefault(columns, [])
    bought = found.setdefault(("payment_id", *columns), [])
    return [value for _, value in given], free, bought


@lru_cache(maxsize=256)
def _insert(columns: _Columns, rows: int, *, numbered: bool) -> str:
    values = (f"${n}" if numbered else "?" for n in range(1, len(columns) + 1))
    row = f"({', '.join(values)})"
    return f"INSERT INTO calls ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608 - our own names


class CallPages:
    """Reads the log by position: a page costs the same wherever it begins."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids = CallIds(database)

    async def position(self, operator_id: str, call_id: str) -> tuple[int, int] | None:
        """Return time and number of a call of the operator."""
        at_us = time_of(call_id)
        if at_us is None:
            return None
        statement = select(calls.c.seq).where(
            calls.c.operator_id == operator_id, calls.c.at_us == at_us
        )
        await self._ids.ready()
        async with self._database.read() as connection:
            found = list((await connection.execute(statement)).scalars())
        of_it = (seq for seq in found if self._ids.of(at_us, seq) == call_id.lower())
        return next(((at_us, seq) for seq in of_it), None)

    async def page(
        self,
        operator_id: str,
        which: LogFilter,
        first_day: int | None,
        before: tuple[int, int] | None,
        limit: int,
        offset: int,
    ) -> Sequence[LoggedCall]:
        """Do what `analytics.store_analytics.SqlAnalyticsStore.logs` does."""
        wanted = _indexed(operator_id, which, self._database.kind)
        if first_day is not None:
            wanted.append(calls.c.at_us >= first_day * DAY_US)
        if before is not None:
            at_us, seq = before
            earlier = and_(calls.c.at_us == at_us, calls.c.seq < seq)
            wanted += [calls.c.at_us <= at_us, or_(calls.c.at_us < at_us, earlier)]
        newest_first = (calls.c.at_us.desc(), calls.c.seq.desc())
        # By one index: rows are read for the page only, never for what an offset skips.
        chosen = select(calls.c.seq).where(*wanted).order_by(*newest_first)
        chosen = chosen.limit(limit).offset(offset)
        statement = select(calls).where(calls.c.seq.in_(chosen)).order_by(*newest_first)
        async with self._database.read() as connection:
            found = (await connection.execute(statement)).mappings().all()
        rows = [row for row in found if _is_meant(row, operator_id, which)]
        settled = await self._settled(operator_id, rows)
        await self._ids.ready()
        return [
            _logged(row, self._ids.of(row["at_us"], row["seq"]), settled.get(row["payment_id"]))
            for row in rows
        ]

    async def _settled(
        self, operator_id: str, rows: Sequence[RowMapping]
    ) -> Mapping[str, RowMapping]:
        """Return the state of the page's payments, and which call each one bought.

        A payment that was held for a failed call may have bought a later one. The newest call that
        was not a replay has it, so that no money is shown twice.
        """
        ids = {row["payment_id"] for row in rows if row["payment_id"] is not None}
        if not ids:
            return {}
        bought = (
            select(func.max(calls.c.seq)).where(BOUGHT_BY).correlate(payments).scalar_subquery()
        )
        statement = select(
            payments.c.id,
            payments.c.amount,
            payments.c.tx,
            # Money that was taken back was charged to nobody.
            case(
                (payments.c.state == PaymentState.REVERSED, None), else_=payments.c.settled_us
            ).label("settled_us"),
            bought.label("bought"),
        ).where(payments.c.operator_id == operator_id, payments.c.id.in_(ids))
        async with self._database.read() as connection:
            found = (await connection.execute(statement)).mappings().all()
        return {row["id"]: row for row in found}


def _indexed(operator_id: str, which: LogFilter, kind: DatabaseKind) -> list[ColumnElement[bool]]:
    """Return what the indexes have: no row needs to be read."""
    if which.agent_id is None and which.wrapper_id is None:
        return [calls.c.operator_id == operator_id]
    wanted: list[ColumnElement[bool]] = []
    if which.agent_id is not None:
        wanted.append(calls.c.agent_key == short_key(operator_id, which.agent_id))
    if which.wrapper_id is not None:
        # SQLite keeps no statistics and would use the wrapper's index for both; none has a sum.
        plain = kind == "postgresql" or which.agent_id is None
        column = calls.c.wrapper_key if plain else calls.c.wrapper_key + 0
        wanted.append(column == short_key(which.wrapper_id))
    return wanted


def _is_meant(row: RowMapping, operator_id: str, which: LogFilter) -> bool:
    """Return whether the texts match: the short keys of an index may collide."""
    return (
        row["operator_id"] == operator_id
        and which.agent_id in {None, row["agent_id"] or row["payer"]}
        and which.wrapper_id in {None, row["wrapper_id"]}
    )


def _logged(row: RowMapping, call_id: str, payment: RowMapping | None) -> LoggedCall:
    settled = payment is not None and payment["settled_us"] is not None
    return LoggedCall(
        id=call_id,
        call=_call_of(row),
        charged=payment["amount"] if payment and settled and payment["bought"] == row["seq"] else 0,
        transaction=(payment["tx"] or None) if payment else None,
    )


_REFUSALS = (DataRefused, InvalidRequest, IntegrityError, OverflowError, TypeError)

_ONCE = text(
    "INSERT INTO state (key, value, expires_us) VALUES (:key, :value, :expires_us)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_us = excluded.expires_us"
    " WHERE state.value <> excluded.value RETURNING key"
)
"""The last batch of a writer. If it is written again, the second write waits for the first to
end."""

_KEPT_DAYS = 7
"""Days without a batch after which a writer counts as ended."""


class SqlCallStore:
    """Durable rows of calls."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rollups = RollupWriter(database.kind)

    async def add(self, batch: Sequence[CallLogEntry], batch_id: BatchId | None = None) -> None:
        """Store all of them, and what they add to the analytics, in one transaction.

        A batch with an id is stored once: written again, right after, it adds nothing. Raises
        `CallsRefused`, with nothing stored, and `Unavailable`, with the batch stored or not.
        """
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
        statements = list(_insertions(self._database.kind, timed))

        async def work(transaction: SqlTransaction) -> None:
            if batch_id is not None and not await _is_new(transaction, batch_id, timed[-1][0]):
                return
            for statement, sets in statements:
                await transaction.connection.exec_driver_sql(statement, sets)
            await self._rollups.write(transaction.connection, tally)

        await self._database.change(work)

    async def recent(self, operator_id: str, limit: int) -> Sequence[CallLogEntry]:
        """Return the operator's newest calls."""
        statement = (
            select(calls)
            .where(calls.c.operator_id == operator_id)
            .order_by(calls.c.at_us.desc(), calls.c.seq.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_call_of(row) for row in rows]


async def _is_new(transaction: SqlTransaction, batch_id: BatchId, at_us: int) -> bool:
    """Return whether this transaction is the first with the batch."""
    values = {
        "key": f"calls written by {batch_id.writer}",
        "value": str(batch_id.number),
        "expires_us": at_us + _KEPT_DAYS * DAY_US,
    }
    return bool(await transaction.rows(_ONCE, values))


GRACE: Final = timedelta(seconds=10)
"""How long the process that served a call has for its row: it flushes every second."""

OVERLAP_US: Final = 30_000_000
"""How far each pass looks back: several processes commit payments out of order."""

REMEMBERED_US: Final = 300_000_000
"""How far a pass may be ahead of its stored position."""

MISSING_AT_ONCE: Final = 5000
"""Payments of one question."""

_KEY: Final = "calls recovered until"
_NEVER_US: Final = 2**62
_READ = text("SELECT value FROM state WHERE key = :key")
_WRITE = text(
    "INSERT INTO state (key, value, expires_us) VALUES (:key, :value, :expires_us)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)

_HAS_NO_ROW: Final = ~exists().where(BOUGHT_BY)


class SqlMissingCalls:
    """Finds settled payments without a call, and adds the call."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rollups = RollupWriter(database.kind)
        self._until_us: int | None = None
        self._written_us = 0

    async def restore(self) -> int:
        """Add every row that is missing; return how many there were.

        Two processes never add the same one. A payment that its process may still be serving is
        left for later.
        """
        now = self._clock.now()
        if self._until_us is None:
            self._until_us = self._written_us = await recovered_until_us(self._database) or 0
        horizon_us, at_us, restored = to_us(now - GRACE), self._until_us - OVERLAP_US, 0
        while at_us < horizon_us:
            next_us = await self._end_of_slice(at_us, horizon_us)
            restored += await self._add(await self._missing(at_us, next_us, to_us(now)))
            at_us = next_us
        self._until_us = min(horizon_us, await self._oldest_served_us(to_us(now)))
        if self._until_us - self._written_us > REMEMBERED_US:
            await self._remember(self._until_us)
        return restored

    async def _end_of_slice(self, after_us: int, horizon_us: int) -> int:
        """Return until when at most `MISSING_AT_ONCE` payments settled."""
        slice_ = (
            select(payments.c.settled_us)
            .where(payments.c.settled_us > after_us, payments.c.settled_us <= horizon_us)
            .order_by(payments.c.settled_us)
            .limit(1)
            .offset(MISSING_AT_ONCE - 1)
        )
        async with self._database.read() as connection:
            last = (await connection.execute(slice_)).scalar_one_or_none()
        return horizon_us if last is None else int(last)

    async def _missing(self, after_us: int, until_us: int, now_us: int) -> Sequence[str]:
        statement = select(payments.c.id).where(
            payments.c.settled_us > after_us,
            payments.c.settled_us <= until_us,
            or_(payments.c.state != PaymentState.SETTLED, payments.c.lease_us <= now_us),
            _HAS_NO_ROW,
        )
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalars().all()

    async def _oldest_served_us(self, now_us: int) -> int:
        """Return when the oldest payment settled whose call is under way."""
        statement = select(func.min(payments.c.settled_us)).where(_is_served(now_us))
        async with self._database.read() as connection:
            found = (await connection.execute(statement)).scalar_one()
        return _NEVER_US if found is None else int(found) - 1

    async def _add(self, ids: Sequence[str]) -> int:
        if not ids:
            return 0
        statement = (
            select(
                payments,
                wrappers.c.path,
                wrappers.c.method,
                paid_responses.c.status,
                func.length(paid_responses.c.body).label("response_bytes"),
            )
            .outerjoin(wrappers, wrappers.c.id == payments.c.wrapper_id)
            .outerjoin(paid_responses, paid_responses.c.payment_id == payments.c.id)
            .where(payments.c.id.in_(ids), _HAS_NO_ROW)
            .order_by(payments.c.settled_us)
        )
        async with self._database.write() as connection:
            await self._database.lock(connection, _KEY)
            rows = (await connection.execute(statement)).mappings().all()
            timed = [(int(row["settled_us"]), _call(row)) for row in rows]
            tally = tally_calls(timed)
            for insertion, sets in _insertions(self._database.kind, timed):
                await connection.exec_driver_sql(insertion, sets)
            await self._rollups.write(connection, tally)
        self._rollups.written(tally)
        return len(timed)

    async def _remember(self, until_us: int) -> None:
        values = {"key": _KEY, "value": str(until_us), "expires_us": _NEVER_US}
        async with self._database.write() as connection:
            await connection.execute(_WRITE, values)
        self._written_us = until_us


async def recovered_until_us(database: Database) -> int | None:
    """Return until when missing calls have been searched for; None if they never were."""
    async with database.read() as connection:
        found = (await connection.execute(_READ, {"key": _KEY})).scalar_one_or_none()
    return None if found is None else int(found)


def _is_served(now_us: int) -> ColumnElement[bool]:
    """Return the condition that a process may still be serving a settled payment's call."""
    return and_(payments.c.state == PaymentState.SETTLED, payments.c.lease_us > now_us)


def _call(row: RowMapping) -> CallLogEntry:
    """Return what the ledger and the kept answer know of a call. Status 0 is unknown."""
    kind = CallKind(
        row["operator_id"],
        row["wrapper_id"],
        row["method"] or "",
        row["path"] or "",
        agent_id=row["agent_id"] or None,
        payer=row["payer"],
    )
    call = CallLogEntry(
        kind=kind,
        at=from_us(row["settled_us"]),
        request_id="",
        client="",
        status=row["status"] or 0,
        outcome="recovered",
        latency_us=0,
        response_bytes=row["response_bytes"] or 0,
        cost=row["amount"],
        payment_id=row["id"],
    )
    bound(call)
    return call
