"""Stores commitments to the seeds of visits in SQL."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, insert, select

from assay.common.clock import Clock
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import visit_seeds

_S = visit_seeds.c


class SqlSeeds:
    """Stores commitments in SQL; implements `probing.unannounced.Seeds`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def keep(self, subject_key: str, commitment: str) -> None:
        now_us = to_us(self._clock.now())
        row = {"commitment": commitment, "subject_key": subject_key, "at_us": now_us}
        async with self._database.write() as connection:
            await connection.execute(insert(visit_seeds).values(row))

    async def since(self, commitments: Sequence[str]) -> dict[str, datetime]:
        statement = select(_S.commitment, _S.at_us).where(_S.commitment.in_(commitments))
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).all()
        return {row.commitment: from_us(row.at_us) for row in rows}

    async def remove(self, before: datetime, at_most: int) -> int:
        """Remove those from before then; return how many."""
        old = select(_S.commitment).where(_S.at_us < to_us(before)).limit(at_most)
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of seeds")
            gone = await connection.execute(delete(visit_seeds).where(_S.commitment.in_(old)))
            return gone.rowcount
