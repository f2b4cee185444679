"""Webhooks: registrations and what was delivered to them (spec 4.5, 6)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from assay.accounts.model import Operator
from assay.web.credentials import Credential
from assay.web.route import actor_of, app_of, read, route
from assay.web.wire import webhooks as wire

router = APIRouter(tags=["Webhooks"])


@route(
    router,
    "POST",
    "/operator/webhooks/register",
    credential=Credential.OP_KEY_OR_JWT,
    body=wire.WebhookBody,
    answers=wire.WebhookShape,
    created=True,
    also=(409,),
)
async def register_webhook(request: Request) -> wire.WebhookShape:
    """Be told of evaluations: of the agents named, or of all."""
    asked = read(wire.WebhookBody, await request.body())
    webhooks = app_of(request).webhooks
    made = await webhooks.register(_operator(request).id, asked.new(), actor_of(request))
    return wire.webhook(made, webhooks.verification(made))


@route(
    router,
    "GET",
    "/operator/webhooks",
    credential=Credential.OP_KEY_OR_JWT,
    answers=list[wire.WebhookShape],
)
async def list_webhooks(request: Request) -> list[wire.WebhookShape]:
    """The account's registrations, newest first. Beyond the specification's tables."""
    webhooks = app_of(request).webhooks
    found = await webhooks.list(_operator(request).id)
    return [wire.webhook(one, webhooks.verification(one)) for one in found]


@route(
    router,
    "POST",
    "/operator/webhooks/{webhookId}/verify",
    credential=Credential.OP_KEY_OR_JWT,
    answers=wire.VerifiedShape,
)
async def verify_webhook(
    request: Request, webhook_id: Annotated[str, Path(alias="webhookId", max_length=64)]
) -> wire.VerifiedShape:
    """Ask the receiver for your token now. Beyond the specification's tables."""
    verified = await app_of(request).webhooks.verify(_operator(request).id, webhook_id)
    return wire.VerifiedShape(id=webhook_id, verified=verified)


@route(
    router,
    "GET",
    "/operator/webhooks/deliveries",
    credential=Credential.OP_KEY_OR_JWT,
    answers=wire.DeliveriesShape,
)
async def webhook_deliveries(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    webhook_id: Annotated[str | None, Query(alias="webhookId", max_length=64)] = None,
    before: Annotated[str | None, Query(max_length=64, description="Id of a delivery.")] = None,
) -> wire.DeliveriesShape:
    """What was delivered, newest first. Beyond the specification's tables."""
    webhooks = app_of(request).webhooks
    found = await webhooks.deliveries(_operator(request).id, webhook_id, before, limit)
    rows = [wire.delivery(one) for one in found]
    after = rows[-1].id if len(rows) == limit else None
    return wire.DeliveriesShape(deliveries=rows, limit=limit, next_before=after)


@route(
    router,
    "DELETE",
    "/operator/webhooks/{webhookId}",
    credential=Credential.OP_KEY_OR_JWT,
    answers=wire.RemovedShape,
)
async def remove_webhook(
    request: Request, webhook_id: Annotated[str, Path(alias="webhookId", max_length=64)]
) -> wire.RemovedShape:
    """Remove a registration, at once. Beyond the specification's tables."""
    webhooks = app_of(request).webhooks
    await webhooks.remove(_operator(request).id, webhook_id, actor_of(request))
    return wire.RemovedShape(ok=True, id=webhook_id)


def _operator(request: Request) -> Operator:
    """Who the declared credential found."""
    return request.state.principal
