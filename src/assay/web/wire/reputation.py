"""What the reputation registry holds of an agent, and what it is worth to us (spec 2.1)."""

from typing import Annotated

from pydantic import Field

from assay.trust.model import SignalName
from assay.trust.profile import AgentProfile
from assay.trust.signals.registry_8004 import judgement, naive_mean
from assay.web.wire.shape import Answer

FEEDBACK_SHOWN_MAX = 100
"""Newest feedback entries shown in a profile; the counts are over all of them."""


class FeedbackShape(Answer):
    """One feedback entry; `score` is null when it is on another scale than 0 to 100."""

    client: str
    index: int
    value: str
    value_decimals: int
    score: float | None
    tag1: str
    tag2: str


class ClusterShape(Answer):
    """Reviewers that look like one, and count together like a handful."""

    name: str
    size: int


class WeightedReputationShape(Answer):
    """The feedback weighed by what its reviewers have at stake (docs/reputation.md)."""

    score: Annotated[float, Field(ge=0, le=100)]
    confidence: Annotated[float, Field(ge=0, le=1)]
    effective_reviewers: float
    plain_average: float
    clusters: list[ClusterShape]
    reasons: list[str]


class OnchainReputationShape(Answer):
    """What the reputation registry holds; `averageScore` is the naive mean."""

    feedback_count: int
    average_score: float
    reviewers: int
    counted: int
    discarded: Annotated[int, Field(description="Entries off the 0 to 100 scale.")]
    weighted: Annotated[
        WeightedReputationShape | None,
        Field(description="Our value beside the plain average; null when it could not be read."),
    ]
    entries: list[FeedbackShape]


def reputation(profile: AgentProfile) -> OnchainReputationShape:
    """The registry's view beside ours."""
    found = profile.reputation
    return OnchainReputationShape(
        feedback_count=found.feedback_count,
        average_score=found.average_score or 0.0,
        reviewers=found.reviewers,
        counted=found.counted,
        discarded=found.discarded,
        weighted=_weighted(profile),
        entries=[
            FeedbackShape(
                client=entry.feedback.client,
                index=entry.feedback.index,
                value=str(entry.feedback.value),
                value_decimals=entry.feedback.decimals,
                score=None if entry.score is None else float(entry.score),
                tag1=entry.feedback.tag1,
                tag2=entry.feedback.tag2,
            )
            for entry in found.entries[-FEEDBACK_SHOWN_MAX:]
        ],
    )


def _weighted(profile: AgentProfile) -> WeightedReputationShape | None:
    heard = (c for c in profile.collected if c.signal is SignalName.REGISTRY_8004)
    found = next(heard, None)
    verdict = None if found is None else judgement(found.evidence)
    if found is None or verdict is None:
        return None
    return WeightedReputationShape(
        score=verdict.value,
        confidence=verdict.confidence,
        effective_reviewers=verdict.mass,
        plain_average=naive_mean(found.evidence.data),
        clusters=[ClusterShape(name=n, size=s) for n, s in sorted(verdict.clusters.items())],
        reasons=list(found.weighed.reasons),
    )
