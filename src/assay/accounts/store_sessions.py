"""Dashboard sessions in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.clients import Hashes
from assay.accounts.model import DashboardSession, Operator
from assay.accounts.store_operators import operator_of, remember_origin
from assay.audit.service import AuditEntry
from assay.audit.store import write_note
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import account_codes, dashboard_sessions, operators

PURGE_MAX = 5000
"""Rows removed at a time."""

CODES_KEPT = timedelta(days=1)


class SqlSessionStore:
    """Implements `accounts.credential_ports.SessionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self,
        session: DashboardSession,
        password_hash: str,
        origin: Hashes,
        limit: int,
        note: AuditEntry | None,
    ) -> bool:
        values = {
            "id": session.id,
            "operator_id": session.operator_id,
            "created_us": to_us(session.created_at),
            "used_us": to_us(session.used_at),
            "expires_us": to_us(session.expires_at),
            "user_agent": session.user_agent,
            "client": session.client_address,
        }
        # Locked, so that of a log-in and a new password one sees the other.
        same = (
            select(operators.c.id)
            .where(
                operators.c.id == session.operator_id,
                operators.c.password_hash == password_hash,
                operators.c.deleted_us.is_(None),
            )
            .with_for_update()
        )
        async with self._database.write() as connection:
            if (await connection.execute(same)).one_or_none() is None:
                return False
            await connection.execute(insert(dashboard_sessions).values(values))
            await self._trim(connection, session, limit)
            await remember_origin(connection, session.operator_id, origin, session.created_at)
            if note is not None:
                await write_note(connection, note)
        return True

    async def _trim(
        self, connection: AsyncConnection, session: DashboardSession, limit: int
    ) -> None:
        mine = dashboard_sessions.c.operator_id == session.operator_id
        newest = (
            select(dashboard_sessions.c.id)
            .where(mine)
            .order_by(dashboard_sessions.c.created_us.desc(), dashboard_sessions.c.id.desc())
            .limit(limit)
        )
        surplus = delete(dashboard_sessions).where(mine, dashboard_sessions.c.id.not_in(newest))
        await connection.execute(surplus)

    async def owner(self, operator_id: str, session_id: str, now: datetime) -> Operator | None:
        statement = (
            select(operators)
            .join(dashboard_sessions, dashboard_sessions.c.operator_id == operators.c.id)
            .where(
                operators.c.id == operator_id,
                operators.c.deleted_us.is_(None),
                dashboard_sessions.c.id == session_id,
                dashboard_sessions.c.expires_us > to_us(now),
            )
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else operator_of(row)

    async def list(self, operator_id: str, now: datetime) -> Sequence[DashboardSession]:
        statement = (
            select(dashboard_sessions)
            .where(
                dashboard_sessions.c.operator_id == operator_id,
                dashboard_sessions.c.expires_us > to_us(now),
            )
            .order_by(dashboard_sessions.c.created_us.desc(), dashboard_sessions.c.id.desc())
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_session(row) for row in rows]

    async def end(self, operator_id: str, session_id: str, note: AuditEntry) -> bool:
        statement = (
            delete(dashboard_sessions)
            .where(
                dashboard_sessions.c.operator_id == operator_id,
                dashboard_sessions.c.id == session_id,
            )
            .returning(dashboard_sessions.c.id)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).one_or_none() is None:
                return False
            await write_note(connection, note)
        return True

    async def end_all(self, operator_id: str, keep: str | None, note: AuditEntry) -> int:
        async with self._database.write() as connection:
            ended = await end_sessions(connection, operator_id, keep)
            await write_note(connection, note)
        return ended

    async def touch(self, last_used: Mapping[str, datetime]) -> None:
        if not last_used:
            return
        column = dashboard_sessions.c.used_us
        statement = (
            update(dashboard_sessions)
            .where(
                dashboard_sessions.c.id == bindparam("session_id"),
                column < bindparam("at_us"),
            )
            .values(used_us=bindparam("at_us"))
        )
        # In one order everywhere: two processes touching the same rows must not lock crosswise.
        rows = [{"session_id": k, "at_us": to_us(at)} for k, at in sorted(last_used.items())]
        async with self._database.write() as connection:
            await connection.execute(statement, rows)

    async def purge(self, now: datetime) -> None:
        for table, key in (
            (dashboard_sessions, dashboard_sessions.c.id),
            (account_codes, account_codes.c.code_hash),
        ):
            over = [table.c.expires_us <= to_us(now)]
            if table is account_codes:  # how many were issued in a day is counted by rows
                over.append(table.c.created_us <= to_us(now - CODES_KEPT))
            old = select(key).where(*over).limit(PURGE_MAX)
            async with self._database.read() as connection:  # mostly there is nothing to do
                if (await connection.execute(old.limit(1))).first() is None:
                    continue
            async with self._database.write() as connection:
                await self._database.lock(connection, "purge of sessions")
                await connection.execute(delete(table).where(key.in_(old)))


async def end_sessions(connection: AsyncConnection, operator_id: str, keep: str | None) -> int:
    """End an operator's sessions but `keep`, in the caller's transaction; how many there were."""
    statement = delete(dashboard_sessions).where(dashboard_sessions.c.operator_id == operator_id)
    if keep is not None:
        statement = statement.where(dashboard_sessions.c.id != keep)
    return (await connection.execute(statement)).rowcount


def _session(row: RowMapping) -> DashboardSession:
    return DashboardSession(
        id=row["id"],
        operator_id=row["operator_id"],
        created_at=from_us(row["created_us"]),
        used_at=from_us(row["used_us"]),
        expires_at=from_us(row["expires_us"]),
        user_agent=row["user_agent"],
        client_address=row["client"],
    )
