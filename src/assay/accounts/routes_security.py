"""Passwords and second factors of an account. Beyond the specification's tables."""

from typing import TypeVar

from fastapi import APIRouter, Request

from assay.accounts import schemas_security as wire
from assay.accounts.auth import (
    actor_of,
    charge_owner,
    client_of,
    dashboard_token,
    public,
    token_and_password,
)
from assay.accounts.clients import Client
from assay.accounts.model import Operator
from assay.accounts.passwords import Passwords
from assay.accounts.second_factor import SecondFactors
from assay.audit.service import Actor
from assay.server.request_context import exchange_of
from assay.server.route import read, route, service

C = TypeVar("C", str, str | None)

router = APIRouter(tags=["Accounts and keys"])


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
    """Ask for a mail with a reset link; answered alike whether or not there is an account."""
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
    """Enrol a second factor: a secret, in force once a code of it is confirmed."""
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
    """Confirm the enrolled second factor with a code of it; answers the recovery codes."""
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
    """New recovery codes; earlier ones are void."""
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


def _operator(request: Request) -> Operator:
    """Who the declared credential found."""
    return request.state.principal


def _proof(request: Request, password: str, code: C) -> tuple[Operator, str, C, Client, Actor]:
    """What an operation takes that asks for the password and a code."""
    return _operator(request), password, code, client_of(request), actor_of(request)
