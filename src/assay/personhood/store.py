"""Proven humans in SQL: one per subject, and one subject per human and scope."""

from sqlalchemy import RowMapping, insert, select
from sqlalchemy.exc import IntegrityError

from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import personhood as proven
from assay.personhood.model import HumanTaken, Personhood


class SqlPersonhoodStore:
    """Stores humans in SQL; implements `personhood.model.PersonhoodStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, personhood: Personhood) -> Personhood:
        known = await self.find(personhood.subject_key)
        if known is not None:
            return _same(known, personhood)
        try:
            async with self._database.write() as connection:
                await connection.execute(insert(proven).values(_row(personhood)))
        except IntegrityError:
            known = await self.find(personhood.subject_key)
            if known is None:
                raise HumanTaken("This human backs another agent already.") from None
            return _same(known, personhood)
        return personhood

    async def find(self, subject_key: str) -> Personhood | None:
        statement = select(proven).where(proven.c.subject_key == subject_key)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _personhood(row)


def _same(known: Personhood, given: Personhood) -> Personhood:
    if (known.scope, known.nullifier) != (given.scope, given.nullifier):
        raise HumanTaken("Another human backs this agent already.")
    return known


def _row(found: Personhood) -> dict[str, object]:
    return {
        "subject_key": found.subject_key,
        "agent_id": found.agent_id,
        "level": found.level,
        "scope": found.scope,
        "nullifier": found.nullifier,
        "verified_us": to_us(found.verified_at),
    }


def _personhood(row: RowMapping) -> Personhood:
    return Personhood(
        subject_key=row["subject_key"],
        agent_id=row["agent_id"],
        level=row["level"],
        scope=row["scope"],
        nullifier=row["nullifier"],
        verified_at=from_us(row["verified_us"]),
    )
