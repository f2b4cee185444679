"""Dashboard sessions: listed, ended. Beyond the specification's tables."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from assay.accounts import schemas_security as wire
from assay.accounts.auth import actor_of, dashboard_token
from assay.accounts.logins import Logins
from assay.accounts.model import Operator
from assay.server.request_context import exchange_of
from assay.server.route import route, service
from assay.server.schemas_page import Limit, Offset, PageCursor, part_of

router = APIRouter(tags=["Accounts and keys"])


@route(
    router,
    "POST",
    "/operator/logout",
    operation="logout",
    auth=dashboard_token,
    answers=wire.DashboardSessionEnded,
)
async def logout(request: Request) -> wire.DashboardSessionEnded:
    """End the session of the token that asks, at once everywhere."""
    session_id = exchange_of(request.scope).session_id or ""
    await service(request, Logins).end(_operator(request).id, session_id, actor_of(request))
    return wire.DashboardSessionEnded(id=session_id)


@route(
    router,
    "GET",
    "/operator/sessions",
    operation="list_sessions",
    auth=dashboard_token,
    answers=wire.SessionsResponse,
)
async def list_sessions(
    request: Request, limit: Limit = 100, offset: Offset = 0, cursor: PageCursor = None
) -> wire.SessionsResponse:
    """The account's dashboard sessions, newest first."""
    found = await service(request, Logins).list(_operator(request).id)
    part = part_of(found, limit, offset, cursor)
    return wire.sessions(part, exchange_of(request.scope).session_id)


@route(
    router,
    "DELETE",
    "/operator/sessions",
    operation="end_dashboard_sessions",
    auth=dashboard_token,
    answers=wire.SessionsEnded,
)
async def end_dashboard_sessions(
    request: Request,
    others: Annotated[bool, Query(description="Keep the session that asks.")] = False,  # noqa: FBT002
) -> wire.SessionsEnded:
    """End every dashboard session of the account, at once everywhere."""
    keep = exchange_of(request.scope).session_id if others else None
    logins = service(request, Logins)
    ended = await logins.end_all(_operator(request).id, keep, actor_of(request))
    return wire.SessionsEnded(ended=ended)


@route(
    router,
    "DELETE",
    "/operator/sessions/{sessionId}",
    operation="end_dashboard_session",
    auth=dashboard_token,
    answers=wire.DashboardSessionEnded,
)
async def end_dashboard_session(
    request: Request, session_id: Annotated[str, Path(alias="sessionId", max_length=64)]
) -> wire.DashboardSessionEnded:
    """End one dashboard session, at once everywhere."""
    await service(request, Logins).end(_operator(request).id, session_id, actor_of(request))
    return wire.DashboardSessionEnded(id=session_id)


def _operator(request: Request) -> Operator:
    """Who the declared credential found."""
    return request.state.principal
