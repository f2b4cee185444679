"""API key records in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import RowMapping, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.model import ApiKey, Scope
from assay.audit.service import AuditEntry
from assay.audit.store import write_note
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import api_keys


class SqlApiKeyStore:
    """Implements `accounts.ports.ApiKeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, key: ApiKey, key_hash: str, note: AuditEntry | None = None, limit: int | None = None
    ) -> bool:
        values = {
            "id": key.id,
            "operator_id": key.operator_id,
            "key_hash": key_hash,
            "prefix": key.prefix,
            "label": key.label,
            "revoked": key.revoked,
            "last_used_us": None if key.last_used is None else to_us(key.last_used),
            "created_us": to_us(key.created_at),
            "scopes": " ".join(sorted(key.scopes)),
            "expires_us": None if key.expires_at is None else to_us(key.expires_at),
        }
        async with self._database.write() as connection:
            if limit is not None and not await self._make_room(connection, key, limit):
                return False
            await connection.execute(insert(api_keys).values(values))
            await write_note(connection, note)
        return True

    async def _make_room(self, connection: AsyncConnection, key: ApiKey, limit: int) -> bool:
        """Whether one more is allowed; of revoked keys the newest `limit` stay."""
        await self._database.lock(connection, f"keys {key.operator_id}")
        mine = api_keys.c.operator_id == key.operator_id
        active = select(func.count()).select_from(api_keys).where(mine, ~api_keys.c.revoked)
        if (await connection.execute(active)).scalar_one() >= limit:
            return False
        old = (
            select(api_keys.c.id)
            .where(mine, api_keys.c.revoked)
            .order_by(api_keys.c.created_us.desc(), api_keys.c.id.desc())
            .offset(limit)
            .limit(limit)
        )
        await connection.execute(delete(api_keys).where(api_keys.c.id.in_(old)))
        return True

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        statement = select(api_keys).where(api_keys.c.key_hash == key_hash)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _key(row)

    async def recent_hashes(self, limit: int) -> Sequence[str]:
        statement = (
            select(api_keys.c.key_hash)
            .where(~api_keys.c.revoked, api_keys.c.last_used_us.is_not(None))
            .order_by(api_keys.c.last_used_us.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            return list((await connection.execute(statement)).scalars())

    async def list(self, operator_id: str) -> Sequence[ApiKey]:
        statement = (
            select(api_keys)
            .where(api_keys.c.operator_id == operator_id)
            .order_by(api_keys.c.created_us.desc(), api_keys.c.id.desc())
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_key(row) for row in rows]

    async def revoke(self, operator_id: str, key_id: str, note: AuditEntry | None = None) -> bool:
        statement = (
            update(api_keys)
            .where(api_keys.c.operator_id == operator_id, api_keys.c.id == key_id)
            .values(revoked=True)
            .returning(api_keys.c.id)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).one_or_none() is None:
                return False
            await write_note(connection, note)
        return True

    async def touch(self, last_used: Mapping[str, datetime]) -> None:
        if not last_used:
            return
        column = api_keys.c.last_used_us
        statement = (
            update(api_keys)
            .where(
                api_keys.c.id == bindparam("key_id"),
                or_(column.is_(None), column < bindparam("used_us")),
            )
            .values(last_used_us=bindparam("used_us"))
        )
        # In one order everywhere: two processes touching the same keys must not lock crosswise.
        rows = [{"key_id": k, "used_us": to_us(at)} for k, at in sorted(last_used.items())]
        async with self._database.write() as connection:
            await connection.execute(statement, rows)


def _key(row: RowMapping) -> ApiKey:
    used, expires = row["last_used_us"], row["expires_us"]
    return ApiKey(
        id=row["id"],
        operator_id=row["operator_id"],
        prefix=row["prefix"],
        label=row["label"],
        revoked=row["revoked"],
        last_used=None if used is None else from_us(used),
        created_at=from_us(row["created_us"]),
        scopes=frozenset(map(Scope, row["scopes"].split())),
        expires_at=None if expires is None else from_us(expires),
    )
