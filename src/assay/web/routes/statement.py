"""Who is owed what: beyond the specification's tables."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from assay.accounts.model import Operator
from assay.payments.statement import csv_of
from assay.web.credentials import Credential
from assay.web.route import app_of, route
from assay.web.wire import statement as wire
from assay.web.wire.log_files import MEDIA_TYPES
from assay.web.wire.page import Cursor, Limit, Offset, offset_of

router = APIRouter(tags=["Analytics"])

TRANSFERS_SHOWN = 100


@route(
    router,
    "GET",
    "/operator/statement",
    credential=Credential.JWT,
    answers=wire.StatementShape,
)
async def operator_statement(request: Request) -> wire.StatementShape:
    """What this service was paid for the account, its fee, refunds, payouts and what is owed."""
    app, operator = app_of(request), _operator(request)
    transfers = await app.transfers.list_for_admin(operator.id, TRANSFERS_SHOWN)
    return wire.statement(await app.statements.of(operator.id), transfers)


@route(
    router,
    "GET",
    "/operator/statement/export",
    credential=Credential.JWT,
    answers=None,
    media_types=(MEDIA_TYPES["csv"],),
)
async def operator_statement_export(request: Request) -> Response:
    """The statement as CSV."""
    lines = await app_of(request).statements.of(_operator(request).id)
    name = {"content-disposition": 'attachment; filename="statement.csv"'}
    return Response(csv_of(lines), headers=name, media_type=MEDIA_TYPES["csv"])


@route(
    router,
    "GET",
    "/operator/admin/statement",
    credential=Credential.ADMIN,
    answers=wire.StatementsShape,
)
async def admin_statement(
    request: Request, limit: Limit = 50, offset: Offset = 0, cursor: Cursor = None
) -> wire.StatementsShape:
    """The lines of every account's statement, by account."""
    lines = await app_of(request).statements.all_for_admin()
    return wire.statements(lines, limit, offset_of(cursor, offset))


def _operator(request: Request) -> Operator:
    """Who the declared credential found."""
    return request.state.principal
