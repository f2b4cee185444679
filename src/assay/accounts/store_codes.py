"""Single-use codes of accounts in SQL: resets, verifications, invitations."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.credential_ports import Alike, AskedBy, Code, CodeBound, CodeKind
from assay.audit.service import AuditEntry
from assay.audit.store import write_note
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import account_codes, operators


class SqlCodeStore:
    """The part of `accounts.credential_ports.CredentialStore` that is about codes."""

    def __init__(self, database: Database) -> None:
        self._codes_in = database

    async def issue_code(
        self, code: Code, bounds: Sequence[CodeBound], note: AuditEntry | None
    ) -> bool:
        # In one order always, so that two writers never wait for each other crosswise.
        locks = sorted({f"codes {one}" for bound in bounds for one in _shared(code, bound)})
        async with self._codes_in.write() as connection:
            for lock in locks:
                await self._codes_in.lock(connection, lock)
            for bound in bounds:
                if await _issued(connection, code, bound) >= bound.at_most:
                    return False
            # Resets are asked for by strangers too: theirs do not end the owner's.
            if code.kind is CodeKind.VERIFY and code.operator_id is not None:
                await spend_codes(connection, code.operator_id, code.kind, code.created_at)
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
            await write_note(connection, note)
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
        self, operator_id: str, code_hash: str, at: datetime, note: AuditEntry
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
            if not await spend_code(connection, code_hash, CodeKind.VERIFY, at, operator_id):
                return False
            if not (await connection.execute(verified)).rowcount:
                return False
            await write_note(connection, note)
        return True


async def spend_code(
    connection: AsyncConnection,
    code_hash: str,
    kind: CodeKind,
    at: datetime,
    operator_id: str | None,
) -> bool:
    """Spend a code in the caller's transaction; of two at once, one succeeds."""
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


async def spend_codes(
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
    """The narrowest thing that all who are counted together have in common.

    A hash under each key: processes whose rings overlap have one of them in common.
    """
    name = bound.alike[-1] if "operator_id" not in bound.alike else "operator_id"
    return [f"{name} {value}" for value in _values(code, name)]


def _values(code: Code, name: Alike) -> tuple[str | None, ...]:
    """What the code has of this name, in every form it is stored in."""
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
