"""The call log in SQL."""

from collections.abc import Sequence

from sqlalchemy import insert, select

from assay.calls.model import Call
from assay.infra.sql.engine import Database, from_us, to_us
from assay.infra.sql.tables import calls


class SqlCallStore:
    """Implements `calls.ports.CallStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, batch: Sequence[Call]) -> None:
        rows = [_row(call) for call in batch]
        async with self._database.write() as connection:
            await connection.execute(insert(calls), rows)

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


_PLAIN = tuple(name for name in Call.__dataclass_fields__ if name != "at")


def _row(call: Call) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(call, name) for name in _PLAIN}
    row["at_us"] = to_us(call.at)
    return row
