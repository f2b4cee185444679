"""Operator accounts and their API keys (spec 4.6, 5.1, 5.2)."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from assay.accounts.model import Operator
from assay.web.credentials import Credential
from assay.web.exchange import exchange_of
from assay.web.limits import caller_of
from assay.web.route import actor_of, app_of, read, route
from assay.web.wire import accounts as wire

router = APIRouter(tags=["Accounts and keys"])


@route(
    router,
    "POST",
    "/operator/register",
    credential=Credential.NONE,
    body=wire.RegisterBody,
    answers=wire.Registered,
    also=(409,),
)
async def register(request: Request) -> wire.Registered:
    """Open an account. The API key is shown this once."""
    body = read(wire.RegisterBody, await request.body())
    operator, key = await app_of(request).operators.register(
        body.email, body.password, body.name, actor_of(request)
    )
    return wire.Registered(operator=wire.brief(operator), api_key=key)


@route(
    router,
    "POST",
    "/operator/login",
    credential=Credential.NONE,
    body=wire.LoginBody,
    answers=wire.LoggedIn,
    also=(401, 403),
)
async def login(request: Request) -> wire.LoggedIn:
    """Log in for a dashboard token."""
    body = read(wire.LoginBody, await request.body())
    exchange = exchange_of(request.scope)
    operator, token = await app_of(request).operators.login(
        body.email, body.password, caller_of(exchange.client_address), exchange.request_id
    )
    return wire.LoggedIn(operator=wire.brief(operator), token=token)


@route(router, "GET", "/operator/me", credential=Credential.JWT, answers=wire.Me)
async def me(request: Request) -> wire.Me:
    """The account that asks, and how much of this month's allowance it has used."""
    operator = _operator(request)
    return wire.me(operator, await app_of(request).allowance.standing(operator))


@route(
    router,
    "PATCH",
    "/operator/me",
    credential=Credential.JWT,
    body=wire.RenameBody,
    answers=wire.Me,
)
async def rename(request: Request) -> wire.Me:
    """Change the account's name."""
    body = read(wire.RenameBody, await request.body())
    operator_id, actor = _operator(request).id, actor_of(request)
    renamed = await app_of(request).operators.rename(operator_id, body.name, actor)
    return wire.me(renamed, await app_of(request).allowance.standing(renamed))


@route(router, "GET", "/operator/keys", credential=Credential.JWT, answers=list[wire.KeyShape])
async def list_keys(request: Request) -> list[wire.KeyShape]:
    """The account's API keys, newest first."""
    records = await app_of(request).api_keys.list(_operator(request).id)
    return [wire.key(record) for record in records]


@route(
    router,
    "POST",
    "/operator/keys/rotate",
    credential=Credential.JWT,
    body=wire.RotateBody,
    body_required=False,
    answers=wire.Rotated,
)
async def rotate_key(request: Request) -> wire.Rotated:
    """A new API key, shown this once. The others hold until they are revoked."""
    body = read(wire.RotateBody, await request.body() or b"{}")
    keys = app_of(request).api_keys
    record, key = await keys.issue(_operator(request).id, body.label, actor_of(request))
    return wire.Rotated(key=key, id=record.id, label=record.label)


@route(router, "DELETE", "/operator/keys/{keyId}", credential=Credential.JWT, answers=wire.Revoked)
async def revoke_key(
    request: Request, key_id: Annotated[str, Path(alias="keyId", max_length=64)]
) -> wire.Revoked:
    """Revoke an API key, at once."""
    await app_of(request).api_keys.revoke(_operator(request).id, key_id, actor_of(request))
    return wire.Revoked(ok=True, id=key_id, revoked=True)


def _operator(request: Request) -> Operator:
    """Who the declared credential found."""
    return request.state.principal
