"""The liveness report of a Solana agent, and its summary in a sandbox result.

Source: interface.md#liveness-report, #sandbox-result.
"""

from typing import Annotated, Literal

from pydantic import Field

from assay.liveness.service import LivenessReport
from assay.registries.model import Subject
from assay.registries.schemas import ChainResponse, chain
from assay.server.schemas import CachedReason, ResponseModel

SequentialId = Annotated[
    int | None,
    Field(
        description="Solana: the sequential id, where the agent was asked for by one.",
        exclude_if=lambda value: value is None,
    ),
]


class PingResponse(ResponseModel):
    """A declared service. `type` and `endpoint` are untrusted values of the registration file."""

    type: str
    endpoint: str
    ok: bool
    latency_ms: Annotated[float, Field(ge=0, description="0 where nothing was called.")]


class LivenessSummaryResponse(ResponseModel):
    """Whether the agent's services answer."""

    status: Annotated[
        Literal["live", "partially", "not_live"],
        Field(description="All of those called answered, some, or none."),
    ]
    ok_count: int
    total_pinged: int
    skipped_count: Annotated[int, Field(description="Not http(s), and so not called.")]
    cached_reason: CachedReason = None
    unasked_reason: Annotated[
        str | None,
        Field(
            description="Why services were not asked, and count as not answering: `egress_budget`.",
            exclude_if=lambda value: value is None,
        ),
    ] = None


class ResultsResponse(LivenessSummaryResponse):
    """The summary with every service."""

    results: list[PingResponse]


class LivenessResponse(ResponseModel):
    """The liveness report."""

    agent_id: str
    chain: ChainResponse
    liveness: ResultsResponse
    sequential_id: SequentialId = None


def liveness_summary(report: LivenessReport) -> LivenessSummaryResponse:
    """Return only the counts."""
    return LivenessSummaryResponse(
        status=report.status,
        ok_count=report.ok_count,
        total_pinged=report.total_pinged,
        skipped_count=report.skipped_count,
        cached_reason=report.cached_reason,
        unasked_reason=report.unasked_reason,
    )


def liveness_report(
    subject: Subject, report: LivenessReport, number: int | None
) -> LivenessResponse:
    """Return the whole report as a response."""
    return LivenessResponse(
        agent_id=subject.agent_id,
        chain=chain(subject.network),
        liveness=ResultsResponse(
            **liveness_summary(report).model_dump(),
            results=[
                PingResponse(
                    type=ping.kind,
                    endpoint=ping.endpoint,
                    ok=ping.ok,
                    latency_ms=ping.latency_ms,
                )
                for ping in report.results
            ],
        ),
        sequential_id=number,
    )
