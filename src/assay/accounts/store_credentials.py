"""Stores passwords, second factors, single-use codes and sessions in SQL.

Single-use codes are resets, verifications and invitations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.model import DashboardSession, EndedCredentials, Operator, OperatorNotFound
from assay.accounts.ports import Alike, AskedBy, Code, CodeBound, CodeKind, Hashes, LoginRecord
from assay.accounts.store_operators import operator_of, remember_origin
from assay.audit.service import AuditEntry
from assay.audit.store import record
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import (
    account_codes,
    api_keys,
    dashboard_sessions,
    login_origins,
    operators,
    recovery_codes,
)


class SqlCodeStore:
    """The part of `accounts.ports.CredentialStore` that stores codes."""

    def __init__(self, database: Database) -> None:
        self._codes_in = database

    async def issue_code(
        self, code: Code, bounds: Sequence[CodeBound], entry: AuditEntry | None
    ) -> bool:
        # Always in one order, so that two writers never deadlock.
        locks = sorted({f"codes {one}" for bound in bounds for one in _shared(code, bound)})
        async with self._codes_in.write() as connection:
            for lock in locks:
                await self._codes_in.lock(connection, lock)
            for bound in bounds:
                if await _issued(connection, code, bound) >= bound.limit:
                    return False
            # Strangers ask for resets too: theirs do not end the owner's.
            if code.kind is CodeKind.VERIFY and code.operator_id is not None:
                await _spend_codes(connection, code.operator_id, code.kind, code.created_at)
            values = {
                "code_hash": code.code_hash,
                "kind": code.kind.value,
                "operator_id": code.operator_id,
                "email_lower": None if code.email is None else code.email.lower(),
                "created_us": to_us(code.created_at),
                "expires_us": to_us(code.expires_at),
                "asked_by": code.asked_by.value,
                "origin": next(iter(code.origin), None),
                "mailbox": next(iter(code.mailbox), None),
            }
            await connection.execute(insert(account_codes).values(values))
            await record(connection, entry)
        return True

    async def find_code(self, code_hash: str, kind: CodeKind, now: datetime) -> Code | None:
        statement = select(account_codes).where(
            account_codes.c.code_hash == code_hash,
            account_codes.c.kind == kind.value,
            account_codes.c.spent_us.is_(None),
            account_codes.c.expires_us > to_us(now),
        )
        async with self._codes_in.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        if row is None:
            return None
        return Code(
            code_hash=row["code_hash"],
            kind=CodeKind(row["kind"]),
            operator_id=row["operator_id"],
            email=row["email_lower"],
            created_at=from_us(row["created_us"]),
            expires_at=from_us(row["expires_us"]),
            asked_by=AskedBy(row["asked_by"]),
            origin=() if row["origin"] is None else (row["origin"],),
            mailbox=() if row["mailbox"] is None else (row["mailbox"],),
        )

    async def verify_email(
        self, operator_id: str, code_hash: str, at: datetime, entry: AuditEntry
    ) -> bool:
        proven = select(account_codes.c.email_lower).where(account_codes.c.code_hash == code_hash)
        verified = (
            update(operators)
            .where(
                operators.c.id == operator_id,
                operators.c.deleted_us.is_(None),
                operators.c.email_lower == proven.scalar_subquery(),
            )
            .values(email_verified_us=to_us(at))
        )
        async with self._codes_in.write() as connection:
            if not await _spend_code(connection, code_hash, CodeKind.VERIFY, at, operator_id):
                return False
            if not (await connection.execute(verified)).rowcount:
                return False
            await record(connection, entry)
        return True


async def _spend_code(
    connection: AsyncConnection,
    code_hash: str,
    kind: CodeKind,
    at: datetime,
    operator_id: str | None,
) -> bool:
    """Spend a code in the caller's transaction; return whether this call has spent it."""
    statement = (
        update(account_codes)
        .where(
            account_codes.c.code_hash == code_hash,
            account_codes.c.kind == kind.value,
            account_codes.c.operator_id.is_not_distinct_from(operator_id),
            account_codes.c.spent_us.is_(None),
            account_codes.c.expires_us > to_us(at),
        )
        .values(spent_us=to_us(at))
    )
    return bool((await connection.execute(statement)).rowcount)


async def _spend_codes(
    connection: AsyncConnection, operator_id: str, kind: CodeKind, at: datetime
) -> None:
    """Spend every code of an account and kind, in the caller's transaction."""
    statement = (
        update(account_codes)
        .where(
            account_codes.c.operator_id == operator_id,
            account_codes.c.kind == kind.value,
            account_codes.c.spent_us.is_(None),
        )
        .values(spent_us=to_us(at))
    )
    await connection.execute(statement)


def _shared(code: Code, bound: CodeBound) -> Sequence[str]:
    """Return the narrowest value that all of the counted codes have in common.

    There is a hash under each key: processes whose rings overlap have one of them in common.
    """
    name = bound.alike[-1] if "operator_id" not in bound.alike else "operator_id"
    return [f"{name} {value}" for value in _values(code, name)]


def _values(code: Code, name: Alike) -> tuple[str | None, ...]:
    """Return the code's values of this name, in every form in which it is stored."""
    match name:
        case "origin":
            return code.origin
        case "mailbox":
            return code.mailbox
        case "operator_id":
            return (code.operator_id,)
        case "asked_by":
            return (code.asked_by.value,)


async def _issued(connection: AsyncConnection, code: Code, bound: CodeBound) -> int:
    alike = (account_codes.c[name].in_(_values(code, name)) for name in bound.alike)
    statement = (
        select(func.count())
        .select_from(account_codes)
        .where(
            account_codes.c.kind == code.kind.value,
            account_codes.c.created_us > to_us(bound.since),
            *alike,
        )
    )
    return (await connection.execute(statement)).scalar_one()


PURGE_MAX = 5000
"""Rows removed at a time."""

CODES_KEPT = timedelta(days=1)


class SqlSessionStore:
    """Dashboard sessions: one row each, which is removed when the session ends."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self,
        session: DashboardSession,
        password_hash: str,
        origin: Hashes,
        limit: int,
        entry: AuditEntry | None,
    ) -> bool:
        """Store a session and that its origin is known; the oldest beyond `limit` end.

        Returns False and stores nothing if the account's password hash has changed.
        """
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
            if entry is not None:
                await record(connection, entry)
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
        """Return the account of a session that has not ended."""
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
        """Return the operator's sessions that have not ended, newest first."""
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

    async def end(self, operator_id: str, session_id: str, entry: AuditEntry) -> bool:
        """End a session; return False if this operator has none with this id."""
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
            await record(connection, entry)
        return True

    async def end_all(self, operator_id: str, keep: str | None, entry: AuditEntry) -> int:
        """End the operator's sessions but `keep`; return how many there were."""
        async with self._database.write() as connection:
            ended = await _end_sessions(connection, operator_id, keep)
            await record(connection, entry)
        return ended

    async def touch(self, last_used: Mapping[str, datetime]) -> None:
        """Write when sessions (by id) were last used; never move a time back."""
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
        # In one order everywhere, so that two processes do not deadlock on the same rows.
        rows = [{"session_id": k, "at_us": to_us(at)} for k, at in sorted(last_used.items())]
        async with self._database.write() as connection:
            await connection.execute(statement, rows)

    async def purge(self, now: datetime) -> None:
        """Remove expired sessions and codes, a bounded number; codes stay for a day at least.

        Rows count how many were issued recently.
        """
        for table, key in (
            (dashboard_sessions, dashboard_sessions.c.id),
            (account_codes, account_codes.c.code_hash),
        ):
            over = [table.c.expires_us <= to_us(now)]
            if table is account_codes:  # rows count how many were issued in a day
                over.append(table.c.created_us <= to_us(now - CODES_KEPT))
            old = select(key).where(*over).limit(PURGE_MAX)
            async with self._database.read() as connection:  # usually there is nothing to do
                if (await connection.execute(old.limit(1))).first() is None:
                    continue
            async with self._database.write() as connection:
                await self._database.lock(connection, "purge of sessions")
                await connection.execute(delete(table).where(key.in_(old)))


async def _end_sessions(connection: AsyncConnection, operator_id: str, keep: str | None) -> int:
    """End an operator's sessions but `keep` in the caller's transaction; return their number."""
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


class SqlCredentialStore(SqlCodeStore):
    """Implements `accounts.ports.CredentialStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    async def find_login(self, email: str, origin: Hashes) -> LoginRecord | None:
        is_known = exists().where(
            login_origins.c.operator_id == operators.c.id, login_origins.c.origin.in_(origin)
        )
        statement = select(operators, is_known.label("is_known")).where(
            operators.c.email_lower == email.lower(), operators.c.deleted_us.is_(None)
        )
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _login(row, is_known=row["is_known"])

    async def login_of(self, operator_id: str) -> LoginRecord | None:
        statement = select(operators).where(*_present(operator_id))
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _login(row, is_known=True)

    async def set_password(
        self, operator_id: str, password_hash: str, at: datetime, entry: AuditEntry, *,
        keep_session: str | None = None, revoke_keys: bool = False,
    ) -> EndedCredentials:  # fmt: skip
        async with self._database.write() as connection:
            return await _replace_password(
                connection, operator_id, password_hash, at, entry, keep_session, revoke_keys
            )

    async def reset_password(
        self, operator_id: str, code_hash: str, password_hash: str, at: datetime,
        entry: AuditEntry, *, revoke_keys: bool = False,
    ) -> EndedCredentials | None:  # fmt: skip
        async with self._database.write() as connection:
            if not await _spend_code(connection, code_hash, CodeKind.RESET, at, operator_id):
                return None
            return await _replace_password(
                connection, operator_id, password_hash, at, entry, None, revoke_keys
            )

    async def know_origin(self, operator_id: str, origin: Hashes, at: datetime) -> None:
        async with self._database.write() as connection:
            locked = select(operators.c.id).where(*_present(operator_id)).with_for_update()
            if (await connection.execute(locked)).one_or_none() is not None:
                await remember_origin(connection, operator_id, origin, at)

    async def begin_totp(self, operator_id: str, sealed: bytes) -> bool:
        statement = (
            update(operators)
            .where(*_present(operator_id), operators.c.totp_confirmed_us.is_(None))
            .values(totp_secret=sealed, totp_step=None)
        )
        async with self._database.write() as connection:
            return bool((await connection.execute(statement)).rowcount)

    async def confirm_totp(
        self, operator_id: str, sealed: bytes, step: int, recovery: Sequence[str], at: datetime,
        entry: AuditEntry,
    ) -> bool:  # fmt: skip
        statement = (
            update(operators)
            .where(
                *_present(operator_id),
                operators.c.totp_confirmed_us.is_(None),
                operators.c.totp_secret == sealed,
            )
            .values(totp_confirmed_us=to_us(at), totp_step=step)
        )
        async with self._database.write() as connection:
            if not (await connection.execute(statement)).rowcount:
                return False
            await _replace_recovery_codes(connection, operator_id, recovery)
            await record(connection, entry)
        return True

    async def take_totp_step(self, operator_id: str, step: int) -> bool:
        spent = operators.c.totp_step
        statement = (
            update(operators)
            .where(*_present(operator_id), or_(spent.is_(None), spent < step))
            .values(totp_step=step)
        )
        async with self._database.write() as connection:
            return bool((await connection.execute(statement)).rowcount)

    async def take_recovery_code(self, operator_id: str, code_hash: str, entry: AuditEntry) -> bool:
        statement = delete(recovery_codes).where(
            recovery_codes.c.operator_id == operator_id, recovery_codes.c.code_hash == code_hash
        )
        async with self._database.write() as connection:
            if not (await connection.execute(statement)).rowcount:
                return False
            await record(connection, entry)
        return True

    async def set_recovery_codes(
        self, operator_id: str, recovery: Sequence[str], entry: AuditEntry
    ) -> None:
        async with self._database.write() as connection:
            await _replace_recovery_codes(connection, operator_id, recovery)
            await record(connection, entry)

    async def recovery_codes_left(self, operator_id: str) -> int:
        statement = (
            select(func.count())
            .select_from(recovery_codes)
            .where(recovery_codes.c.operator_id == operator_id)
        )
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one()

    async def end_totp(self, operator_id: str, entry: AuditEntry) -> bool:
        statement = (
            update(operators)
            .where(*_present(operator_id), operators.c.totp_secret.is_not(None))
            .values(totp_secret=None, totp_confirmed_us=None, totp_step=None)
        )
        async with self._database.write() as connection:
            if not (await connection.execute(statement)).rowcount:
                return False
            await _replace_recovery_codes(connection, operator_id, ())
            await record(connection, entry)
        return True

    async def reseal_totp(
        self, operator_id: str, old: bytes, sealed: bytes, entry: AuditEntry
    ) -> None:
        statement = (
            update(operators)
            .where(operators.c.id == operator_id, operators.c.totp_secret == old)
            .values(totp_secret=sealed)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).rowcount:
                await record(connection, entry)


def _present(operator_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return operators.c.id == operator_id, operators.c.deleted_us.is_(None)


async def _replace_password(  # noqa: PLR0913, PLR0917 - one transaction's parts
    connection: AsyncConnection,
    operator_id: str,
    password_hash: str,
    at: datetime,
    entry: AuditEntry,
    keep_session: str | None,
    revoke_keys: bool,  # noqa: FBT001
) -> EndedCredentials:
    values = {"password_hash": password_hash, "updated_us": to_us(at)}
    statement = update(operators).where(*_present(operator_id)).values(values)
    if not (await connection.execute(statement)).rowcount:
        raise OperatorNotFound("There is no account of this id.")
    await _spend_codes(connection, operator_id, CodeKind.RESET, at)
    sessions = await _end_sessions(connection, operator_id, keep_session)
    unrevoked = (api_keys.c.operator_id == operator_id, api_keys.c.revoked.is_(False))
    revoked = 0
    if revoke_keys:
        revoke = update(api_keys).where(*unrevoked).values(revoked=True)
        revoked = (await connection.execute(revoke)).rowcount
    alive = or_(api_keys.c.expires_us.is_(None), api_keys.c.expires_us > to_us(at))
    left = select(func.count()).select_from(api_keys).where(*unrevoked, alive)
    ended = EndedCredentials(sessions, revoked, (await connection.execute(left)).scalar_one())
    details = {**entry.details, "sessions": sessions, "keys": revoked}
    await record(connection, replace(entry, details=details))
    return ended


async def _replace_recovery_codes(
    connection: AsyncConnection, operator_id: str, recovery: Sequence[str]
) -> None:
    mine = recovery_codes.c.operator_id == operator_id
    await connection.execute(delete(recovery_codes).where(mine))
    if recovery:
        rows = [{"operator_id": operator_id, "code_hash": one} for one in recovery]
        await connection.execute(insert(recovery_codes), rows)


def _login(row: RowMapping, *, is_known: bool) -> LoginRecord:
    sealed = row["totp_secret"]
    return LoginRecord(
        operator=operator_of(row),
        password_hash=row["password_hash"],
        sealed_totp=None if sealed is None else bytes(sealed),
        totp_step=row["totp_step"],
        is_known_origin=is_known,
    )
