"""Operations on operator accounts, API keys, sessions, passwords and second factors.

Source: interface.md#dashboard, #api-keys, #dashboard-tokens. Passwords, second factors and sessions
are beyond the specification's tables.
"""

from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Query, Request

from assay.accounts import schemas as wire
from assay.accounts.allowance import Allowance
from assay.accounts.api_keys import ApiKeys
from assay.accounts.auth import (
    actor_of,
    charge_owner,
    client_of,
    dashboard_token,
    public,
    token_and_password,
)
from assay.accounts.logins import Logins
from assay.accounts.model import Operator
from assay.accounts.operators import Operators, SignUps
from assay.accounts.passwords import Passwords
from assay.accounts.ports import Client
from assay.accounts.second_factor import SecondFactors
from assay.audit.service import Actor
from assay.common.clock import Clock
from assay.common.errors import TooLarge
from assay.server.request_context import exchange_of
from assay.server.route import read, route, service
from assay.server.schemas import Limit, Offset, PageCursor, part_of

router = APIRouter(tags=["Accounts and keys"])


@route(
    router,
    "POST",
    "/operator/register",
    operation="register",
    auth=public,
    body=wire.RegisterRequest,
    answers=wire.Registered,
    also=(403, 409),
)
async def register(request: Request) -> wire.Registered:
    """Open an account. The API key is shown this once."""
    body = read(wire.RegisterRequest, await _short_body(request))
    new, passwords = (body.email, body.password, body.name), service(request, Passwords)
    operator, key = await service(request, SignUps).register(new, body.invite, client_of(request))
    if passwords.sends_mail:
        passwords.request_verification(operator, client_of(request))
    return wire.Registered(operator=wire.brief(operator), api_key=key)


@route(
    router,
    "POST",
    "/operator/login",
    operation="login",
    auth=public,
    body=wire.LoginRequest,
    answers=wire.LoggedIn,
    also=(401, 403),
)
async def login(request: Request) -> wire.LoggedIn:
    """Log in for a dashboard token; with a one-time code if the account has a second factor."""
    body = read(wire.LoginRequest, await _short_body(request))
    operator, token = await service(request, Logins).login(
        body.email, body.password, body.code, client_of(request)
    )
    return wire.LoggedIn(operator=wire.brief(operator), token=token)


@route(router, "GET", "/operator/me", operation="me", auth=dashboard_token, answers=wire.Me)
async def me(request: Request) -> wire.Me:
    """Show the account that asks, and how much of this month's allowance it has used."""
    return await _me(request, _operator(request))


@route(
    router,
    "PATCH",
    "/operator/me",
    operation="rename",
    auth=dashboard_token,
    body=wire.RenameRequest,
    answers=wire.Me,
)
async def rename(request: Request) -> wire.Me:
    """Change the account's name."""
    body = read(wire.RenameRequest, await request.body())
    operator_id, actor = _operator(request).id, actor_of(request)
    renamed = await service(request, Operators).rename(operator_id, body.name, actor)
    return await _me(request, renamed)


@route(
    router,
    "GET",
    "/operator/keys",
    operation="list_keys",
    auth=dashboard_token,
    answers=list[wire.KeyResponse],
)
async def list_keys(request: Request) -> list[wire.KeyResponse]:
    """List the account's API keys, newest first."""
    records = await service(request, ApiKeys).list(_operator(request).id)
    return [wire.key(record) for record in records]


@route(
    router,
    "POST",
    "/operator/keys/rotate",
    operation="rotate_key",
    auth=dashboard_token,
    body=wire.RotateRequest,
    body_required=False,
    answers=wire.Rotated,
    also=(404, 409),
)
async def rotate_key(request: Request) -> wire.Rotated:
    """Create an API key, shown this once. The others stay valid until they are revoked."""
    body = read(wire.RotateRequest, await request.body() or b"{}")
    record, key = await service(request, ApiKeys).issue(
        _operator(request).id,
        body.label,
        actor_of(request),
        scopes=body.asked_scopes(),
        expires_at=body.ends_at(service(request, Clock).now()),
        gate_policies_of=body.gate_policies_of,
    )
    return wire.Rotated(key=key, id=record.id, label=record.label)


@route(
    router,
    "DELETE",
    "/operator/keys/{keyId}",
    operation="revoke_key",
    auth=dashboard_token,
    answers=wire.Revoked,
)
async def revoke_key(
    request: Request,
    key_id: Annotated[str, Path(alias="keyId", max_length=64, description="Id of the API key.")],
) -> wire.Revoked:
    """Revoke an API key at once."""
    await service(request, ApiKeys).revoke(_operator(request).id, key_id, actor_of(request))
    return wire.Revoked(ok=True, id=key_id, revoked=True)


async def _me(request: Request, operator: Operator) -> wire.Me:
    codes_left = await service(request, SecondFactors).recovery_codes_left(operator.id)
    return wire.me(operator, await service(request, Allowance).usage(operator), codes_left)


async def _short_body(request: Request) -> bytes:
    """Return the body, unless it is far longer than a valid one: many bodies wait at once."""
    body = await request.body()
    if len(body) > wire.BODY_BYTES_MAX:
        raise TooLarge("The body is far too long for this.", maxBytes=wire.BODY_BYTES_MAX)
    return body


def _operator(request: Request) -> Operator:
    """Return the operator that the declared credential found."""
    return request.state.principal


C = TypeVar("C", str, str | None)


@route(
    router,
    "POST",
    "/operator/password",
    operation="change_password",
    auth=token_and_password,
    body=wire.PasswordChangeRequest,
    answers=wire.PasswordChanged,
)
async def change_password(request: Request) -> wire.PasswordChanged:
    """Change the password. Every other session ends, and with `revokeKeys` every API key."""
    body = read(wire.PasswordChangeRequest, await request.body())
    ended = await service(request, Passwords).change(
        _operator(request),
        exchange_of(request.scope).session_id or "",
        body.password,
        body.new_password,
        client_of(request),
        actor_of(request),
        revoke_keys=body.revoke_keys,
    )
    charge_owner(request)
    return wire.password_changed(ended)


@route(
    router,
    "POST",
    "/operator/password/reset-request",
    operation="request_password_reset",
    auth=public,
    body=wire.ResetLinkRequest,
    answers=wire.Done,
    also=(403,),
)
async def request_password_reset(request: Request) -> wire.Done:
    """Ask for a mail with a reset link; the answer is the same if there is no account."""
    body = read(wire.ResetLinkRequest, await request.body())
    service(request, Passwords).request_reset(body.email, client_of(request))
    return wire.Done()


@route(
    router,
    "POST",
    "/operator/password/reset",
    operation="reset_password",
    auth=public,
    body=wire.PasswordResetRequest,
    answers=wire.PasswordChanged,
)
async def reset_password(request: Request) -> wire.PasswordChanged:
    """Choose a new password with the token of a link. Every session ends."""
    body = read(wire.PasswordResetRequest, await request.body())
    ended = await service(request, Passwords).reset(
        body.token, body.new_password, client_of(request), revoke_keys=body.revoke_keys
    )
    return wire.password_changed(ended)


@route(
    router,
    "POST",
    "/operator/email/verify-request",
    operation="request_email_verification",
    auth=dashboard_token,
    answers=wire.Done,
)
async def request_email_verification(request: Request) -> wire.Done:
    """Ask for a mail with a link that confirms the account's e-mail address."""
    service(request, Passwords).request_verification(_operator(request), client_of(request))
    return wire.Done()


@route(
    router,
    "POST",
    "/operator/email/verify",
    operation="verify_email",
    auth=public,
    body=wire.VerifyEmailRequest,
    answers=wire.Done,
)
async def verify_email(request: Request) -> wire.Done:
    """Confirm an e-mail address with the token of a link."""
    body = read(wire.VerifyEmailRequest, await request.body())
    await service(request, Passwords).verify_email(body.token, client_of(request))
    return wire.Done()


@route(
    router,
    "POST",
    "/operator/totp",
    operation="enrol_totp",
    auth=dashboard_token,
    body=wire.PasswordRequest,
    answers=wire.TotpEnrolment,
    also=(409,),
)
async def enrol_totp(request: Request) -> wire.TotpEnrolment:
    """Enrol a second factor: a secret that is in force once a code of it is confirmed."""
    body = read(wire.PasswordRequest, await request.body())
    factors = service(request, SecondFactors)
    made = await factors.enrol(_operator(request), body.password, client_of(request))
    return wire.enrolment(made)


@route(
    router,
    "POST",
    "/operator/totp/confirm",
    operation="confirm_totp",
    auth=dashboard_token,
    body=wire.TotpConfirmRequest,
    answers=wire.RecoveryCodes,
    also=(409,),
)
async def confirm_totp(request: Request) -> wire.RecoveryCodes:
    """Confirm the enrolled second factor with a code of it; returns the recovery codes."""
    body = read(wire.TotpConfirmRequest, await request.body())
    factors = service(request, SecondFactors)
    codes = await factors.confirm(_operator(request), body.code, actor_of(request))
    return wire.RecoveryCodes(recovery_codes=list(codes))


@route(
    router,
    "POST",
    "/operator/totp/recovery-codes",
    operation="replace_recovery_codes",
    auth=token_and_password,
    body=wire.SecondFactorRequest,
    answers=wire.RecoveryCodes,
    also=(409,),
)
async def replace_recovery_codes(request: Request) -> wire.RecoveryCodes:
    """Create new recovery codes; earlier ones become invalid."""
    body = read(wire.SecondFactorRequest, await request.body())
    factors = service(request, SecondFactors)
    codes = await factors.replace_recovery_codes(*_proof(request, body.password, body.code))
    charge_owner(request)
    return wire.RecoveryCodes(recovery_codes=list(codes))


@route(
    router,
    "POST",
    "/operator/totp/disable",
    operation="disable_totp",
    auth=token_and_password,
    body=wire.SecondFactorRequest,
    answers=wire.Done,
    also=(409,),
)
async def disable_totp(request: Request) -> wire.Done:
    """Remove the second factor and its recovery codes."""
    body = read(wire.SecondFactorRequest, await request.body())
    await service(request, SecondFactors).disable(*_proof(request, body.password, body.code))
    charge_owner(request)
    return wire.Done()


def _proof(request: Request, password: str, code: C) -> tuple[Operator, str, C, Client, Actor]:
    """Describe an operation that asks for the password and a code."""
    return _operator(request), password, code, client_of(request), actor_of(request)


@route(
    router,
    "POST",
    "/operator/logout",
    operation="logout",
    auth=dashboard_token,
    answers=wire.DashboardSessionEnded,
)
async def logout(request: Request) -> wire.DashboardSessionEnded:
    """End the session of the token that asks, at once in every process."""
    session_id = exchange_of(request.scope).session_id or ""
    await service(request, Logins).end(_operator(request).id, session_id, actor_of(request))
    return wire.DashboardSessionEnded(id=session_id)


@route(
    router,
    "GET",
    "/operator/sessions",
    operation="list_sessions",
    auth=dashboard_token,
    answers=wire.SessionsResponse,
)
async def list_sessions(
    request: Request, limit: Limit = 100, offset: Offset = 0, cursor: PageCursor = None
) -> wire.SessionsResponse:
    """List the account's dashboard sessions, newest first."""
    found = await service(request, Logins).list(_operator(request).id)
    part = part_of(found, limit, offset, cursor)
    return wire.sessions(part, exchange_of(request.scope).session_id)


@route(
    router,
    "DELETE",
    "/operator/sessions",
    operation="end_dashboard_sessions",
    auth=dashboard_token,
    answers=wire.SessionsEnded,
)
async def end_dashboard_sessions(
    request: Request,
    others: Annotated[bool, Query(description="Keep the session that asks.")] = False,  # noqa: FBT002
) -> wire.SessionsEnded:
    """End every dashboard session of the account, at once in every process."""
    keep = exchange_of(request.scope).session_id if others else None
    logins = service(request, Logins)
    ended = await logins.end_all(_operator(request).id, keep, actor_of(request))
    return wire.SessionsEnded(ended=ended)


@route(
    router,
    "DELETE",
    "/operator/sessions/{sessionId}",
    operation="end_dashboard_session",
    auth=dashboard_token,
    answers=wire.DashboardSessionEnded,
)
async def end_dashboard_session(
    request: Request,
    session_id: Annotated[
        str, Path(alias="sessionId", max_length=64, description="Id of the session.")
    ],
) -> wire.DashboardSessionEnded:
    """End one dashboard session, at once in every process."""
    await service(request, Logins).end(_operator(request).id, session_id, actor_of(request))
    return wire.DashboardSessionEnded(id=session_id)
