"""`assay accounts`: operator accounts from the terminal."""

import json
import sys

from assay.accounts.api_keys import REMEMBERED_S
from assay.accounts.model import Operator, Plan, Role
from assay.app import App
from assay.cli.command import with_app
from assay.cli.passwords import ask_password
from assay.cli.tables import print_table
from assay.common.clock import iso


def create(email: str, name: str, *, admin: bool, plan: str) -> int:
    """Create an account and print its first API key, once."""
    password = ask_password()

    async def work(app: App) -> int:
        role = Role.ADMIN if admin else Role.OPERATOR
        operator, key = await app.operators.create_for_admin(
            email, password, name, role, Plan(plan)
        )
        sys.stdout.write(f"{operator.role} {operator.email} ({operator.id}), plan {plan}\n")
        sys.stdout.write(f"API key (shown once): {key}\n")
        return 0

    return with_app(work)


def list_all(*, as_json: bool) -> int:
    """Print every account."""

    async def work(app: App) -> int:
        operators = await app.operators.list_for_admin()
        rows = [_row(operator) for operator in operators]
        if as_json:
            sys.stdout.write(json.dumps(rows, indent=2) + "\n")
            return 0
        print_table(_COLUMNS, rows)
        return 0

    return with_app(work)


def set_plan(email: str, plan: str) -> int:
    """Change the plan of an account."""

    async def work(app: App) -> int:
        operator = await app.operators.set_plan_for_admin(email, Plan(plan))
        sys.stdout.write(f"{operator.email} is now on the plan {operator.plan}\n")
        return 0

    return with_app(work)


def set_role(email: str, role: str) -> int:
    """Change the role of an account."""

    async def work(app: App) -> int:
        operator = await app.operators.set_role_for_admin(email, Role(role))
        sys.stdout.write(f"{operator.email} is now {operator.role}\n")
        return 0

    return with_app(work)


def suspend(email: str, *, suspended: bool) -> int:
    """Suspend an account, or restore it."""

    async def work(app: App) -> int:
        operator = await app.operators.suspend_for_admin(email, suspended=suspended)
        said = f"suspended: processes that serve refuse it within {REMEMBERED_S:g} seconds"
        sys.stdout.write(f"{operator.email} is {said if suspended else 'restored'}\n")
        return 0

    return with_app(work)


_COLUMNS = ("id", "email", "name", "role", "plan", "created_at", "suspended_at")


def _row(operator: Operator) -> dict[str, str]:
    return {
        "id": operator.id,
        "email": operator.email,
        "name": operator.name,
        "role": operator.role.value,
        "plan": operator.plan.value,
        "created_at": iso(operator.created_at),
        "suspended_at": "" if operator.suspended_at is None else iso(operator.suspended_at),
    }
