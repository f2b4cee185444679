"""Operations for admins, and operations on an account's own data and end.

Source: interface.md#dashboard. An account's data and end are beyond the specification's tables.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from assay.accounts.auth import actor_of, admin, client_of, token_and_password, token_for_export
from assay.accounts.schemas import DeleteAccountRequest, Done
from assay.admin import schemas as wire
from assay.admin.account_data import AccountData
from assay.admin.overview import Admin
from assay.admin.schemas import AccountExportResponse, account_export
from assay.analytics import schemas as analytics
from assay.analytics.log import CallLog
from assay.analytics.model import LogFilter
from assay.analytics.queries import ReportPage
from assay.analytics.routes import AgentFilter, Before, DaysFilter, EndpointFilter
from assay.chains.model import ChainUnavailable
from assay.chains.networks import Networks
from assay.common.clock import Clock
from assay.common.costs import CostLedger
from assay.common.errors import InvalidRequest
from assay.payments.gas import GasAccounts
from assay.payments.settling_watch import SettlingWatch
from assay.reputation.write_back import FeedbackPublisher
from assay.server.request_context import exchange_of
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

router = APIRouter(tags=["Admin"])

OperatorId = Annotated[str, Path(alias="id", max_length=64, description="Id of the account.")]
ROOT = "/operator/admin"
WALLET_S = 3.0
"""Longest wait of the stats for Solana's answer about the writing wallet."""


@dataclass(frozen=True, slots=True)
class StatsSources:
    """What the platform's figures are read from, besides its store."""

    costs: CostLedger
    call_log: CallLog
    undelivered: Callable[[], int]
    """Deliveries that were not added because their owners had used up a quota of the day."""
    write_back: FeedbackPublisher | None
    networks: Networks
    gas: GasAccounts
    settling: SettlingWatch


@route(
    router,
    "GET",
    f"{ROOT}/stats",
    operation="admin_stats",
    auth=admin,
    answers=wire.PlatformStatsResponse,
)
async def admin_stats(request: Request) -> wire.PlatformStatsResponse:
    """Show the whole platform's sums."""
    parts = service(request, StatsSources)
    written = None if parts.write_back is None else parts.write_back.counts
    aside = wire.Aside(
        *(parts.costs, parts.call_log.over_quota, parts.undelivered(), written),
        wallet=await _solana_wallet(parts),
        free_settlements=await parts.gas.shared_used(),
        keys=await parts.settling.keys(),
        facilitator=await parts.settling.facilitator(),
        nodes=await parts.settling.nodes(),
    )
    return wire.platform(await service(request, Admin).stats(), aside)


@route(
    router,
    "GET",
    f"{ROOT}/operators",
    operation="admin_operators",
    auth=admin,
    answers=wire.OperatorsResponse,
)
async def admin_operators(
    request: Request, limit: Limit = 50, offset: Offset = 0, cursor: PageCursor = None
) -> wire.OperatorsResponse:
    """List every account with its sums, newest first."""
    start = offset_of(cursor, offset)
    found, total = await service(request, Admin).operators(limit, start)
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
    auth=admin,
    answers=wire.OperatorDetailResponse,
)
async def admin_operator(request: Request, operator_id: OperatorId) -> wire.OperatorDetailResponse:
    """Show one account: keys, wrappers, agents, revenue."""
    return wire.detail(await service(request, Admin).operator(operator_id))


@route(
    router,
    "PATCH",
    f"{ROOT}/operators/{{id}}",
    operation="admin_change",
    auth=admin,
    body=wire.ChangeRequest,
    answers=wire.ChangedResponse,
    also=(409,),
)
async def admin_change(request: Request, operator_id: OperatorId) -> wire.ChangedResponse:
    """Change plan, role, fee rate or suspension at once. Beyond the specification's tables."""
    body = read(wire.ChangeRequest, await request.body())
    if not body.model_fields_set:
        raise InvalidRequest("Name what to change: plan, role, fee_rate or suspended.")
    changed = await service(request, Admin).change(operator_id, body.change(), actor_of(request))
    return wire.ChangedResponse(ok=True, operator=wire.operator(changed))


@route(
    router,
    "GET",
    f"{ROOT}/operators/{{id}}/logs",
    operation="admin_logs",
    auth=admin,
    answers=analytics.LogsResponse,
)
async def admin_logs(  # noqa: PLR0913, PLR0917 - the filters of the operator's own log
    request: Request,
    operator_id: OperatorId,
    limit: Limit = 50,
    offset: Offset = 0,
    days: DaysFilter = None,
    agent_id: AgentFilter = None,
    endpoint_id: EndpointFilter = None,
    before: Before = None,
    cursor: PageCursor = None,
) -> analytics.LogsResponse:
    """List the call log of one account."""
    which = LogFilter(days=days, agent_id=agent_id, wrapper_id=endpoint_id)
    page = ReportPage(before=before_of(cursor, before), limit=limit, offset=offset)
    found, total = await service(request, Admin).logs(operator_id, which, page)
    return analytics.logs(found, total, limit, offset)


@route(
    router,
    "GET",
    f"{ROOT}/audit",
    operation="admin_audit",
    auth=admin,
    answers=wire.AuditResponse,
)
async def admin_audit(
    request: Request,
    limit: Limit = 50,
    offset: Offset = 0,
    operator_id: Annotated[
        str | None,
        Query(alias="operatorId", max_length=64, description="Only notes about this account."),
    ] = None,
    before: Annotated[str | None, Query(max_length=64, description="Id of a note.")] = None,
    cursor: PageCursor = None,
) -> wire.AuditResponse:
    """List who changed what of accounts and credentials, newest first. Beyond the specification."""
    place = before_of(cursor, before)
    found, total = await service(request, Admin).audit(operator_id, place, limit, offset)
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


async def _solana_wallet(parts: StatsSources) -> tuple[str, int | None] | None:
    """Return the address that writes scores back, and its lamports if the cluster answers."""
    if parts.write_back is None:
        return None
    try:
        async with asyncio.timeout(WALLET_S):
            lamports = await parts.write_back.balance(parts.networks.by_slug("solana"))
    except (ChainUnavailable, TimeoutError):
        return parts.write_back.address, None
    return parts.write_back.address, lamports


account_router = APIRouter(tags=["Accounts and keys"])


@route(
    account_router,
    "GET",
    "/operator/me/export",
    operation="export_account",
    auth=token_for_export,
    answers=AccountExportResponse,
)
async def export_account(request: Request) -> AccountExportResponse:
    """Export everything that is stored about the account, at most ten times an hour.

    Calls have their own export.
    """
    found = await service(request, AccountData).export(request.state.principal, actor_of(request))
    return account_export(
        found, exchange_of(request.scope).session_id, service(request, Clock).now()
    )


@route(
    account_router,
    "DELETE",
    "/operator/me",
    operation="delete_account",
    auth=token_and_password,
    body=DeleteAccountRequest,
    answers=Done,
    also=(409,),
)
async def delete_account(request: Request) -> Done:
    """Delete the account permanently: keys, sessions, wrappers, webhooks, everything personal."""
    body = read(DeleteAccountRequest, await request.body())
    await service(request, AccountData).delete(
        request.state.principal,
        body.password,
        body.code,
        client_of(request),
        actor_of(request),
    )
    return Done()
