"""The reputation registry's view of an agent, and its worth to us.

Source: interface.md#trust-profile.
"""

from typing import Annotated

from pydantic import Field

from assay.evaluation.model import SignalName
from assay.evaluation.profile import AgentProfile
from assay.evaluation.signals.registry_8004 import judgement, naive_mean
from assay.registries.feedback import FeedbackSummary, summarise
from assay.server.schemas_base import ResponseModel

FEEDBACK_SHOWN_MAX = 100
"""Newest feedback entries shown in a profile; the counts are over all of them."""


class FeedbackResponse(ResponseModel):
    """One feedback entry; `score` is null when it is on another scale than 0 to 100."""

    client: str
    index: int
    value: str
    value_decimals: int
    score: float | None
    tag1: str
    tag2: str


class ClusterResponse(ResponseModel):
    """Payers with one source of funds, which together count like one customer."""

    name: str
    size: int


class WeightedReputationResponse(ResponseModel):
    """Feedback weighted by what its voters paid and did not get back (docs/reputation.md)."""

    score: Annotated[float, Field(ge=0, le=100)]
    confidence: Annotated[float, Field(ge=0, le=1)]
    effective_reviewers: float
    plain_average: float
    clusters: list[ClusterResponse]
    reasons: list[str]


class OnchainReputationResponse(ResponseModel):
    """The reputation registry's data; `averageScore` is the plain mean."""

    feedback_count: int
    average_score: float
    reviewers: int
    counted: int
    discarded: Annotated[int, Field(description="Entries off the 0 to 100 scale.")]
    weighted: Annotated[
        WeightedReputationResponse | None,
        Field(description="Our value beside the plain average; null when it could not be read."),
    ]
    entries: list[FeedbackResponse]


class SolanaFiguresResponse(ResponseModel):
    """The figures of the registry's own engine, for information: not part of our score."""

    trust_tier: Annotated[str, Field(examples=["Unrated"])]
    quality_score: Annotated[int, Field(ge=0, description="0 to 10,000.")]
    confidence: Annotated[int, Field(ge=0, description="0 to 10,000.")]
    risk_score: Annotated[int, Field(ge=0, description="0 to 100; high is bad.")]
    unique_callers: int


class SolanaReputationResponse(ResponseModel):
    """The Solana registry's data. Entries come from its indexer, the count does not."""

    count: Annotated[str, Field(description="Entries ever given, as the agent's account counts.")]
    average_score: float
    feedback_entries: list[FeedbackResponse]
    total_feedback: Annotated[int, Field(description="Entries that still stand.")]
    weighted: WeightedReputationResponse | None
    solana: Annotated[SolanaFiguresResponse | None, Field(exclude_if=lambda value: value is None)]


def reputation(profile: AgentProfile) -> OnchainReputationResponse | SolanaReputationResponse:
    """Return the registry's view beside ours."""
    if profile.agent.network.family == "solana":
        return _on_solana(profile)
    found = profile.reputation or summarise(())
    return OnchainReputationResponse(
        feedback_count=profile.feedback_count,
        average_score=profile.average_score,
        reviewers=found.reviewers,
        counted=found.counted,
        discarded=found.discarded,
        weighted=_weighted(profile),
        entries=_entries(found),
    )


def _on_solana(profile: AgentProfile) -> SolanaReputationResponse:
    atom = profile.agent.atom
    return SolanaReputationResponse(
        count=str(profile.agent.feedback_count or 0),
        average_score=profile.average_score,
        feedback_entries=_entries(profile.reputation or summarise(())),
        total_feedback=profile.feedback_count,
        weighted=_weighted(profile),
        solana=None
        if atom is None
        else SolanaFiguresResponse(
            trust_tier=atom.trust_tier,
            quality_score=atom.quality_score,
            confidence=atom.confidence,
            risk_score=atom.risk_score,
            unique_callers=atom.unique_callers,
        ),
    )


def _entries(found: FeedbackSummary) -> list[FeedbackResponse]:
    return [
        FeedbackResponse(
            client=entry.feedback.client,
            index=entry.feedback.index,
            value=format(entry.feedback.value, "f"),
            value_decimals=entry.feedback.decimals,
            score=None if entry.score is None else float(entry.score),
            tag1=entry.feedback.tag1,
            tag2=entry.feedback.tag2,
        )
        for entry in found.entries[-FEEDBACK_SHOWN_MAX:]
    ]


def _weighted(profile: AgentProfile) -> WeightedReputationResponse | None:
    results = (c for c in profile.collected if c.signal is SignalName.REGISTRY_8004)
    found = next(results, None)
    verdict = None if found is None else judgement(found.evidence)
    if found is None or verdict is None:
        return None
    return WeightedReputationResponse(
        score=verdict.value,
        confidence=verdict.confidence,
        effective_reviewers=verdict.mass,
        plain_average=naive_mean(found.evidence.data),
        clusters=[
            ClusterResponse(name=f"payers of {c.members[0]}'s source", size=len(c.members))
            for c in verdict.clusters
            if len(c.members) > 1
        ],
        reasons=list(found.weighed.reasons),
    )
