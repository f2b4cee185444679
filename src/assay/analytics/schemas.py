"""Analytics in responses. Money has six decimals, rates four; times are milliseconds.

The call log is also a file: CSV, or one JSON object a line. Source: interface.md#analytics-records,
#dashboard.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from assay.analytics.model import AgentCounted, CallSums, EndpointCounted, Funnel, LoggedCall, Stats
from assay.common.clock import iso
from assay.common.numbers import usd
from assay.server.csv_text import csv_head, csv_rows
from assay.server.schemas import PageResponse, ResponseModel, Timestamp, cursor_after


class FunnelResponse(ResponseModel):
    """How many calls got how far, from the 402 to the money, and how many were refused."""

    payment_required: int
    paid: int
    settled: int
    failed: int
    denied_by_trust: int
    denied_by_limit: int


class StatsResponse(ResponseModel):
    """The sums so far (interface.md#analytics-records); the funnel is an addition."""

    total_calls: int
    total_revenue: str
    unique_agents: int
    avg_response_ms: float
    error_rate: str
    calls_today: int
    revenue_today: str
    funnel: FunnelResponse


class RevenueResponse(ResponseModel):
    """One UTC day: the calls that ended and the money that settled on it."""

    date: str
    revenue: str
    calls: int


class TopEndpointResponse(ResponseModel):
    """A wrapper by its calls."""

    endpoint_id: str
    path: str
    method: str
    calls: int
    revenue: str
    avg_response_ms: float
    error_rate: str


class AgentResponse(ResponseModel):
    """An agent as this account knows it."""

    agent_id: str
    chains: list[str]
    first_seen: Timestamp
    last_seen: Timestamp
    total_calls: int
    total_spent: str
    avg_response_ms: float
    error_count: int
    error_rate: str
    tier: str | None


class AgentsResponse(PageResponse):
    """A page of agents. `agents` is `items` under its earlier name."""

    items: list[AgentResponse]
    agents: list[AgentResponse]


class TopEndpointsResponse(PageResponse):
    """A page of wrappers, by calls."""

    items: list[TopEndpointResponse]


class LogResponse(ResponseModel):
    """A call. `costCharged` is what has settled for it so far."""

    id: str
    created_at: Timestamp
    method: str
    path: str
    endpoint_id: str
    agent_id: str | None
    chain: str | None
    status_code: int
    response_ms: float
    cost_charged: str
    route: str | None
    tier: str | None
    outcome: str
    payment_reference: str | None
    transaction: str | None
    payer: str | None
    identity_proven: bool
    request_id: str
    request_bytes: int
    response_bytes: int


class LogsResponse(PageResponse):
    """A page of calls, newest first. `logs` and `nextBefore` are earlier names."""

    items: list[LogResponse]
    logs: list[LogResponse]
    next_before: str | None


class AgentDetailResponse(ResponseModel):
    """An agent, what it called, and its newest calls."""

    agent_id: str
    summary: AgentResponse
    endpoints: list[TopEndpointResponse]
    recent_calls: list[LogResponse]


def stats(found: Stats) -> StatsResponse:
    """Return stats as a response."""
    return StatsResponse(
        total_calls=found.total.calls,
        total_revenue=usd(found.total.revenue),
        unique_agents=found.agents,
        avg_response_ms=average_ms(found.total),
        error_rate=error_rate(found.total),
        calls_today=found.today.calls,
        revenue_today=usd(found.today.revenue),
        funnel=funnel(found.funnel),
    )


def funnel(found: Funnel) -> FunnelResponse:
    """Return the funnel as a response."""
    return FunnelResponse(
        payment_required=found.asked,
        paid=found.paid,
        settled=found.settled,
        failed=found.failed,
        denied_by_trust=found.denied,
        denied_by_limit=found.limited,
    )


def revenue(day: date, counted: CallSums) -> RevenueResponse:
    """Return a day as a response."""
    return RevenueResponse(date=day.isoformat(), revenue=usd(counted.revenue), calls=counted.calls)


def endpoint(found: EndpointCounted) -> TopEndpointResponse:
    """Return a wrapper's sums as a response."""
    return TopEndpointResponse(
        endpoint_id=found.wrapper_id,
        path=found.path,
        method=found.method,
        calls=found.counted.calls,
        revenue=usd(found.counted.revenue),
        avg_response_ms=average_ms(found.counted),
        error_rate=error_rate(found.counted),
    )


def agent(found: AgentCounted) -> AgentResponse:
    """Return an agent's sums as a response."""
    return AgentResponse(
        agent_id=found.agent_id,
        chains=list(found.chains),
        first_seen=iso(found.first_seen),
        last_seen=iso(found.last_seen),
        total_calls=found.counted.calls,
        total_spent=usd(found.counted.revenue),
        avg_response_ms=average_ms(found.counted),
        error_count=found.counted.errors,
        error_rate=error_rate(found.counted),
        tier=found.tier,
    )


def log(found: LoggedCall) -> LogResponse:
    """Return a call as a response."""
    call, kind = found.call, found.call.kind
    return LogResponse(
        id=found.id,
        created_at=iso(call.at),
        method=kind.method,
        path=kind.path,
        endpoint_id=kind.wrapper_id,
        agent_id=kind.agent,
        chain=kind.chain,
        status_code=call.status,
        response_ms=round(call.latency_us / 1000, 3),
        cost_charged=usd(found.charged),
        route=kind.route,
        tier=kind.tier,
        outcome=call.outcome,
        payment_reference=call.payment_id,
        transaction=found.transaction,
        payer=kind.payer,
        identity_proven=kind.identity_proven,
        request_id=call.request_id,
        request_bytes=call.request_bytes,
        response_bytes=call.response_bytes,
    )


def logs(found: Sequence[LoggedCall], total: int, limit: int, offset: int) -> LogsResponse:
    """Return a page of calls as a response."""
    rows = [log(one) for one in found]
    last = rows[-1].id if len(rows) == limit else None
    return LogsResponse(
        items=rows,
        logs=rows,
        total=total,
        limit=limit,
        offset=offset,
        next_cursor=cursor_after(last),
        next_before=last,
    )


def average_ms(counted: CallSums) -> float:
    """Return milliseconds a call, 0 without calls."""
    return round(counted.latency_us / counted.calls / 1000, 3) if counted.calls else 0.0


def error_rate(counted: CallSums) -> str:
    """Return errors a call, 0 to 1, with four decimals."""
    rate = Decimal(counted.errors) / counted.calls if counted.calls else Decimal(0)
    return str(rate.quantize(Decimal("0.0001"), ROUND_HALF_UP))


Format = Literal["csv", "ndjson"]


async def written(pieces: AsyncIterator[Sequence[LoggedCall]], form: Format) -> AsyncIterator[str]:
    """Yield the file in pieces, as they are read."""
    if form == "csv":
        yield csv_head(LogResponse)
    async for piece in pieces:
        shapes = [log(one) for one in piece]
        if form == "ndjson":
            yield "".join(shape.model_dump_json() + "\n" for shape in shapes)
        else:
            yield csv_rows(shapes)
