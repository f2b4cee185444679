"""Passwords and second factors in SQL."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import ColumnElement, RowMapping, delete, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.clients import Hashes
from assay.accounts.credential_ports import CodeKind, LoginRecord
from assay.accounts.model import EndedCredentials, OperatorNotFound
from assay.accounts.store_codes import SqlCodeStore, spend_code, spend_codes
from assay.accounts.store_operators import operator_of, remember_origin
from assay.accounts.store_sessions import end_sessions
from assay.audit.service import AuditEntry
from assay.audit.store import write_note
from assay.db.engine import Database, to_us
from assay.db.schema.accounts import api_keys, login_origins, operators, recovery_codes


class SqlCredentialStore(SqlCodeStore):
    """Implements `accounts.credential_ports.CredentialStore`."""

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
        self, operator_id: str, password_hash: str, at: datetime, note: AuditEntry, *,
        keep_session: str | None = None, revoke_keys: bool = False,
    ) -> EndedCredentials:  # fmt: skip
        async with self._database.write() as connection:
            return await _replace_password(
                connection, operator_id, password_hash, at, note, keep_session, revoke_keys
            )

    async def reset_password(
        self, operator_id: str, code_hash: str, password_hash: str, at: datetime,
        note: AuditEntry, *, revoke_keys: bool = False,
    ) -> EndedCredentials | None:  # fmt: skip
        async with self._database.write() as connection:
            if not await spend_code(connection, code_hash, CodeKind.RESET, at, operator_id):
                return None
            return await _replace_password(
                connection, operator_id, password_hash, at, note, None, revoke_keys
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
        note: AuditEntry,
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
            await write_note(connection, note)
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

    async def take_recovery_code(self, operator_id: str, code_hash: str, note: AuditEntry) -> bool:
        statement = delete(recovery_codes).where(
            recovery_codes.c.operator_id == operator_id, recovery_codes.c.code_hash == code_hash
        )
        async with self._database.write() as connection:
            if not (await connection.execute(statement)).rowcount:
                return False
            await write_note(connection, note)
        return True

    async def set_recovery_codes(
        self, operator_id: str, recovery: Sequence[str], note: AuditEntry
    ) -> None:
        async with self._database.write() as connection:
            await _replace_recovery_codes(connection, operator_id, recovery)
            await write_note(connection, note)

    async def recovery_codes_left(self, operator_id: str) -> int:
        statement = (
            select(func.count())
            .select_from(recovery_codes)
            .where(recovery_codes.c.operator_id == operator_id)
        )
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one()

    async def end_totp(self, operator_id: str, note: AuditEntry) -> bool:
        statement = (
            update(operators)
            .where(*_present(operator_id), operators.c.totp_secret.is_not(None))
            .values(totp_secret=None, totp_confirmed_us=None, totp_step=None)
        )
        async with self._database.write() as connection:
            if not (await connection.execute(statement)).rowcount:
                return False
            await _replace_recovery_codes(connection, operator_id, ())
            await write_note(connection, note)
        return True

    async def reseal_totp(
        self, operator_id: str, old: bytes, sealed: bytes, note: AuditEntry
    ) -> None:
        statement = (
            update(operators)
            .where(operators.c.id == operator_id, operators.c.totp_secret == old)
            .values(totp_secret=sealed)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).rowcount:
                await write_note(connection, note)


def _present(operator_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return operators.c.id == operator_id, operators.c.deleted_us.is_(None)


async def _replace_password(  # noqa: PLR0913, PLR0917 - one transaction's parts
    connection: AsyncConnection,
    operator_id: str,
    password_hash: str,
    at: datetime,
    note: AuditEntry,
    keep_session: str | None,
    revoke_keys: bool,  # noqa: FBT001
) -> EndedCredentials:
    values = {"password_hash": password_hash, "updated_us": to_us(at)}
    statement = update(operators).where(*_present(operator_id)).values(values)
    if not (await connection.execute(statement)).rowcount:
        raise OperatorNotFound("There is no account of this id.")
    await spend_codes(connection, operator_id, CodeKind.RESET, at)
    sessions = await end_sessions(connection, operator_id, keep_session)
    unrevoked = (api_keys.c.operator_id == operator_id, api_keys.c.revoked.is_(False))
    revoked = 0
    if revoke_keys:
        revoke = update(api_keys).where(*unrevoked).values(revoked=True)
        revoked = (await connection.execute(revoke)).rowcount
    alive = or_(api_keys.c.expires_us.is_(None), api_keys.c.expires_us > to_us(at))
    left = select(func.count()).select_from(api_keys).where(*unrevoked, alive)
    ended = EndedCredentials(sessions, revoked, (await connection.execute(left)).scalar_one())
    details = {**note.details, "sessions": sessions, "keys": revoked}
    await write_note(connection, replace(note, details=details))
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
