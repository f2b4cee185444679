"""An account's data handed out whole, and its end. Beyond the specification's tables."""

from fastapi import APIRouter, Request

from assay.accounts.auth import actor_of, client_of, token_and_password, token_for_export
from assay.accounts.schemas import DeleteAccountRequest, Done
from assay.admin.account_data import AccountData
from assay.admin.schemas_account_data import AccountExportResponse, account_export
from assay.common.clock import Clock
from assay.server.request_context import exchange_of
from assay.server.route import read, route, service

router = APIRouter(tags=["Accounts and keys"])


@route(
    router,
    "GET",
    "/operator/me/export",
    operation="export_account",
    auth=token_for_export,
    answers=AccountExportResponse,
)
async def export_account(request: Request) -> AccountExportResponse:
    """Everything that is kept of the account, ten times an hour; calls have their own export."""
    found = await service(request, AccountData).export(request.state.principal, actor_of(request))
    return account_export(
        found, exchange_of(request.scope).session_id, service(request, Clock).now()
    )


@route(
    router,
    "DELETE",
    "/operator/me",
    operation="delete_account",
    auth=token_and_password,
    body=DeleteAccountRequest,
    answers=Done,
    also=(409,),
)
async def delete_account(request: Request) -> Done:
    """Delete the account for good: keys, sessions, wrappers, webhooks, everything personal."""
    body = read(DeleteAccountRequest, await request.body())
    await service(request, AccountData).delete(
        request.state.principal,
        body.password,
        body.code,
        client_of(request),
        actor_of(request),
    )
    return Done()
