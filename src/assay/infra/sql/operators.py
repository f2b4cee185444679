"""Operator accounts in SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.accounts.audit import Note
from assay.accounts.model import Change, EmailTaken, Operator, OperatorNotFound, Plan, Role
from assay.infra.sql.audit import write_note
from assay.infra.sql.engine import Database, from_us, to_us
from assay.infra.sql.tables import operators
from assay.kit.json import JsonObject


class SqlOperatorStore:
    """Implements `accounts.ports.OperatorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, operator: Operator, password_hash: str, note: Note | None = None) -> None:
        values = {
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
                await connection.execute(insert(operators).values(values))
                await write_note(connection, note)
        except IntegrityError as error:
            raise EmailTaken("Another account has this e-mail address.") from error

    async def find(self, operator_id: str) -> Operator | None:
        statement = select(operators).where(operators.c.id == operator_id)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else operator_of(row)

    async def find_by_email(self, email: str) -> tuple[Operator, str] | None:
        statement = select(operators).where(operators.c.email_lower == email.lower())
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else (operator_of(row), row["password_hash"])

    async def list_for_admin(self) -> Sequence[Operator]:
        statement = select(operators).order_by(operators.c.created_us, operators.c.id)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [operator_of(row) for row in rows]

    async def rename(
        self, operator_id: str, name: str, at: datetime, note: Note | None = None
    ) -> Operator:
        async with self._database.write() as connection:
            before = await _locked(connection, operator_id)
            after = await _change(connection, operator_id, {"name": name}, at)
            if note is not None:
                names: JsonObject = {"from": before.name, "to": after.name}
                await write_note(connection, replace(note, details={"name": names}))
        return after

    async def change_for_admin(
        self, operator_id: str, change: Change, at: datetime, note: Note
    ) -> Operator:
        async with self._database.write() as connection:
            before = await _locked(connection, operator_id)
            after = await _change(connection, operator_id, _values(before, change, at), at)
            told = replace(note, details=_differences(before, after))
            await write_note(connection, told)
        return after

    async def note(self, note: Note) -> None:
        async with self._database.write() as connection:
            await write_note(connection, note)


async def _locked(connection: AsyncConnection, operator_id: str) -> Operator:
    """The account as it is until this transaction changes it."""
    known = select(operators).where(operators.c.id == operator_id).with_for_update()
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


def _values(before: Operator, change: Change, at: datetime) -> dict[str, Any]:
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
    """What was, and what is, of everything that changed."""

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
    """The account of a row that has every column of `operators`."""
    return Operator(
        id=row["id"],
        email=row["email"],
        name=row["name"],
        role=Role(row["role"]),
        plan=Plan(row["plan"]),
        fee_rate=Decimal(row["fee_rate"]),
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        suspended_at=None if row["suspended_us"] is None else from_us(row["suspended_us"]),
    )
