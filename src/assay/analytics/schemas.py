"""Analytics in responses. Money has six decimals, rates four; times are milliseconds.

The call log is also a file: CSV, or one JSON object a line. Source: interface.md#analytics-records,
#dashboard.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Literal

from pydantic import Field

from assay.analytics.model import AgentCounted, CallSums, EndpointCounted, Funnel, LoggedCall, Stats
from assay.common.clock import iso
from assay.common.numbers import usd
from assay.server.csv_text import csv_head, csv_rows
from assay.server.schemas import (
    Count,
    Count0,
    EvmAddress,
    HttpStatus,
    MethodText,
    Milliseconds,
    NetworkSlug,
    NetworkSlugs,
    PageResponse,
    PathText,
    RateText,
    RecordId,
    ResponseModel,
    RouteName,
    ShownAgentId,
    TierName,
    Timestamp,
    UsdText,
    cursor_after,
)


class FunnelResponse(ResponseModel):
    """How many calls got how far, from the 402 to the money, and how many were refused."""

    payment_required: Count
    """Calls that were answered 402."""
    paid: Count
    """Calls that came with a valid payment."""
    settled: Count
    """Payments that settled."""
    failed: Count0
    """Payments that did not settle."""
    denied_by_trust: Count0
    """Calls refused for the agent's grade."""
    denied_by_limit: Count0
    """Calls refused by a rate limit."""
    would_be_denied_by_trust: Count0
    """Calls of wrappers that only observe, which trust would have refused."""


class StatsResponse(ResponseModel):
    """The sums so far (interface.md#analytics-records); the funnel is an addition."""

    total_calls: Count
    """Calls of wrappers so far."""
    total_revenue: UsdText
    """Settled payments so far, in US dollars with six decimals."""
    unique_agents: Count
    """Different agents that called."""
    avg_response_ms: Milliseconds
    """Mean duration of a call in milliseconds; 0 without calls."""
    error_rate: RateText
    """Failed calls per call, 0 to 1, with four decimals."""
    calls_today: Count
    """Calls since 00:00 UTC."""
    revenue_today: UsdText
    """Payments settled since 00:00 UTC, in US dollars."""
    funnel: FunnelResponse
    """How many calls got how far, from the 402 to the money."""


class RevenueResponse(ResponseModel):
    """One UTC day: the calls that ended and the money that settled on it."""

    date: Annotated[str, Field(examples=["2026-11-26"])]
    """The UTC day."""
    revenue: UsdText
    """Settled payments, in US dollars with six decimals."""
    calls: Count
    """Calls counted here."""


class TopEndpointResponse(ResponseModel):
    """A wrapper by its calls."""

    endpoint_id: RecordId
    """The wrapper's id."""
    path: PathText
    """The wrapper's path, as agents call it."""
    method: MethodText
    """The HTTP method, in capitals."""
    calls: Count
    """Calls counted here."""
    revenue: UsdText
    """Settled payments, in US dollars with six decimals."""
    avg_response_ms: Milliseconds
    """Mean duration of a call in milliseconds; 0 without calls."""
    error_rate: RateText
    """Failed calls per call, 0 to 1, with four decimals."""
    would_be_denied: Count0
    """Calls of all agents that trust would have refused while the wrapper only observed."""


class AgentResponse(ResponseModel):
    """An agent as this account knows it."""

    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    chains: NetworkSlugs
    """Networks on which it was seen, by slug."""
    first_seen: Timestamp
    """Its first call."""
    last_seen: Timestamp
    """Its newest call."""
    total_calls: Count
    """Calls of wrappers so far."""
    total_spent: UsdText
    """What the agent paid, settled, in US dollars with six decimals."""
    avg_response_ms: Milliseconds
    """Mean duration of a call in milliseconds; 0 without calls."""
    error_count: Count
    """Calls that failed."""
    error_rate: RateText
    """Failed calls per call, 0 to 1, with four decimals."""
    tier: TierName | None
    """Its letter grade; null without an evaluation."""


class AgentsResponse(PageResponse):
    """A page of agents. `agents` is `items` under its earlier name."""

    items: list[AgentResponse]
    """The rows of this page."""
    agents: list[AgentResponse]
    """`items` under its earlier name."""


class TopEndpointsResponse(PageResponse):
    """A page of wrappers, by calls."""

    items: list[TopEndpointResponse]
    """The rows of this page."""


class LogResponse(ResponseModel):
    """A call. `costCharged` is what has settled for it so far."""

    id: RecordId
    """Its id, a UUID."""
    created_at: Timestamp
    """When it was created."""
    method: MethodText
    """The HTTP method, in capitals."""
    path: PathText
    """The wrapper's path, as agents call it."""
    endpoint_id: RecordId
    """The wrapper's id."""
    agent_id: ShownAgentId | None
    """The agent that called; null if it named none."""
    chain: NetworkSlug | None
    """The agent's network, by its slug; null without an agent."""
    status_code: HttpStatus
    """The HTTP status."""
    response_ms: Milliseconds
    """How long the response took, in milliseconds."""
    cost_charged: UsdText
    """What has settled for it so far, in US dollars."""
    route: RouteName | None
    """How to treat the agent: `prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    tier: TierName | None
    """The letter grade, `AAA` (best) to `C`."""
    outcome: Annotated[str, Field(examples=["forwarded"])]
    """How the call ended, a stable name."""
    payment_reference: RecordId | None
    """The payment's id in the ledger; null if nothing was paid."""
    transaction: Annotated[str, Field(examples=["0x" + "1f" * 32])] | None
    """The transaction's hash or signature; null before it is known."""
    payer: EvmAddress | None
    """The wallet that paid; null if nothing was paid."""
    identity_proven: bool
    """Whether the caller proved that it is the agent."""
    request_id: RecordId
    """The request's id, as in the header `x-request-id`."""
    request_bytes: Count
    """The request body's size in bytes."""
    response_bytes: Count
    """The response body's size in bytes."""
    would_have: Annotated[Literal["denied"], Field(examples=["denied"])] | None
    """`denied` if the wrapper only observed, and trust would have refused the call."""
    would_have_reason: Annotated[str, Field(examples=["low_score"])] | None
    """Why it would have been refused: a `denialReason`, or the code of the refusal."""


class LogsResponse(PageResponse):
    """A page of calls, newest first. `logs` and `nextBefore` are earlier names."""

    items: list[LogResponse]
    """The rows of this page."""
    logs: list[LogResponse]
    """`items` under its earlier name."""
    next_before: RecordId | None
    """`nextCursor` under its earlier name, as an id; null on the last page."""


class AgentDetailResponse(ResponseModel):
    """An agent, what it called, and its newest calls."""

    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    summary: AgentResponse
    """The agent's sums."""
    endpoints: list[TopEndpointResponse]
    """The wrappers that it called, by calls."""
    recent_calls: list[LogResponse]
    """Its newest calls."""


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
        would_be_denied_by_trust=found.would_deny,
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
        would_be_denied=found.would_deny,
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
        would_have=None if kind.would_deny is None else "denied",
        would_have_reason=kind.would_deny,
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
