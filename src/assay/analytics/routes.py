"""Operations on an operator's analytics (interface.md#dashboard)."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse

from assay.accounts.auth import dashboard_token
from assay.accounts.model import Operator
from assay.analytics import schemas as wire
from assay.analytics.model import LogFilter
from assay.analytics.queries import EXPORTED_MAX, Analytics, ReportPage
from assay.analytics.schemas import Format, written
from assay.server.csv_text import MEDIA_TYPES, csv_head
from assay.server.route import route, service
from assay.server.schemas import Limit, Offset, PageCursor, before_of, cursor_at, offset_of

router = APIRouter(tags=["Analytics"])

Days = Annotated[int, Query(ge=1, le=3660, description="UTC days, the current one included.")]
DaysFilter = Annotated[
    int | None, Query(ge=1, le=3660, description="Only the newest UTC days; absent: all.")
]
AgentFilter = Annotated[
    str | None,
    Query(alias="agentId", min_length=1, max_length=100, description="Only calls of this agent."),
]
EndpointFilter = Annotated[
    str | None,
    Query(
        alias="endpointId", min_length=1, max_length=64, description="Only calls of this wrapper."
    ),
]
Before = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
        description="Id of a call: only older ones. Pages are stable by it.",
    ),
]


@route(
    router,
    "GET",
    "/operator/analytics/stats",
    operation="analytics_stats",
    auth=dashboard_token,
    answers=wire.StatsResponse,
)
async def analytics_stats(request: Request) -> wire.StatsResponse:
    """Show calls, money and agents so far. Only settled money is revenue."""
    return wire.stats(await service(request, Analytics).stats(_operator(request).id))


@route(
    router,
    "GET",
    "/operator/analytics/revenue",
    operation="analytics_revenue",
    auth=dashboard_token,
    answers=list[wire.RevenueResponse],
)
async def analytics_revenue(
    request: Request, days: Annotated[Days, Query(le=366)] = 30
) -> list[wire.RevenueResponse]:
    """List money and calls by UTC day, oldest first."""
    series = await service(request, Analytics).revenue(_operator(request).id, days)
    return [wire.revenue(day, counted) for day, counted in series]


@route(
    router,
    "GET",
    "/operator/analytics/top-endpoints",
    operation="analytics_top_endpoints",
    auth=dashboard_token,
    answers=wire.TopEndpointsResponse,
)
async def analytics_top_endpoints(
    request: Request, limit: Limit = 10, offset: Offset = 0, cursor: PageCursor = None
) -> wire.TopEndpointsResponse:
    """List wrappers by call volume."""
    start = offset_of(cursor, offset)
    analytics = service(request, Analytics)
    found, total = await analytics.top_endpoints(_operator(request).id, limit, start)
    return wire.TopEndpointsResponse(
        items=[wire.endpoint(one) for one in found],
        total=total,
        limit=limit,
        offset=start,
        next_cursor=cursor_at(start, len(found), total),
    )


@route(
    router,
    "GET",
    "/operator/analytics/agents",
    operation="analytics_agents",
    auth=dashboard_token,
    answers=wire.AgentsResponse,
)
async def analytics_agents(
    request: Request,
    sort_by: Annotated[
        Literal["lastSeen", "calls", "spent", "errors"],
        Query(alias="sortBy", description="What to sort by, highest first."),
    ] = "lastSeen",
    limit: Limit = 50,
    offset: Offset = 0,
    cursor: PageCursor = None,
) -> wire.AgentsResponse:
    """List the agents that called, highest first."""
    analytics, start = service(request, Analytics), offset_of(cursor, offset)
    found, total = await analytics.agents(_operator(request).id, sort_by, limit, start)
    agents = [wire.agent(one) for one in found]
    return wire.AgentsResponse(
        items=agents,
        agents=agents,
        total=total,
        limit=limit,
        offset=start,
        next_cursor=cursor_at(start, len(agents), total),
    )


@route(
    router,
    "GET",
    "/operator/analytics/agents/{agentId}",
    operation="analytics_agent",
    auth=dashboard_token,
    answers=wire.AgentDetailResponse,
)
async def analytics_agent(
    request: Request,
    agent_id: Annotated[
        str,
        Path(
            alias="agentId",
            max_length=100,
            description="The agent, as it names itself in calls.",
            examples=["22"],
        ),
    ],
) -> wire.AgentDetailResponse:
    """Show one agent: its sums, what it called, its newest calls."""
    analytics = service(request, Analytics)
    found, endpoints, recent = await analytics.agent(_operator(request).id, agent_id)
    return wire.AgentDetailResponse(
        agent_id=found.agent_id,
        summary=wire.agent(found),
        endpoints=[wire.endpoint(one) for one in endpoints],
        recent_calls=[wire.log(one) for one in recent],
    )


@route(
    router,
    "GET",
    "/operator/analytics/logs",
    operation="analytics_logs",
    auth=dashboard_token,
    answers=wire.LogsResponse,
)
async def analytics_logs(  # noqa: PLR0913, PLR0917 - the filters of interface.md#dashboard
    request: Request,
    limit: Limit = 50,
    offset: Offset = 0,
    days: DaysFilter = None,
    agent_id: AgentFilter = None,
    endpoint_id: EndpointFilter = None,
    before: Before = None,
    cursor: PageCursor = None,
) -> wire.LogsResponse:
    """List the call log, newest first."""
    which = LogFilter(days=days, agent_id=agent_id, wrapper_id=endpoint_id)
    page = ReportPage(before=before_of(cursor, before), limit=limit, offset=offset)
    found, total = await service(request, Analytics).logs(_operator(request).id, which, page)
    return wire.logs(found, total, limit, offset)


@route(
    router,
    "GET",
    "/operator/analytics/logs/export",
    operation="analytics_export",
    auth=dashboard_token,
    answers=None,
    media_types={
        MEDIA_TYPES["csv"]: csv_head(wire.LogResponse),
        MEDIA_TYPES["ndjson"]: '{"method": "GET", "path": "/quote", "statusCode": 200}\n',
    },
)
async def analytics_export(  # noqa: PLR0913, PLR0917 - the filters of interface.md#dashboard
    request: Request,
    form: Annotated[
        Format, Query(alias="format", description="`csv`, or `ndjson`: a JSON object on each line.")
    ] = "csv",
    limit: Annotated[
        int, Query(ge=1, le=EXPORTED_MAX, description="The most calls of the file.")
    ] = EXPORTED_MAX,
    days: DaysFilter = None,
    agent_id: AgentFilter = None,
    endpoint_id: EndpointFilter = None,
    before: Before = None,
) -> StreamingResponse:
    """Download the call log, newest first. Beyond the specification's tables."""
    which = LogFilter(days=days, agent_id=agent_id, wrapper_id=endpoint_id)
    page = ReportPage(before=before, limit=limit)
    pieces = await service(request, Analytics).export(_operator(request).id, which, page)
    name = {"content-disposition": f'attachment; filename="calls.{form}"'}
    return StreamingResponse(written(pieces, form), headers=name, media_type=MEDIA_TYPES[form])


def _operator(request: Request) -> Operator:
    """Return the operator that the declared credential found."""
    return request.state.principal
