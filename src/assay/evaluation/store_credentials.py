"""Stores deposited credentials in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import RowMapping, and_, delete, func, insert, or_, select, update

from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import service_credentials
from assay.evaluation.credentials import DepositedCredential
from assay.probing.deposited_access import EntryOutcome

_C: Final = service_credentials.c


class SqlServiceCredentials:
    """Stores credentials in SQL; implements `evaluation.credentials.DepositStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, made: DepositedCredential, per_agent: int, per_owner: int) -> bool:
        of_agent = _C.subject_key == made.subject_key
        row = {
            "id": made.id,
            "subject_key": made.subject_key,
            "chain": made.chain,
            "agent_id": made.agent_id,
            "owner": made.owner,
            "url": made.url,
            "place": made.place,
            "name": made.name,
            "sealed": made.sealed,
            "created_us": to_us(made.created_at),
        }
        async with self._database.write() as connection:
            # Two concurrent deposits must not both get the last place of the agent or the owner.
            await self._database.lock(connection, f"credentials of {made.owner}")
            await self._database.lock(connection, f"credentials of {made.subject_key}")
            former = delete(service_credentials).where(of_agent, _C.owner != made.owner)
            await connection.execute(former)
            others = or_(_C.subject_key != made.subject_key, _C.url != made.url)
            kept = select(func.count()).select_from(service_credentials).where(others)
            mine = (await connection.execute(kept.where(of_agent))).scalar_one()
            owned = (await connection.execute(kept.where(_C.owner == made.owner))).scalar_one()
            if mine >= per_agent or owned >= per_owner:
                return False
            same = delete(service_credentials).where(of_agent, _C.url == made.url)
            await connection.execute(same)
            await connection.execute(insert(service_credentials).values(row))
        return True

    async def of_agent(
        self, subject_key: str, owner: str, before: datetime
    ) -> Sequence[DepositedCredential]:
        found = (
            select(service_credentials)
            .where(_C.subject_key == subject_key)
            .order_by(_C.created_us, _C.id)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(found)).mappings().all()
        before_us = to_us(before)
        if any(row["owner"] != owner and row["created_us"] < before_us for row in rows):
            gone = delete(service_credentials).where(
                *(_C.subject_key == subject_key, _C.owner != owner, _C.created_us < before_us)
            )
            async with self._database.write() as connection:
                await connection.execute(gone)
        return [_read(row) for row in rows if row["owner"] == owner]

    async def remove(self, subject_key: str, credential_id: str) -> bool:
        gone = delete(service_credentials).where(
            _C.subject_key == subject_key, _C.id == credential_id
        )
        async with self._database.write() as connection:
            return bool((await connection.execute(gone)).rowcount)

    async def note(self, outcomes: Mapping[str, EntryOutcome], at: datetime) -> None:
        async with self._database.write() as connection:
            for credential_id, outcome in sorted(outcomes.items()):
                known = update(service_credentials).where(_C.id == credential_id)
                values = {"used_us": to_us(at), "outcome": outcome}
                await connection.execute(known.values(values))

    async def after(self, last_id: str, limit: int) -> Sequence[DepositedCredential]:
        found = select(service_credentials).where(_C.id > last_id).order_by(_C.id).limit(limit)
        async with self._database.read() as connection:
            rows = (await connection.execute(found)).mappings().all()
        return [_read(row) for row in rows]

    async def reseal(self, credential_id: str, old: bytes, sealed: bytes) -> None:
        known = update(service_credentials).where(_C.id == credential_id, _C.sealed == old)
        async with self._database.write() as connection:
            await connection.execute(known.values(sealed=sealed))

    async def remove_unused(self, before: datetime, limit: int) -> int:
        """Erase those that no visit has used since then; return how many."""
        before_us = to_us(before)
        never = and_(_C.used_us.is_(None), _C.created_us < before_us)
        old = select(_C.id).where(or_(_C.used_us < before_us, never)).limit(limit)
        async with self._database.write() as connection:
            await self._database.lock(connection, "retention of service credentials")
            gone = delete(service_credentials).where(_C.id.in_(old))
            return (await connection.execute(gone)).rowcount


def _read(row: RowMapping) -> DepositedCredential:
    used_us = row["used_us"]
    return DepositedCredential(
        *(row["id"], row["subject_key"], row["chain"], row["agent_id"], row["owner"]),
        *(row["url"], row["place"], row["name"], bytes(row["sealed"])),
        from_us(row["created_us"]),
        None if used_us is None else from_us(used_us),
        row["outcome"],
    )
