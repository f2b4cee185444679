"""An account's data handed out whole, and its end. Beyond the specification's tables."""

from fastapi import APIRouter, Request

from assay.web.credentials import Credential
from assay.web.exchange import exchange_of
from assay.web.route import actor_of, app_of, client_of, read, route
from assay.web.wire.account_export import AccountExportResponse, account_export
from assay.web.wire.account_security import DeleteAccountRequest, Done

router = APIRouter(tags=["Accounts and keys"])


@route(
    router,
    "GET",
    "/operator/me/export",
    operation="export_account",
    credential=Credential.JWT,
    answers=AccountExportResponse,
)
async def export_account(request: Request) -> AccountExportResponse:
    """Everything that is kept of the account, ten times an hour; calls have their own export."""
    app = app_of(request)
    found = await app.account_data.export(request.state.principal, actor_of(request))
    return account_export(found, exchange_of(request.scope).session_id, app.clock.now())


@route(
    router,
    "DELETE",
    "/operator/me",
    operation="delete_account",
    credential=Credential.JWT,
    body=DeleteAccountRequest,
    answers=Done,
    also=(409,),
)
async def delete_account(request: Request) -> Done:
    """Delete the account for good: keys, sessions, wrappers, webhooks, everything personal."""
    body = read(DeleteAccountRequest, await request.body())
    await app_of(request).account_data.delete(
        request.state.principal,
        body.password,
        body.code,
        client_of(request),
        actor_of(request),
    )
    return Done()
