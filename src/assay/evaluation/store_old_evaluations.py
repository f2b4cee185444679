"""Removes the oldest evaluations of a subject with their snapshots.

Its chain continues from the hash of the last removed snapshot. Only the oldest are removed, so the
rest is always the newest part of a chain.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from typing import Final

from sqlalchemy import delete, text

from assay.db.engine import Database, to_us
from assay.db.schema.everything import evaluations, snapshots

DUE: Final = text(
    "SELECT subject_key FROM evaluations GROUP BY subject_key"
    " HAVING COUNT(*) > :kept AND MIN(evaluated_us) < :before_us LIMIT :at_most"
)
OF_SUBJECT: Final = text(
    "SELECT seq, evaluation_id, snapshot_hash, encrypted_data_uri, taken_us FROM snapshots"
    " WHERE subject_key = :key AND seq < (SELECT seq FROM snapshots WHERE subject_key = :key"
    " ORDER BY seq DESC LIMIT 1 OFFSET :newer) ORDER BY seq LIMIT :at_most"
)
_GO_ON_FROM: Final = text(
    "INSERT INTO removed_snapshots (subject_key, snapshot_hash) VALUES (:key, :last)"
    " ON CONFLICT (subject_key) DO UPDATE SET snapshot_hash = excluded.snapshot_hash"
)


class SqlOldEvaluations:
    """Removes a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, kept: int, before: datetime, at_most: int) -> tuple[int, Sequence[str]]:
        """Remove evaluations older than `before`, except the `kept` newest of each subject.

        Return how many, and the addresses of their snapshots' encrypted data.
        """
        values = {"kept": kept, "before_us": to_us(before), "at_most": at_most}
        async with self._database.read() as connection:
            keys = (await connection.execute(DUE, values)).scalars().all()
        count, uris = 0, list[str]()
        for key in keys:
            if count == at_most:
                break
            gone, theirs = await self._remove(key, kept, to_us(before), at_most - count)
            count += gone
            uris += theirs
        return count, uris

    async def _remove(
        self, key: str, kept: int, before_us: int, at_most: int
    ) -> tuple[int, Sequence[str]]:
        values = {"key": key, "newer": kept - 1, "at_most": at_most}
        async with self._database.write() as connection:
            await self._database.lock(connection, key)  # Additions to the chain take it too.
            found = (await connection.execute(OF_SUBJECT, values)).all()
            old = list(takewhile(lambda row: row.taken_us < before_us, found))
            if old:
                mine = (snapshots.c.subject_key == key, snapshots.c.seq <= old[-1].seq)
                await connection.execute(delete(snapshots).where(*mine))
                ids = [row.evaluation_id for row in old]
                await connection.execute(delete(evaluations).where(evaluations.c.id.in_(ids)))
                last = {"key": key, "last": old[-1].snapshot_hash}
                await connection.execute(_GO_ON_FROM, last)
        return len(old), [row.encrypted_data_uri for row in old if row.encrypted_data_uri]
