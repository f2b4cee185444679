"""Stores until when keys of versions before ES256 are published.

A database that such a version may have used has one row, made by its migration; any other has none.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select, update

from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import earlier_keys


class SqlEarlierKeys:
    """Stored once, by the first process that signs with ES256."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, kids: Sequence[str], until: datetime) -> None:
        """Publish these keys from now until then; later calls change nothing."""
        untouched = earlier_keys.c.until_us.is_(None)
        async with self._database.read() as connection:  # mostly there is nothing to do
            if (
                await connection.execute(select(earlier_keys.c.id).where(untouched))
            ).first() is None:
                return
        values = {"kids": " ".join(kids), "until_us": to_us(until)}
        async with self._database.write() as connection:
            await connection.execute(update(earlier_keys).where(untouched).values(values))

    async def find(self) -> Mapping[str, datetime]:
        """Return until when the key of an id is published."""
        async with self._database.read() as connection:
            rows = (await connection.execute(select(earlier_keys))).mappings().all()
        return {
            kid: from_us(row["until_us"])
            for row in rows
            if row["until_us"] is not None
            for kid in row["kids"].split()
        }
