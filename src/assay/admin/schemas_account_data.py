"""An account's data, handed out whole, on the wire."""

from datetime import datetime
from typing import Any

from assay.accounts import schemas as accounts
from assay.accounts.schemas import SessionResponse, session
from assay.admin import schemas as admin
from assay.admin.account_data import AccountExport
from assay.analytics import schemas as analytics
from assay.common.clock import iso
from assay.server.schemas_base import ResponseModel, Timestamp
from assay.webhooks import schemas as webhooks
from assay.wrappers import schemas as endpoints


class ExportedNote(ResponseModel):
    """One line of the audit trail about the account."""

    at: Timestamp
    actor: str
    client: str
    action: str
    target: str
    details: dict[str, Any]


class AccountExportResponse(ResponseModel):
    """What is kept of the account. Calls and payments: GET /operator/analytics/logs/export."""

    exported_at: Timestamp
    operator: accounts.OperatorResponse
    security: accounts.AccountSecurity
    allowance: accounts.AllowanceResponse
    keys: list[accounts.KeyResponse]
    sessions: list[SessionResponse]
    endpoints: list[endpoints.EndpointResponse]
    webhooks: list[webhooks.WebhookResponse]
    stats: analytics.StatsResponse
    audit: list[ExportedNote]


def account_export(
    found: AccountExport, current: str | None, now: datetime
) -> AccountExportResponse:
    """An account's data on the wire."""
    return AccountExportResponse(
        exported_at=iso(now),
        operator=accounts.operator(found.operator),
        security=accounts.security(found.operator, found.recovery_codes_left),
        allowance=accounts.allowance(found.allowance),
        keys=[accounts.key(one) for one in found.keys],
        sessions=[session(one, current) for one in found.sessions],
        endpoints=[endpoints.endpoint(one) for one in found.endpoints],
        webhooks=[webhooks.webhook(one, None) for one in found.webhooks],
        stats=analytics.stats(found.stats),
        audit=[_note(admin.note(one)) for one in found.notes],
    )


def _note(found: admin.NoteResponse) -> ExportedNote:
    return ExportedNote(
        at=found.at,
        actor=found.actor,
        client=found.client,
        action=found.action,
        target=found.target,
        details=found.details,
    )
