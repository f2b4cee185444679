"""`assay accounts`: passwords, second factors, invitations, export and end of accounts."""

import getpass
import sys
from collections.abc import Awaitable, Callable

from assay.accounts.api_keys import REMEMBERED_S
from assay.accounts.model import EndedCredentials, Operator
from assay.app import App
from assay.cli.command import FAILED, WebBuilder, complain, with_app
from assay.cli.passwords import ask_password
from assay.common.clock import iso


def set_password(email: str, *, revoke_keys: bool) -> int:
    """Give an account a new password; all its sessions end."""
    password = ask_password()

    async def work(app: App, operator: Operator) -> int:
        ended = await app.passwords.set_for_admin(operator, password, revoke_keys=revoke_keys)
        sys.stdout.write(f"{operator.email} has a new password; {_said(ended)}\n")
        return 0

    return _on_account(email, work)


def reset_link(email: str) -> int:
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


def reset_totp(email: str) -> int:
    """Remove an account's second factor, for an owner who has lost it."""

    async def work(app: App, operator: Operator) -> int:
        removed = await app.second_factors.disable_for_admin(operator.id)
        what = "has no second factor any more" if removed else "had no second factor"
        sys.stdout.write(f"{operator.email} {what}\n")
        return 0

    return _on_account(email, work)


def log_out(email: str) -> int:
    """End every dashboard session of an account."""

    async def work(app: App, operator: Operator) -> int:
        ended = await app.logins.end_all(operator.id)
        sys.stdout.write(f"{ended} sessions of {operator.email} have ended\n")
        return 0

    return _on_account(email, work)


def invite(email: str | None) -> int:
    """Print an invitation."""

    async def work(app: App) -> int:
        token, until = await app.sign_ups.invite_for_admin(email)
        for_whom = "anybody" if email is None else email
        sys.stdout.write(f"{token}\nfor {for_whom}, good once, until {iso(until)}\n")
        if app.settings.sign_up != "invite":
            complain(f"sign-up is {app.settings.sign_up}: set ASSAY_SIGN_UP=invite to use it")
        return 0

    return with_app(work)


def export(web: WebBuilder, email: str) -> int:
    """Print everything that is kept of an account, as JSON."""

    async def work(app: App, operator: Operator) -> int:
        found = await app.account_data.export(operator)
        sys.stdout.write(web.account_export(app, found) + "\n")
        return 0

    return _on_account(email, work)


def delete(email: str, *, yes: bool) -> int:
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
