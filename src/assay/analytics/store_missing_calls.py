"""Rows of the call log that a crash lost, written anew from the ledger (ADR 0021).

The log is flushed every second, the ledger at every step: a process that is killed leaves payments
whose call is in no row. The totals of calls are then never below what was settled.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import ColumnElement, RowMapping, and_, exists, func, or_, select, text

from assay.analytics.model import CallKind, CallLogEntry, bound
from assay.analytics.rollup import tally_calls
from assay.analytics.store_calls import BOUGHT_BY, insertions
from assay.analytics.store_rollups import RollupWriter
from assay.common.clock import Clock
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import paid_responses, payments, wrappers
from assay.payments.model import PaymentState

GRACE: Final = timedelta(seconds=10)
"""How long the process that served a call has for its row: it flushes every second."""

OVERLAP_US: Final = 30_000_000
"""How far each pass looks back: payments of several processes are committed out of order."""

REMEMBERED_US: Final = 300_000_000
"""How far a pass may be ahead of what is written down of it."""

AT_ONCE: Final = 5000
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
        """Add every row that is missing; how many there were.

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
        """Up to when at most `AT_ONCE` payments settled."""
        slice_ = (
            select(payments.c.settled_us)
            .where(payments.c.settled_us > after_us, payments.c.settled_us <= horizon_us)
            .order_by(payments.c.settled_us)
            .limit(1)
            .offset(AT_ONCE - 1)
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
        """When the oldest payment settled whose call is under way."""
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
            for insertion, sets in insertions(self._database.kind, timed):
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
    """Up to when missing calls have been looked for for good; None where they never were."""
    async with database.read() as connection:
        found = (await connection.execute(_READ, {"key": _KEY})).scalar_one_or_none()
    return None if found is None else int(found)


def _is_served(now_us: int) -> ColumnElement[bool]:
    """Whether some process may still be answering the call of a payment that has settled."""
    return and_(payments.c.state == PaymentState.SETTLED, payments.c.lease_us > now_us)


def _call(row: RowMapping) -> CallLogEntry:
    """What the ledger and the kept answer know of a call. A status of 0 is one nobody knows."""
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
