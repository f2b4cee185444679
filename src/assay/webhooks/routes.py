"""Operations on webhooks: registrations and deliveries (interface.md#webhooks, #events)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from assay.accounts.auth import actor_of, api_key_or_token
from assay.accounts.model import Operator, Scope
from assay.server.route import read, route, service
from assay.server.schemas import (
    Limit,
    Offset,
    PageCursor,
    before_of,
    cursor_after,
    cursor_at,
    offset_of,
)
from assay.webhooks import schemas as wire
from assay.webhooks.service import DeliveryPage, Webhooks

router = APIRouter(tags=["Webhooks"])

WebhookId = Annotated[
    str, Path(alias="webhookId", max_length=64, description="Id of the registration.")
]


@route(
    router,
    "POST",
    "/operator/webhooks/register",
    operation="register_webhook",
    auth=api_key_or_token(Scope.WEBHOOKS),
    body=wire.WebhookRequest,
    answers=wire.WebhookResponse,
    created=True,
    also=(409,),
)
async def register_webhook(request: Request) -> wire.WebhookResponse:
    """Receive events about evaluations: of the named agents, or of all."""
    asked = read(wire.WebhookRequest, await request.body())
    webhooks = service(request, Webhooks)
    made = await webhooks.register(_operator(request).id, asked.new(), actor_of(request))
    return wire.webhook(made, webhooks.verification(made))


@route(
    router,
    "GET",
    "/operator/webhooks",
    operation="list_webhooks",
    auth=api_key_or_token(Scope.WEBHOOKS),
    answers=wire.WebhooksResponse,
)
async def list_webhooks(
    request: Request, limit: Limit = 50, offset: Offset = 0, cursor: PageCursor = None
) -> wire.WebhooksResponse:
    """List the account's registrations, newest first. Beyond the specification's tables."""
    start = offset_of(cursor, offset)
    webhooks, who = service(request, Webhooks), _operator(request).id
    async with webhooks.lists.slot(who, is_known=True):
        found = await webhooks.list(who)
    shown = found[start : start + limit]
    rows = [wire.webhook(one, webhooks.verification(one)) for one in shown]
    return wire.WebhooksResponse(
        items=rows,
        total=len(found),
        limit=limit,
        offset=start,
        next_cursor=cursor_at(start, len(rows), len(found)),
    )


@route(
    router,
    "POST",
    "/operator/webhooks/{webhookId}/verify",
    operation="verify_webhook",
    auth=api_key_or_token(Scope.WEBHOOKS),
    answers=wire.WebhookVerifiedResponse,
)
async def verify_webhook(request: Request, webhook_id: WebhookId) -> wire.WebhookVerifiedResponse:
    """Ask the receiver for your token now. Beyond the specification's tables."""
    verified = await service(request, Webhooks).verify(_operator(request).id, webhook_id)
    return wire.WebhookVerifiedResponse(id=webhook_id, verified=verified)


@route(
    router,
    "GET",
    "/operator/webhooks/deliveries",
    operation="webhook_deliveries",
    auth=api_key_or_token(Scope.WEBHOOKS),
    answers=wire.DeliveriesResponse,
)
async def webhook_deliveries(
    request: Request,
    limit: Limit = 50,
    offset: Offset = 0,
    webhook_id: Annotated[
        str | None,
        Query(alias="webhookId", max_length=64, description="Only those of this registration."),
    ] = None,
    before: Annotated[str | None, Query(max_length=64, description="Id of a delivery.")] = None,
    cursor: PageCursor = None,
) -> wire.DeliveriesResponse:
    """List what was delivered, newest first. Beyond the specification's tables."""
    page = DeliveryPage(before_of(cursor, before), limit, offset)
    webhooks = service(request, Webhooks)
    found, total = await webhooks.delivery_page(_operator(request).id, webhook_id, page)
    rows = [wire.delivery(one) for one in found]
    last = rows[-1].id if len(rows) == limit else None
    return wire.DeliveriesResponse(
        items=rows,
        deliveries=rows,
        total=total,
        limit=limit,
        offset=offset,
        next_cursor=cursor_after(last),
        next_before=last,
    )


@route(
    router,
    "DELETE",
    "/operator/webhooks/{webhookId}",
    operation="remove_webhook",
    auth=api_key_or_token(Scope.WEBHOOKS),
    answers=wire.RemovedResponse,
)
async def remove_webhook(request: Request, webhook_id: WebhookId) -> wire.RemovedResponse:
    """Remove a registration at once. Beyond the specification's tables."""
    webhooks = service(request, Webhooks)
    await webhooks.remove(_operator(request).id, webhook_id, actor_of(request))
    return wire.RemovedResponse(ok=True, id=webhook_id)


def _operator(request: Request) -> Operator:
    """Return the operator that the declared credential found."""
    return request.state.principal
