"""`assay accounts`: operator accounts, their passwords, second factors and data."""

import getpass
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from cyclopts import Parameter

from assay.accounts.api_keys import REMEMBERED_S
from assay.accounts.model import EndedCredentials, Operator, Plan, Role
from assay.admin.schemas import account_export
from assay.app import App
from assay.cli.command import FAILED, AsJson, Email, complain, print_table, with_app
from assay.common.clock import iso


def create(
    email: Email,
    *,
    name: Annotated[str, Parameter(help="The operator's name.")],
    admin: Annotated[bool, Parameter(negative=(), help="Give the role admin.")] = False,
    plan: Annotated[Literal["free", "pro"], Parameter(help="The plan.")] = "free",
) -> int:
    """Create an account and print its first API key, once."""
    password = _new_password()

    async def work(app: App) -> int:
        role = Role.ADMIN if admin else Role.OPERATOR
        operator, key = await app.operators.create_for_admin(
            email, password, name, role, Plan(plan)
        )
        sys.stdout.write(f"{operator.role} {operator.email} ({operator.id}), plan {plan}\n")
        sys.stdout.write(f"API key (shown once): {key}\n")
        return 0

    return with_app(work)


def list_all(*, as_json: AsJson = False) -> int:
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


def set_plan(email: Email, plan: Literal["free", "pro"]) -> int:
    """Change the plan of an account."""

    async def work(app: App) -> int:
        operator = await app.operators.set_plan_for_admin(email, Plan(plan))
        sys.stdout.write(f"{operator.email} is now on the plan {operator.plan}\n")
        return 0

    return with_app(work)


def set_role(email: Email, role: Literal["operator", "admin"]) -> int:
    """Change the role of an account."""

    async def work(app: App) -> int:
        operator = await app.operators.set_role_for_admin(email, Role(role))
        sys.stdout.write(f"{operator.email} is now {operator.role}\n")
        return 0

    return with_app(work)


def suspend(email: Email) -> int:
    """Suspend an account."""
    return _suspend(email, suspended=True)


def restore(email: Email) -> int:
    """Restore a suspended account."""
    return _suspend(email, suspended=False)


def _suspend(email: str, *, suspended: bool) -> int:
    async def work(app: App) -> int:
        operator = await app.operators.suspend_for_admin(email, suspended=suspended)
        said = f"suspended: processes that serve refuse it within {REMEMBERED_S:g} seconds"
        sys.stdout.write(f"{operator.email} is {said if suspended else 'restored'}\n")
        return 0

    return with_app(work)


def set_password(
    email: Email,
    *,
    revoke_keys: Annotated[
        bool, Parameter(negative=(), help="Revoke the account's API keys as well.")
    ] = False,
) -> int:
    """Give an account a new password; all its sessions end."""
    password = _new_password()

    async def work(app: App, operator: Operator) -> int:
        ended = await app.passwords.set_for_admin(operator, password, revoke_keys=revoke_keys)
        sys.stdout.write(f"{operator.email} has a new password; {_said(ended)}\n")
        return 0

    return _on_account(email, work)


def reset_link(email: Email) -> int:
    """Print a link with which the owner chooses a new password."""

    async def work(app: App, operator: Operator) -> int:
        made = await app.passwords.reset_link_for_admin(operator)
        if made is None:
            complain("this account had too many reset links of late: wait half an hour")
            return FAILED
        link, until = made
        sys.stdout.write(f"{link}\ngood once, until {iso(until)}\n")
        return 0

    return _on_account(email, work)


def reset_totp(email: Email) -> int:
    """Remove an account's second factor, for an owner who has lost it."""

    async def work(app: App, operator: Operator) -> int:
        removed = await app.second_factors.disable_for_admin(operator.id)
        what = "has no second factor any more" if removed else "had no second factor"
        sys.stdout.write(f"{operator.email} {what}\n")
        return 0

    return _on_account(email, work)


def log_out(email: Email) -> int:
    """End every dashboard session of an account."""

    async def work(app: App, operator: Operator) -> int:
        ended = await app.logins.end_all(operator.id)
        sys.stdout.write(f"{ended} sessions of {operator.email} have ended\n")
        return 0

    return _on_account(email, work)


def invite(
    email: Annotated[
        str | None, Parameter(help="The only address it is good for; default: any.")
    ] = None,
) -> int:
    """Print an invitation."""

    async def work(app: App) -> int:
        token, until = await app.sign_ups.invite_for_admin(email)
        for_whom = "anybody" if email is None else email
        sys.stdout.write(f"{token}\nfor {for_whom}, good once, until {iso(until)}\n")
        if app.settings.sign_up != "invite":
            complain(f"sign-up is {app.settings.sign_up}: set ASSAY_SIGN_UP=invite to use it")
        return 0

    return with_app(work)


def export(email: Email) -> int:
    """Print everything that is kept of an account, as JSON."""

    async def work(app: App, operator: Operator) -> int:
        found = await app.account_data.export(operator)
        shown = account_export(found, None, app.clock.now())
        sys.stdout.write(shown.model_dump_json(by_alias=True, indent=2) + "\n")
        return 0

    return _on_account(email, work)


def delete(
    email: Email,
    *,
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
) -> int:
    """Delete an account for good."""
    if not yes and not _agreed(email):
        complain("nothing was deleted")
        return FAILED

    async def work(app: App, operator: Operator) -> int:
        await app.account_data.delete_for_admin(operator.id)
        sys.stdout.write(
            f"{operator.email} is deleted; calls and payments stay under {operator.id}.\n"
            f"Processes that serve refuse its keys within {REMEMBERED_S:g} seconds.\n"
        )
        return 0

    return _on_account(email, work)


def _on_account(email: str, work: Callable[[App, Operator], Awaitable[int]]) -> int:
    """Run a command on the account with this e-mail address."""

    async def found(app: App) -> int:
        return await work(app, await app.operators.find_for_admin(email))

    return with_app(found)


def _agreed(email: str) -> bool:
    if not sys.stdin.isatty():
        complain("say --yes to delete an account without being asked")
        return False
    return getpass.getpass(f"Type {email} to delete this account for good: ") == email


def _said(ended: EndedCredentials) -> str:
    keys, left = ended.keys_revoked, ended.keys_left
    revoked = f"{_counted(keys, 'API key')} revoked" if keys else "no key revoked"
    working = f"; still good: {_counted(left, 'key')} (--revoke-keys)" if left else ""
    return f"{_counted(ended.sessions, 'session')} ended, {revoked}{working}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _new_password() -> str:
    """Ask for a new password twice on a terminal; otherwise take the first line of standard input.

    Never an argument: those can be read by every user of the machine.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass.getpass("Password (12 characters or more): ")
    if getpass.getpass("Once more: ") != first:
        sys.exit("assay: the two passwords differ")
    return first


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
