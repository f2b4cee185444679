"""The call log in SQL."""

from collections.abc import Sequence
from operator import attrgetter

from sqlalchemy import select

from assay.calls.model import Call
from assay.calls.rollup import tally_calls
from assay.infra.sql.engine import Database, from_us, to_us
from assay.infra.sql.rollups import RollupWriter, short_key
from assay.infra.sql.tables import calls


class SqlCallStore:
    """Implements `calls.ports.CallStore`; the roll-ups are written with the rows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        columns = ("at_us", "agent_key", "wrapper_key", *_PLAIN)
        numbered = database.kind == "postgresql"
        values = (f"${n}" if numbered else "?" for n in range(1, len(columns) + 1))
        self._insert = f"INSERT INTO calls ({', '.join(columns)}) VALUES ({', '.join(values)})"  # noqa: S608 - our own names
        self._rollups = RollupWriter(database.kind)

    async def add(self, batch: Sequence[Call]) -> None:
        """By the driver's own `executemany`: the toolkit's would cost five times as much a row."""
        times = [to_us(call.at) for call in batch]
        rows = [
            (at_us, agent_key(call), short_key(call.wrapper_id), *_PLAIN_OF(call))
            for at_us, call in zip(times, batch, strict=True)
        ]
        tally = tally_calls(zip(times, batch, strict=True))
        async with self._database.write() as connection:
            await connection.exec_driver_sql(self._insert, rows)
            await self._rollups.write(connection, tally)
        self._rollups.written(tally)

    async def recent(self, operator_id: str, at_most: int) -> Sequence[Call]:
        statement = (
            select(calls)
            .where(calls.c.operator_id == operator_id)
            .order_by(calls.c.at_us.desc(), calls.c.seq.desc())
            .limit(at_most)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [
            Call(at=from_us(row["at_us"]), **{name: row[name] for name in _PLAIN}) for row in rows
        ]


def agent_key(call: Call) -> int | None:
    """What the index by agent holds of a call; None for a call of nobody."""
    return None if call.agent is None else short_key(call.operator_id, call.agent)


_PLAIN = tuple(name for name in Call.__dataclass_fields__ if name != "at")
_PLAIN_OF = attrgetter(*_PLAIN)
