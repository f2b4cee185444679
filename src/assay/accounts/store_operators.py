"""Stores operator accounts, the networks of their log-ins, API keys and monthly counts in SQL.

Networks are stored as keyed hashes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping, and_, bindparam, delete, func, insert, or_, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.model import (
    AccountChange,
    ApiKey,
    EmailTaken,
    InviteInvalid,
    LastAdmin,
    Operator,
    OperatorNotFound,
    Plan,
    Role,
    Scope,
)
from assay.accounts.ports import CodeKind, Hashes, SignUp
from assay.audit.service import AuditEntry
from assay.audit.store import record
from assay.common.errors import TooMany
from assay.common.json import JsonObject
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.accounts import account_codes, api_keys, login_origins, operators
from assay.db.schema.everything import allowance

ORIGINS_MAX = 20
"""Networks that are remembered of an account; the one unused for longest is forgotten first."""


async def remember_origin(
    connection: AsyncConnection, operator_id: str, origin: Hashes, at: datetime
) -> None:
    """Remember a network in the caller's transaction, which has locked the account's row."""
    mine = login_origins.c.operator_id == operator_id
    known = delete(login_origins).where(mine, login_origins.c.origin.in_(origin))
    was_known = (await connection.execute(known)).rowcount
    values = {"operator_id": operator_id, "origin": origin[0], "used_us": to_us(at)}
    await connection.execute(insert(login_origins).values(values))
    if was_known:
        return
    newest = (
        select(login_origins.c.origin)
        .where(mine)
        .order_by(login_origins.c.used_us.desc(), login_origins.c.origin)
        .limit(ORIGINS_MAX)
    )
    await connection.execute(
        delete(login_origins).where(mine, login_origins.c.origin.not_in(newest))
    )


ADMINS = "admins"
"""The lock for removing an admin: of several concurrent removals, each sees the others."""

SIGN_UP_RETRY_S = 3600
"""Seconds until an origin that has used up its quota may try again: by then a part of it may have
passed."""


class SqlOperatorStore:
    """Operator accounts and their password hashes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        operator: Operator,
        password_hash: str,
        entry: AuditEntry | None = None,
        sign_up: SignUp | None = None,
    ) -> None:
        """Store a new account.

        Raises `EmailTaken` (compared by lower case), `InviteInvalid`, and `TooMany` beyond a quota
        of its networks. Then it stores nothing and spends no invitation.
        """
        values = {
            "sign_up_origin": None if sign_up is None else _origins(sign_up)[0],
            "self_registered": sign_up is not None and sign_up.invite_hash is None,
            "id": operator.id,
            "email": operator.email,
            "email_lower": operator.email.lower(),
            "name": operator.name,
            "role": operator.role.value,
            "plan": operator.plan.value,
            "fee_rate": str(operator.fee_rate),
            "password_hash": password_hash,
            "created_us": to_us(operator.created_at),
            "updated_us": to_us(operator.updated_at),
        }
        try:
            async with self._database.write() as connection:
                if sign_up is not None:
                    await self._admit(connection, operator, sign_up)
                await connection.execute(insert(operators).values(values))
                if sign_up is not None:  # strangers' failures do not delay the first log-in
                    at = operator.created_at
                    await remember_origin(connection, operator.id, sign_up.origin, at)
                await record(connection, entry)
        except IntegrityError as error:
            raise EmailTaken("Another account has this e-mail address.") from error

    async def _admit(
        self, connection: AsyncConnection, operator: Operator, sign_up: SignUp
    ) -> None:
        """Check a sign-up against its quotas and its invitation, in one order for its network."""
        for around in sorted(sign_up.around):
            await self._database.lock(connection, f"sign-up {around}")
        origin = operators.c.sign_up_origin
        # Earlier versions counted no larger network, and stored the origin alone.
        of_origin = origin.in_((*_origins(sign_up), *sign_up.origin))
        # Ranges instead of patterns use the index with every collation.
        of_network = or_(*(and_(origin > one, origin < one + "g") for one in sign_up.around))
        for which, quota in ((of_origin, sign_up.per_origin), (of_network, sign_up.per_network)):
            recent = and_(which, operators.c.created_us > to_us(sign_up.since))
            made = select(func.count()).select_from(operators).where(recent)
            if (await connection.execute(made)).scalar_one() >= quota:
                raise TooMany(
                    "Too many accounts were made from here today.", retry_after_s=SIGN_UP_RETRY_S
                )
        if sign_up.invite_hash is not None:
            await self._spend_invite(connection, operator, sign_up.invite_hash)

    async def _spend_invite(
        self, connection: AsyncConnection, operator: Operator, invite_hash: str
    ) -> None:
        email = account_codes.c.email_lower
        statement = (
            update(account_codes)
            .where(
                account_codes.c.code_hash == invite_hash,
                account_codes.c.kind == CodeKind.INVITE.value,
                account_codes.c.spent_us.is_(None),
                account_codes.c.expires_us > to_us(operator.created_at),
                or_(email.is_(None), email == operator.email.lower()),
            )
            .values(spent_us=to_us(operator.created_at), email_lower=None)
        )
        if not (await connection.execute(statement)).rowcount:
            raise InviteInvalid("The invitation is not good, or not for this e-mail address.")

    async def find(self, operator_id: str) -> Operator | None:
        """Return the account of this id."""
        statement = select(operators).where(operators.c.id == operator_id)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else operator_of(row)

    async def find_by_email(self, email: str) -> tuple[Operator, str] | None:
        """Return the account with this e-mail (compared by lower case), with its password hash."""
        statement = select(operators).where(operators.c.email_lower == email.lower())
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else (operator_of(row), row["password_hash"])

    async def list_for_admin(self) -> Sequence[Operator]:
        """Return every account, oldest first."""
        statement = select(operators).order_by(operators.c.created_us, operators.c.id)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [operator_of(row) for row in rows]

    async def rename(
        self, operator_id: str, name: str, at: datetime, entry: AuditEntry | None = None
    ) -> Operator:
        """Change the name, and record both in `entry`'s details. Raises `OperatorNotFound`."""
        async with self._database.write() as connection:
            before = await _locked(connection, operator_id)
            after = await _change(connection, operator_id, {"name": name}, at)
            if entry is not None:
                names: JsonObject = {"from": before.name, "to": after.name}
                await record(connection, replace(entry, details={"name": names}))
        return after

    async def change_for_admin(
        self, operator_id: str, change: AccountChange, at: datetime, entry: AuditEntry
    ) -> Operator:
        """Change the account, and record the values before and after in `entry`'s details.

        Raises `OperatorNotFound`, and `LastAdmin` if nobody would be left to undo it; the terminal
        may.
        """
        async with self._database.write() as connection:
            takes = entry.actor.kind != "terminal" and _takes_admin(change)
            if takes:
                await self._database.lock(connection, ADMINS)
            before = await _locked(connection, operator_id)
            if takes and before.role is Role.ADMIN:
                await require_another_admin(connection, operator_id)
            after = await _change(connection, operator_id, _values(before, change, at), at)
            await record(connection, replace(entry, details=_differences(before, after)))
        return after

    async def record(self, entry: AuditEntry) -> None:
        """Add an entry to the audit trail that changes nothing else."""
        async with self._database.write() as connection:
            await record(connection, entry)


async def require_another_admin(connection: AsyncConnection, operator_id: str) -> None:
    """Raise `LastAdmin` if no other account is an admin; the caller has locked `ADMINS`."""
    others = and_(
        operators.c.role == Role.ADMIN.value,
        operators.c.suspended_us.is_(None),
        operators.c.id != operator_id,
    )
    count = select(func.count()).select_from(operators).where(others)
    if not (await connection.execute(count)).scalar_one():
        raise LastAdmin("This is the only admin: make another account an admin first.")


def _origins(sign_up: SignUp) -> Hashes:
    """Return origins as they are stored: all origins of one larger network begin alike."""
    return tuple(a + o for a, o in zip(sign_up.around, sign_up.origin, strict=True))


def _takes_admin(change: AccountChange) -> bool:
    return change.role is Role.OPERATOR or bool(change.suspended)


async def _locked(connection: AsyncConnection, operator_id: str) -> Operator:
    """Return the account, locked until this transaction ends.

    Raises `OperatorNotFound`, also for a deleted account.
    """
    mine = (operators.c.id == operator_id, operators.c.deleted_us.is_(None))
    known = select(operators).where(*mine).with_for_update()
    row = (await connection.execute(known)).mappings().one_or_none()
    if row is None:
        raise OperatorNotFound("There is no account of this id.")
    return operator_of(row)


async def _change(
    connection: AsyncConnection, operator_id: str, values: Mapping[str, Any], at: datetime
) -> Operator:
    statement = (
        update(operators)
        .where(operators.c.id == operator_id)
        .values({**values, "updated_us": to_us(at)})
        .returning(operators)
    )
    row = (await connection.execute(statement)).mappings().one_or_none()
    if row is None:
        raise OperatorNotFound("There is no account of this id.")
    return operator_of(row)


def _values(before: Operator, change: AccountChange, at: datetime) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if change.plan is not None:
        values["plan"] = change.plan.value
    if change.role is not None:
        values["role"] = change.role.value
    if change.fee_rate is not None:
        values["fee_rate"] = str(change.fee_rate)
    if change.suspended is not None and change.suspended != before.is_suspended:
        values["suspended_us"] = to_us(at) if change.suspended else None
    return values


def _differences(before: Operator, after: Operator) -> dict[str, dict[str, str | bool]]:
    """Return the old and the new value of everything that changed."""

    def shown(operator: Operator) -> dict[str, str | bool]:
        return {
            "plan": operator.plan.value,
            "role": operator.role.value,
            "fee_rate": str(operator.fee_rate),
            "suspended": operator.is_suspended,
        }

    was, now = shown(before), shown(after)
    return {name: {"from": was[name], "to": now[name]} for name in was if was[name] != now[name]}


def operator_of(row: RowMapping) -> Operator:
    """Return the account of a row that has every column of `operators`."""
    return Operator(
        id=row["id"],
        email=row["email"],
        name=row["name"],
        role=Role(row["role"]),
        plan=Plan(row["plan"]),
        fee_rate=Decimal(row["fee_rate"]),
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        suspended_at=_moment(row["suspended_us"]),
        email_verified_at=_moment(row["email_verified_us"]),
        totp_enabled=row["totp_confirmed_us"] is not None,
        deleted_at=_moment(row["deleted_us"]),
    )


def _moment(at_us: int | None) -> datetime | None:
    return None if at_us is None else from_us(at_us)


class SqlApiKeyStore:
    """API key records, found by the SHA-256 (64 hex digits) of the full key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, key: ApiKey, key_hash: str, entry: AuditEntry | None = None, limit: int | None = None
    ) -> bool:
        """Store a new key; return False if the operator has `limit` that are not revoked.

        As many revoked ones are kept, the newest.
        """
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
            "gate_policies": key.gate_policies,
        }
        async with self._database.write() as connection:
            if limit is not None and not await self._make_room(connection, key, limit):
                return False
            await connection.execute(insert(api_keys).values(values))
            await record(connection, entry)
        return True

    async def _make_room(self, connection: AsyncConnection, key: ApiKey, limit: int) -> bool:
        """Return whether one more is allowed; keep the newest `limit` revoked keys."""
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
        """Return the key of this hash, revoked or not."""
        statement = select(api_keys).where(api_keys.c.key_hash == key_hash)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _key(row)

    async def recent_hashes(self, limit: int) -> Sequence[str]:
        """Return the hashes of the most recently used valid keys, newest first."""
        statement = (
            select(api_keys.c.key_hash)
            .where(~api_keys.c.revoked, api_keys.c.last_used_us.is_not(None))
            .order_by(api_keys.c.last_used_us.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            return list((await connection.execute(statement)).scalars())

    async def list(self, operator_id: str) -> Sequence[ApiKey]:
        """Return the operator's keys, newest first."""
        statement = (
            select(api_keys)
            .where(api_keys.c.operator_id == operator_id)
            .order_by(api_keys.c.created_us.desc(), api_keys.c.id.desc())
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_key(row) for row in rows]

    async def revoke(self, operator_id: str, key_id: str, entry: AuditEntry | None = None) -> bool:
        """Revoke a key; return False if this operator has none with this id.

        Revoking twice is no error.
        """
        return await self._change(operator_id, key_id, {"revoked": True}, entry)

    async def set_gate_policies(
        self, operator_id: str, key_id: str, policies: str, entry: AuditEntry | None = None
    ) -> bool:
        """Replace a key's policies; return False if this operator has none with this id."""
        return await self._change(operator_id, key_id, {"gate_policies": policies}, entry)

    async def _change(
        self, operator_id: str, key_id: str, values: Mapping[str, object], entry: AuditEntry | None
    ) -> bool:
        statement = (
            update(api_keys)
            .where(api_keys.c.operator_id == operator_id, api_keys.c.id == key_id)
            .values(values)
            .returning(api_keys.c.id)
        )
        async with self._database.write() as connection:
            if (await connection.execute(statement)).one_or_none() is None:
                return False
            await record(connection, entry)
        return True

    async def touch(self, last_used: Mapping[str, datetime]) -> None:
        """Write when keys (by id) were last used; never move a time back."""
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
        # In one order everywhere, so that two processes do not deadlock on the same keys.
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
        gate_policies=row["gate_policies"],
    )


_ADD = text(
    "INSERT INTO allowance (operator_id, month, used) VALUES (:operator_id, :month, :count)"
    " ON CONFLICT (operator_id, month) DO UPDATE SET used = allowance.used + excluded.used"
    " RETURNING used"
)


class SqlAllowanceStore:
    """The metered calls of an operator in a month (`YYYY-MM`, UTC)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def used(self, operator_id: str, month: str) -> int:
        """Return the count so far."""
        statement = select(allowance.c.used).where(
            allowance.c.operator_id == operator_id, allowance.c.month == month
        )
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one_or_none() or 0

    async def add(self, counts: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
        """Add to the counts of (operator id, month) in one transaction; return the new totals."""
        totals: dict[tuple[str, str], int] = {}
        async with self._database.write() as connection:
            for (operator_id, month), count in sorted(counts.items()):
                values = {"operator_id": operator_id, "month": month, "count": count}
                totals[operator_id, month] = (await connection.execute(_ADD, values)).scalar_one()
        return totals
