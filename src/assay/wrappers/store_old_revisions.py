"""Removes what wrappers have been; never what is in force, was asked for of late, or was paid."""

from datetime import datetime
from typing import Final

from sqlalchemy import text

from assay.db.engine import Database, to_us

REMOVE: Final = text(
    "DELETE FROM wrapper_revisions WHERE (wrapper_id, revision) IN ("
    "SELECT r.wrapper_id, r.revision FROM wrappers w"
    " JOIN wrapper_revisions r ON r.wrapper_id = w.id"
    " AND r.revision > 1 AND r.revision <= w.revision - :kept"
    " WHERE w.revision > :kept AND r.until_us < :before_us"
    " AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.wrapper_id = r.wrapper_id"
    " AND p.wrapper_revision = r.revision AND p.wrapper_revision > 1) LIMIT :at_most)"
)
"""The last condition of the payments is that of their index: most are of a first revision."""


class SqlOldRevisions:
    """Removes a bounded number at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, kept: int, before: datetime, at_most: int) -> int:
        """Remove revisions that ended before then, but for the first and newest; how many.

        `kept` newest of each wrapper stay, and every one that a payment was claimed under.
        """
        values = {"kept": kept, "before_us": to_us(before), "at_most": at_most}
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of revisions")
            return (await connection.execute(REMOVE, values)).rowcount
