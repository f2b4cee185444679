"""What admins see and change (interface.md#dashboard)."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from assay.accounts.auth import Credential
from assay.admin import schemas as wire
from assay.analytics import schemas as analytics
from assay.analytics.model import LogFilter
from assay.analytics.queries import ReportPage
from assay.analytics.routes import AgentFilter, Before, Days, EndpointFilter
from assay.app import App
from assay.chains.model import ChainUnavailable
from assay.common.errors import InvalidRequest
from assay.server.route import actor_of, app_of, read, route
from assay.server.schemas_page import (
    Limit,
    Offset,
    PageCursor,
    before_of,
    cursor_after,
    cursor_at,
    offset_of,
)

router = APIRouter(tags=["Admin"])

OperatorId = Annotated[str, Path(alias="id", max_length=64)]
ROOT = "/operator/admin"
WALLET_S = 3.0
"""How long the stats wait for Solana to say what the writing wallet holds."""


@route(
    router,
    "GET",
    f"{ROOT}/stats",
    operation="admin_stats",
    credential=Credential.ADMIN,
    answers=wire.PlatformStatsResponse,
)
async def admin_stats(request: Request) -> wire.PlatformStatsResponse:
    """The whole platform's sums."""
    app = app_of(request)
    written = None if app.write_back is None else app.write_back.counts
    aside = wire.Aside(
        *(app.costs, app.call_log.over_quota, app.event_outbox.undelivered, written),
        wallet=await _solana_wallet(app),
        free_settlements=await app.gas.accounts.shared_used(),
        keys=await app.settling.keys(),
        facilitator=await app.settling.facilitator(),
        nodes=await app.settling.nodes(),
    )
    return wire.platform(await app.admin.stats(), aside)


@route(
    router,
    "GET",
    f"{ROOT}/operators",
    operation="admin_operators",
    credential=Credential.ADMIN,
    answers=wire.OperatorsResponse,
)
async def admin_operators(
    request: Request, limit: Limit = 50, offset: Offset = 0, cursor: PageCursor = None
) -> wire.OperatorsResponse:
    """Every account with its sums, newest first."""
    start = offset_of(cursor, offset)
    found, total = await app_of(request).admin.operators(limit, start)
    rows = [wire.row(one) for one in found]
    return wire.OperatorsResponse(
        items=rows,
        operators=rows,
        total=total,
        limit=limit,
        offset=start,
        next_cursor=cursor_at(start, len(rows), total),
    )


@route(
    router,
    "GET",
    f"{ROOT}/operators/{{id}}",
    operation="admin_operator",
    credential=Credential.ADMIN,
    answers=wire.OperatorDetailResponse,
)
async def admin_operator(request: Request, operator_id: OperatorId) -> wire.OperatorDetailResponse:
    """One account: keys, wrappers, agents, revenue."""
    return wire.detail(await app_of(request).admin.operator(operator_id))


@route(
    router,
    "PATCH",
    f"{ROOT}/operators/{{id}}",
    operation="admin_change",
    credential=Credential.ADMIN,
    body=wire.ChangeRequest,
    answers=wire.ChangedResponse,
    also=(409,),
)
async def admin_change(request: Request, operator_id: OperatorId) -> wire.ChangedResponse:
    """Change plan, role, fee rate or suspension, at once. Beyond the specification's tables."""
    body = read(wire.ChangeRequest, await request.body())
    if not body.model_fields_set:
        raise InvalidRequest("Name what to change: plan, role, fee_rate or suspended.")
    changed = await app_of(request).admin.change(operator_id, body.change(), actor_of(request))
    return wire.ChangedResponse(ok=True, operator=wire.operator(changed))


@route(
    router,
    "GET",
    f"{ROOT}/operators/{{id}}/logs",
    operation="admin_logs",
    credential=Credential.ADMIN,
    answers=analytics.LogsResponse,
)
async def admin_logs(  # noqa: PLR0913, PLR0917 - the filters of the operator's own log
    request: Request,
    operator_id: OperatorId,
    limit: Limit = 50,
    offset: Offset = 0,
    days: Days | None = None,
    agent_id: AgentFilter = None,
    endpoint_id: EndpointFilter = None,
    before: Before = None,
    cursor: PageCursor = None,
) -> analytics.LogsResponse:
    """The call log of one account."""
    which = LogFilter(days=days, agent_id=agent_id, wrapper_id=endpoint_id)
    page = ReportPage(before=before_of(cursor, before), at_most=limit, offset=offset)
    found, total = await app_of(request).admin.logs(operator_id, which, page)
    return analytics.logs(found, total, limit, offset)


@route(
    router,
    "GET",
    f"{ROOT}/audit",
    operation="admin_audit",
    credential=Credential.ADMIN,
    answers=wire.AuditResponse,
)
async def admin_audit(
    request: Request,
    limit: Limit = 50,
    offset: Offset = 0,
    operator_id: Annotated[str | None, Query(alias="operatorId", max_length=64)] = None,
    before: Annotated[str | None, Query(max_length=64, description="Id of a note.")] = None,
    cursor: PageCursor = None,
) -> wire.AuditResponse:
    """Who did what to accounts and credentials, newest first. Beyond the specification."""
    place = before_of(cursor, before)
    found, total = await app_of(request).admin.audit(operator_id, place, limit, offset)
    notes = [wire.note(one) for one in found]
    last = notes[-1].id if len(notes) == limit else None
    return wire.AuditResponse(
        items=notes,
        notes=notes,
        total=total,
        limit=limit,
        offset=offset,
        next_cursor=cursor_after(last),
        next_before=last,
    )


async def _solana_wallet(app: App) -> tuple[str, int | None] | None:
    """The address that writes scores back, and its lamports while the cluster answers."""
    if app.write_back is None:
        return None
    try:
        async with asyncio.timeout(WALLET_S):
            lamports = await app.write_back.balance(app.networks.by_slug("solana"))
    except (ChainUnavailable, TimeoutError):
        return app.write_back.address, None
    return app.write_back.address, lamports
