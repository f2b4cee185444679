"""Pages of the call log, newest first, and what each call has cost by now."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, RowMapping, and_, case, func, or_, select

from assay.analytics.model import LogFilter, LoggedCall
from assay.analytics.store_call_ids import CallIds, time_of
from assay.analytics.store_call_rows import BOUGHT_BY, call_of
from assay.analytics.store_rollups import short_key
from assay.common.clock import DAY_US
from assay.db.connect import DatabaseKind
from assay.db.engine import Database
from assay.db.schema.everything import calls, payments
from assay.payments.model import PaymentState


class CallPages:
    """Reads the log by position: a page costs the same wherever it begins."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids = CallIds(database)

    async def position(self, operator_id: str, call_id: str) -> tuple[int, int] | None:
        """Time and number of a call of the operator."""
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
        at_most: int,
        offset: int,
    ) -> Sequence[LoggedCall]:
        """As `analytics.ports.AnalyticsStore.logs`."""
        wanted = _indexed(operator_id, which, self._database.kind)
        if first_day is not None:
            wanted.append(calls.c.at_us >= first_day * DAY_US)
        if before is not None:
            at_us, seq = before
            earlier = and_(calls.c.at_us == at_us, calls.c.seq < seq)
            wanted += [calls.c.at_us <= at_us, or_(calls.c.at_us < at_us, earlier)]
        newest_first = (calls.c.at_us.desc(), calls.c.seq.desc())
        # By one index alone: the rows are read for the page only, never for what an offset skips.
        chosen = select(calls.c.seq).where(*wanted).order_by(*newest_first)
        chosen = chosen.limit(at_most).offset(offset)
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
        """What became of the page's payments, and which call each one bought.

        A payment held for a call that failed may have bought a later one: the newest that was not
        a replay has it, so that no money is shown twice.
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
            # What was taken back was charged to nobody.
            case(
                (payments.c.state == PaymentState.REVERSED, None), else_=payments.c.settled_us
            ).label("settled_us"),
            bought.label("bought"),
        ).where(payments.c.operator_id == operator_id, payments.c.id.in_(ids))
        async with self._database.read() as connection:
            found = (await connection.execute(statement)).mappings().all()
        return {row["id"]: row for row in found}


def _indexed(operator_id: str, which: LogFilter, kind: DatabaseKind) -> list[ColumnElement[bool]]:
    """What the indexes know: nothing here needs a row to be read."""
    if which.agent_id is None and which.wrapper_id is None:
        return [calls.c.operator_id == operator_id]
    wanted: list[ColumnElement[bool]] = []
    if which.agent_id is not None:
        wanted.append(calls.c.agent_key == short_key(operator_id, which.agent_id))
    if which.wrapper_id is not None:
        # SQLite keeps no statistics and would take the wrapper's index for both; a sum is in none.
        plain = kind == "postgresql" or which.agent_id is None
        column = calls.c.wrapper_key if plain else calls.c.wrapper_key + 0
        wanted.append(column == short_key(which.wrapper_id))
    return wanted


def _is_meant(row: RowMapping, operator_id: str, which: LogFilter) -> bool:
    """The texts the short keys stand for: nobody ever sees what only collides with them."""
    return (
        row["operator_id"] == operator_id
        and which.agent_id in {None, row["agent_id"] or row["payer"]}
        and which.wrapper_id in {None, row["wrapper_id"]}
    )


def _logged(row: RowMapping, call_id: str, payment: RowMapping | None) -> LoggedCall:
    settled = payment is not None and payment["settled_us"] is not None
    return LoggedCall(
        id=call_id,
        call=call_of(row),
        charged=payment["amount"] if payment and settled and payment["bought"] == row["seq"] else 0,
        transaction=(payment["tx"] or None) if payment else None,
    )
