"""Trust profile, wallet resolution, sandbox result and snapshots in responses.

The reputation registry's view of an agent, and its worth to us.

Source: interface.md#trust-profile.

Snapshots, with both their hashes (interface.md#snapshot).
"""

from typing import Annotated

from pydantic import Field

from assay.common.clock import iso
from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject
from assay.evaluation.explanations import Explanation
from assay.evaluation.model import (
    INDEXING,
    UNFINISHED,
    Evaluation,
    EvaluationCompleted,
    Score,
    SignalName,
)
from assay.evaluation.profile import AgentProfile, SnapshotProfile
from assay.evaluation.schemas_grade import (
    EvidencedSignalResponse,
    Improvements,
    LadderResponse,
    ScoreHigh,
    ScoreLow,
    evidenced_signals,
    improvements,
    ladder,
)
from assay.evaluation.signals.registry_8004 import judgement, naive_mean
from assay.liveness.schemas import LivenessSummaryResponse, SequentialId, liveness_summary
from assay.liveness.service import LivenessReport
from assay.registries.model import FeedbackSummary, OnchainAgent, Subject, summarise
from assay.registries.registration import problems_of
from assay.registries.schemas import ChainResponse, FileProblems, chain, file_problems
from assay.registries.subjects import Resolution
from assay.server.schemas import CachedReason, ResponseModel, Timestamp

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


EvidenceHash = Annotated[
    str | None,
    Field(
        description="Of all evidence and the policy, from which the verdict record follows byte"
        " for byte; null for snapshots made before there was a ladder."
    ),
]


class SnapshotResponse(ResponseModel):
    """One link of the agent's chain of evaluations (interface.md#snapshot)."""

    agent_id: str
    snapshot_hash: Annotated[
        str,
        Field(
            description="Of the verdict record: subject, rung, checks, findings, fingerprints"
            " and policy. An unchanged agent keeps it."
        ),
    ]
    evidence_hash: EvidenceHash = None
    rung: Annotated[
        int | None,
        Field(description="The rung proven; null for snapshots made before there was a ladder."),
    ] = None
    ladder: Annotated[
        LadderResponse | None, Field(description="Of the evaluation it is of; null as `rung`.")
    ] = None
    previous_hash: str
    encrypted_data_uri: str | None
    timestamp: Timestamp
    interaction_count: int
    sequential_id: SequentialId = None


def snapshot(found: SnapshotProfile, number: int | None = None) -> SnapshotResponse:
    """Return a snapshot as a response."""
    taken, explained = found.snapshot, found.score
    return SnapshotResponse(
        agent_id=taken.agent_id,
        snapshot_hash=taken.snapshot_hash,
        evidence_hash=taken.evidence_hash,
        rung=None if explained is None else explained.place.rung,
        ladder=None if explained is None else ladder(explained),
        previous_hash=taken.previous_hash,
        encrypted_data_uri=taken.encrypted_data_uri,
        timestamp=iso(taken.taken_at),
        interaction_count=taken.interaction_count,
        sequential_id=number,
    )


class EndpointsResponse(ResponseModel):
    """The agent's declared addresses."""

    agent_wallet: str
    api: str


class IdentityResponse(ResponseModel):
    """The agent's declared identity.

    Only `agentId`, `wallet` and `owner` come from the registry.
    """

    agent_id: str
    wallet: str
    owner: str
    token_uri: str
    name: str
    image: str
    description: str
    endpoints: EndpointsResponse
    trust_models: list[str]
    active: bool | None
    problems: Annotated[
        list[str], Field(description="What is wrong with the registration file, in sentences.")
    ]


class LocalReputationResponse(ResponseModel):
    """What this service itself found at the last evaluation."""

    evaluation_id: str
    score: float
    tier: str
    risk_level: str
    route: str
    interaction_count: int
    evaluated_at: Timestamp


class RoutingResponse(ResponseModel):
    """The route that the score assigns."""

    final_route: str
    meets_threshold: bool


class AgentProfileResponse(ResponseModel):
    """The trust profile, with what its score was computed from (interface.md#trust-profile)."""

    agent_id: str
    identity: IdentityResponse
    onchain_reputation: OnchainReputationResponse | SolanaReputationResponse | None
    local_reputation: LocalReputationResponse | None
    chain: ChainResponse
    routing: RoutingResponse
    timestamp: Timestamp
    score: Annotated[float, Field(ge=0, le=100)]
    score_low: ScoreLow
    score_high: ScoreHigh
    ladder: LadderResponse
    confidence: Annotated[float, Field(ge=0, le=1)]
    tier: str
    risk_level: str
    reasons: list[str]
    signals: list[EvidencedSignalResponse]
    improve: Improvements
    problems: FileProblems
    sequential_id: SequentialId = None


class ResolutionResponse(ResponseModel):
    """The agent that a wallet acts for (interface.md#wallet-resolution)."""

    wallet: str
    agent_id: str
    source: Annotated[str, Field(description="`owner` or `agentWallet`")]
    chain_id: int
    agent_name: str
    timestamp: Timestamp


class SandboxResponse(ResponseModel):
    """The result of a sandbox evaluation (interface.md#sandbox-result)."""

    ok: bool
    agent_id: str
    wallet: str
    tier: str
    risk_level: str
    score: float
    score_low: ScoreLow
    score_high: ScoreHigh
    ladder: LadderResponse
    route: str
    meets_threshold: bool
    test_summary: Annotated[
        dict[str, object], Field(description="Opaque; its structure may change without notice.")
    ]
    chain: ChainResponse
    message: str
    snapshot_hash: str
    evidence_hash: EvidenceHash = None
    evaluated_at: Timestamp
    cached: Annotated[
        bool,
        Field(description="Whether this is the newest evaluation there was: none could be made."),
    ] = False
    cached_reason: CachedReason = None
    next_try_at: Annotated[
        Timestamp | None,
        Field(
            description="When an evaluation that was not finished is tried again by itself.",
            exclude_if=lambda value: value is None,
        ),
    ] = None
    reasons: list[str]
    improve: Improvements
    problems: FileProblems
    liveness: Annotated[
        LivenessSummaryResponse | None,
        Field(
            description="Solana: whether its services answer; absent where that is not known.",
            exclude_if=lambda value: value is None,
        ),
    ] = None
    sequential_id: SequentialId = None


def agent_profile(
    profile: AgentProfile, why: Explanation, threshold: float, number: int | None = None
) -> AgentProfileResponse:
    """Return the profile as a response; `threshold` decides `meetsThreshold`.

    `number` is the sequential id of the request, here and below.
    """
    return AgentProfileResponse(
        agent_id=profile.agent.agent_id,
        identity=_identity(profile.agent, profile.subject),
        onchain_reputation=reputation(profile),
        local_reputation=None if profile.evaluation is None else _local(profile.evaluation),
        chain=chain(profile.agent.network),
        routing=RoutingResponse(
            final_route=profile.grade.route, meets_threshold=profile.score.value >= threshold
        ),
        timestamp=iso(profile.at),
        score=profile.score.value,
        score_low=profile.score.low,
        score_high=profile.score.high,
        ladder=ladder(profile.score),
        confidence=profile.score.confidence,
        tier=profile.grade.tier,
        risk_level=profile.grade.risk_level,
        reasons=list(profile.score.reasons),
        signals=evidenced_signals(profile.score, profile.collected),
        improve=improvements(why.improve),
        problems=file_problems(profile.agent),
        sequential_id=number,
    )


def resolution(resolved: Resolution) -> ResolutionResponse:
    """Return a wallet resolution as a response."""
    return ResolutionResponse(
        wallet=resolved.wallet,
        agent_id=resolved.agent_id,
        source=resolved.source,
        chain_id=resolved.chain_id,
        agent_name=resolved.agent_name,
        timestamp=iso(resolved.at),
    )


def sandbox(
    subject: Subject,
    completed: EvaluationCompleted,
    explained: Score,
    why: Explanation,
    summary: JsonObject,
    threshold: float,
) -> SandboxResponse:
    """Return a sandbox result as a response; `on_solana` adds what only Solana has."""
    evaluation = completed.evaluation
    status = str(summary.get("status") if completed.reused is None else completed.reused)
    return SandboxResponse(
        ok=True,
        agent_id=subject.agent_id,
        wallet=subject.wallet,
        tier=evaluation.grade.tier,
        risk_level=evaluation.grade.risk_level,
        score=evaluation.score,
        score_low=explained.low,
        score_high=explained.high,
        ladder=ladder(explained),
        route=evaluation.grade.route,
        meets_threshold=evaluation.score >= threshold,
        test_summary=dict(summary),
        chain=chain(subject.network),
        message=_MESSAGES.get(status, _MESSAGES["inconclusive"]),
        snapshot_hash=completed.snapshot.snapshot_hash,
        evidence_hash=completed.snapshot.evidence_hash,
        evaluated_at=iso(evaluation.evaluated_at),
        cached=completed.reused is not None,
        cached_reason=completed.reused,
        next_try_at=None if completed.next_try_at is None else iso(completed.next_try_at),
        reasons=list(why.reasons),
        improve=improvements(why.improve),
        problems=file_problems(subject.agent),
    )


def on_solana(
    shape: SandboxResponse, report: LivenessReport | None, number: int | None
) -> SandboxResponse:
    """Return the result of a Solana agent, with the current state of its services."""
    summary = None if report is None else liveness_summary(report)
    return shape.model_copy(update={"liveness": summary, "sequential_id": number})


_MESSAGES = {
    "tested": "The agent's services were tested.",
    "inconclusive": "There was no behaviour to judge: no service could be tested, "
    "and no conduct has been seen.",
    EGRESS_BUDGET: "The agent's host has had its share of requests for now: this is what was known "
    "of the agent before.",
    UNFINISHED: "The evaluation is not finished: it goes on in the background. This is what was "
    "known of the agent before.",
    INDEXING: "Events of the chain are still being read: the evaluation goes on in the background. "
    "This is what was known of the agent before.",
}


def _identity(agent: OnchainAgent, subject: Subject) -> IdentityResponse:
    file = agent.registration
    services = file.services if file else ()
    problems = [one.sentence for one in problems_of(agent)]
    return IdentityResponse(
        agent_id=agent.agent_id,
        wallet=subject.wallet,
        owner=agent.owner,
        token_uri=agent.token_uri,
        name=file.name if file else "",
        image=file.image if file else "",
        description=file.description if file else "",
        endpoints=EndpointsResponse(
            agent_wallet=subject.wallet, api=services[0].endpoint if services else ""
        ),
        trust_models=["reputation_on_chain", "behavioral_sandbox"],
        active=file.active if file else None,
        problems=problems,
    )


def _local(evaluation: Evaluation) -> LocalReputationResponse:
    return LocalReputationResponse(
        evaluation_id=evaluation.id,
        score=evaluation.score,
        tier=evaluation.grade.tier,
        risk_level=evaluation.grade.risk_level,
        route=evaluation.grade.route,
        interaction_count=evaluation.interactions,
        evaluated_at=iso(evaluation.evaluated_at),
    )
