"""Operator accounts and their API keys (interface.md#dashboard, #api-keys, #dashboard-tokens)."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from assay.accounts import schemas as wire
from assay.accounts.allowance import Allowance
from assay.accounts.api_keys import ApiKeys
from assay.accounts.auth import actor_of, client_of, dashboard_token, public
from assay.accounts.logins import Logins
from assay.accounts.model import Operator
from assay.accounts.operators import Operators
from assay.accounts.passwords import Passwords
from assay.accounts.second_factor import SecondFactors
from assay.accounts.sign_up import SignUps
from assay.common.clock import Clock
from assay.common.errors import TooLarge
from assay.server.route import read, route, service

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
    """Log in for a dashboard token; with a one-time code where the account has a second factor."""
    body = read(wire.LoginRequest, await _short_body(request))
    operator, token = await service(request, Logins).login(
        body.email, body.password, body.code, client_of(request)
    )
    return wire.LoggedIn(operator=wire.brief(operator), token=token)


@route(router, "GET", "/operator/me", operation="me", auth=dashboard_token, answers=wire.Me)
async def me(request: Request) -> wire.Me:
    """The account that asks, and how much of this month's allowance it has used."""
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
    """The account's API keys, newest first."""
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
    also=(409,),
)
async def rotate_key(request: Request) -> wire.Rotated:
    """A new API key, shown this once. The others hold until they are revoked."""
    body = read(wire.RotateRequest, await request.body() or b"{}")
    record, key = await service(request, ApiKeys).issue(
        _operator(request).id,
        body.label,
        actor_of(request),
        scopes=body.asked_scopes(),
        expires_at=body.ends_at(service(request, Clock).now()),
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
    request: Request, key_id: Annotated[str, Path(alias="keyId", max_length=64)]
) -> wire.Revoked:
    """Revoke an API key, at once."""
    await service(request, ApiKeys).revoke(_operator(request).id, key_id, actor_of(request))
    return wire.Revoked(ok=True, id=key_id, revoked=True)


async def _me(request: Request, operator: Operator) -> wire.Me:
    codes_left = await service(request, SecondFactors).recovery_codes_left(operator.id)
    return wire.me(operator, await service(request, Allowance).usage(operator), codes_left)


async def _short_body(request: Request) -> bytes:
    """The body, unless it is far longer than any that holds: many of them wait at once."""
    body = await request.body()
    if len(body) > wire.BODY_BYTES_MAX:
        raise TooLarge("The body is far too long for this.", maxBytes=wire.BODY_BYTES_MAX)
    return body


def _operator(request: Request) -> Operator:
    """Who the declared credential found."""
    return request.state.principal
