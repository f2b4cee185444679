"""The liveness report of a Solana agent, and its summary in a sandbox result.

Source: interface.md#liveness-report, #sandbox-result.
"""

from typing import Annotated, Literal

from pydantic import Field

from assay.liveness.service import LivenessReport
from assay.registries.model import Subject
from assay.registries.schemas import ChainResponse, chain
from assay.server.schemas import CachedReason, Count, ResponseModel, ShownAgentId, UrlText

SequentialId = Annotated[
    int | None,
    Field(
        description="Solana: the sequential id, where the agent was asked for by one.",
        exclude_if=lambda value: value is None,
    ),
]


class PingResponse(ResponseModel):
    """A declared service. `type` and `endpoint` are untrusted values of the registration file."""

    type: Annotated[str, Field(examples=["A2A"])]
    """The service's kind, as declared."""
    endpoint: UrlText
    """The service's address, as declared."""
    ok: bool
    """Whether it answered."""
    latency_ms: Annotated[
        float, Field(examples=[84.2], ge=0, description="0 where nothing was called.")
    ]


class LivenessSummaryResponse(ResponseModel):
    """Whether the agent's services answer."""

    status: Annotated[
        Literal["live", "partially", "not_live"],
        Field(description="All of those called answered, some, or none."),
    ]
    ok_count: Count
    """Services that answered."""
    total_pinged: Count
    """Services that were called."""
    skipped_count: Annotated[
        int, Field(examples=[0], description="Not http(s), and so not called.")
    ]
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
    """The declared services, one by one."""


class LivenessResponse(ResponseModel):
    """The liveness report."""

    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    chain: ChainResponse
    """The agent's network."""
    liveness: ResultsResponse
    """Whether the services answer."""
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
