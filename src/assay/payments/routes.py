"""Operations on statements: what is owed to accounts. Beyond the specification's tables."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from assay.accounts.auth import admin, dashboard_token
from assay.accounts.model import Operator
from assay.payments import schemas as wire
from assay.payments.statement import Statements, csv_of
from assay.payments.transfers import EXPORTED_MAX, TransferPages
from assay.server.csv_text import MEDIA_TYPES, csv_head
from assay.server.route import route, service
from assay.server.schemas import Limit, Offset, PageCursor, before_of, offset_of

router = APIRouter(tags=["Analytics"])

TRANSFERS_SHOWN = 100


@route(
    router,
    "GET",
    "/operator/statement",
    operation="operator_statement",
    auth=dashboard_token,
    answers=wire.StatementResponse,
)
async def operator_statement(request: Request) -> wire.StatementResponse:
    """Show what the service was paid for the account, its fee, refunds, payouts and the rest."""
    operator = _operator(request)
    newest, total = await service(request, TransferPages).page(operator.id, None, TRANSFERS_SHOWN)
    return wire.statement(await service(request, Statements).of(operator.id), newest, total)


@route(
    router,
    "GET",
    "/operator/statement/export",
    operation="operator_statement_export",
    auth=dashboard_token,
    answers=None,
    media_types={MEDIA_TYPES["csv"]: csv_of(())},
)
async def operator_statement_export(request: Request) -> Response:
    """Download the statement as CSV."""
    lines = await service(request, Statements).of(_operator(request).id)
    name = {"content-disposition": 'attachment; filename="statement.csv"'}
    return Response(csv_of(lines), headers=name, media_type=MEDIA_TYPES["csv"])


@route(
    router,
    "GET",
    "/operator/statement/transfers",
    operation="operator_transfers",
    auth=dashboard_token,
    answers=wire.TransfersResponse,
)
async def operator_transfers(
    request: Request, limit: Limit = 50, offset: Offset = 0, cursor: PageCursor = None
) -> wire.TransfersResponse:
    """List the account's payouts and refunds, newest first."""
    pages, before = service(request, TransferPages), before_of(cursor, None)
    found, total = await pages.page(_operator(request).id, before, limit, offset)
    return wire.transfers(found, total, limit, offset)


@route(
    router,
    "GET",
    "/operator/statement/transfers/export",
    operation="operator_transfers_export",
    auth=dashboard_token,
    answers=None,
    media_types={MEDIA_TYPES["csv"]: csv_head(wire.TransferResponse)},
)
async def operator_transfers_export(
    request: Request,
    limit: Annotated[
        int, Query(ge=1, le=EXPORTED_MAX, description="The most rows of the file.")
    ] = EXPORTED_MAX,
    cursor: PageCursor = None,
) -> StreamingResponse:
    """Download the account's payouts and refunds as CSV, newest first."""
    pages, before = service(request, TransferPages), before_of(cursor, None)
    pieces = await pages.export(_operator(request).id, before, limit)
    name = {"content-disposition": 'attachment; filename="transfers.csv"'}
    media_type = MEDIA_TYPES["csv"]
    return StreamingResponse(wire.transfers_csv(pieces), headers=name, media_type=media_type)


@route(
    router,
    "GET",
    "/operator/admin/statement",
    operation="admin_statement",
    auth=admin,
    answers=wire.StatementsResponse,
)
async def admin_statement(
    request: Request, limit: Limit = 50, offset: Offset = 0, cursor: PageCursor = None
) -> wire.StatementsResponse:
    """List the lines of every account's statement, by account."""
    lines = await service(request, Statements).all_for_admin()
    return wire.statements(lines, limit, offset_of(cursor, offset))


def _operator(request: Request) -> Operator:
    """Return the operator that the declared credential found."""
    return request.state.principal
