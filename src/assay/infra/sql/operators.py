"""Operator accounts in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from assay.accounts.model import EmailTaken, Operator, OperatorNotFound, Plan, Role
from assay.infra.sql.engine import Database, from_us, to_us
from assay.infra.sql.tables import operators


class SqlOperatorStore:
    """Implements `accounts.ports.OperatorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, operator: Operator, password_hash: str) -> None:
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
        except IntegrityError as error:
            raise EmailTaken("Another account has this e-mail address.") from error

    async def find(self, operator_id: str) -> Operator | None:
        statement = select(operators).where(operators.c.id == operator_id)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _operator(row)

    async def find_by_email(self, email: str) -> tuple[Operator, str] | None:
        statement = select(operators).where(operators.c.email_lower == email.lower())
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else (_operator(row), row["password_hash"])

    async def list_for_admin(self) -> Sequence[Operator]:
        statement = select(operators).order_by(operators.c.created_us, operators.c.id)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_operator(row) for row in rows]

    async def rename(self, operator_id: str, name: str, at: datetime) -> Operator:
        return await self._change(operator_id, {"name": name}, at)

    async def set_plan_for_admin(self, operator_id: str, plan: Plan, at: datetime) -> Operator:
        return await self._change(operator_id, {"plan": plan.value}, at)

    async def set_role_for_admin(self, operator_id: str, role: Role, at: datetime) -> Operator:
        return await self._change(operator_id, {"role": role.value}, at)

    async def _change(self, operator_id: str, values: Mapping[str, Any], at: datetime) -> Operator:
        statement = (
            update(operators)
            .where(operators.c.id == operator_id)
            .values({**values, "updated_us": to_us(at)})
            .returning(operators)
        )
        async with self._database.write() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        if row is None:
            raise OperatorNotFound("There is no account of this id.")
        return _operator(row)


def _operator(row: RowMapping) -> Operator:
    return Operator(
        id=row["id"],
        email=row["email"],
        name=row["name"],
        role=Role(row["role"]),
        plan=Plan(row["plan"]),
        fee_rate=Decimal(row["fee_rate"]),
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
    )
