"""Trust profile, reputation, wallet resolution, sandbox result and snapshots in responses.

Source: interface.md#trust-profile, #snapshot.
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
from assay.server.schemas import (
    CachedReason,
    Count,
    Count0,
    EvmAddress,
    HashText,
    Prose,
    RecordId,
    ResponseModel,
    RiskLevelName,
    RouteName,
    ScoreValue,
    Sentences,
    ShownAgentId,
    TierName,
    Timestamp,
    UrlText,
)

FEEDBACK_SHOWN_MAX = 100
"""Newest feedback entries shown in a profile; the counts are over all of them."""


class FeedbackResponse(ResponseModel):
    """One feedback entry; `score` is null when it is on another scale than 0 to 100."""

    client: EvmAddress
    """The address that gave the feedback."""
    index: Count
    """Its number among this client's entries, from 1."""
    value: Annotated[str, Field(examples=["100"])]
    """The value as stored, an integer; divide by 10^`valueDecimals`."""
    value_decimals: Count0
    """How many decimals `value` has, 0 to 18."""
    score: ScoreValue | None
    """The value, 0 to 100; null if it is on another scale."""
    tag1: Annotated[str, Field(examples=["starred"])]
    """The entry's first tag; may be empty."""
    tag2: Annotated[str, Field(examples=["starred"])]
    """The entry's second tag; may be empty."""


class ClusterResponse(ResponseModel):
    """Payers with one source of funds, which together count like one customer."""

    name: Annotated[str, Field(examples=["payers of one source"])]
    """What the payers have in common, in words."""
    size: Count
    """How many payers it has."""


class WeightedReputationResponse(ResponseModel):
    """Feedback weighted by what its voters paid and did not get back (docs/reputation.md)."""

    score: Annotated[float, Field(examples=[83.64], ge=0, le=100)]
    """The weighted mean, 0 to 100."""
    confidence: Annotated[float, Field(examples=[0.8], ge=0, le=1)]
    """How much evidence supports it, 0 (none) to 1."""
    effective_reviewers: Annotated[float, Field(examples=[2.8])]
    """How many independent customers the feedback is worth."""
    plain_average: ScoreValue
    """The mean without weights, 0 to 100."""
    clusters: list[ClusterResponse]
    """Groups of payers with one source of funds."""
    reasons: Sentences
    """What decided the value, in sentences."""


class OnchainReputationResponse(ResponseModel):
    """The reputation registry's data; `averageScore` is the plain mean."""

    feedback_count: Count
    """Feedback entries that stand."""
    average_score: ScoreValue
    """The plain mean, 0 to 100; 0 without entries."""
    reviewers: Count
    """Different addresses that gave feedback."""
    counted: Count
    """Entries on the scale from 0 to 100."""
    discarded: Annotated[int, Field(examples=[0], description="Entries off the 0 to 100 scale.")]
    weighted: Annotated[
        WeightedReputationResponse | None,
        Field(description="Our value beside the plain average; null when it could not be read."),
    ]
    entries: list[FeedbackResponse]
    """The newest entries, at most 100."""


class SolanaFiguresResponse(ResponseModel):
    """The figures of the registry's own engine, for information: not part of our score."""

    trust_tier: Annotated[str, Field(examples=["Unrated"])]
    """The registry's own tier."""
    quality_score: Annotated[int, Field(examples=[8000], ge=0, description="0 to 10,000.")]
    confidence: Annotated[int, Field(examples=[8000], ge=0, description="0 to 10,000.")]
    risk_score: Annotated[int, Field(examples=[10], ge=0, description="0 to 100; high is bad.")]
    unique_callers: Count
    """The registry's estimate of different callers."""


class SolanaReputationResponse(ResponseModel):
    """The Solana registry's data. Entries come from its indexer, the count does not."""

    count: Annotated[
        str,
        Field(examples=["42"], description="Entries ever given, as the agent's account counts."),
    ]
    average_score: ScoreValue
    """The plain mean, 0 to 100; 0 without entries."""
    feedback_entries: list[FeedbackResponse]
    """The newest entries, at most 100."""
    total_feedback: Annotated[int, Field(examples=[42], description="Entries that still stand.")]
    weighted: WeightedReputationResponse | None
    """Our value beside the plain mean; null if it could not be read."""
    solana: Annotated[SolanaFiguresResponse | None, Field(exclude_if=lambda value: value is None)]
    """Figures of the registry's own engine; absent if it has none."""


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
        examples=["0x" + "5c" * 32],
        description="Of all evidence and the policy, from which the verdict record follows byte"
        " for byte; null for snapshots made before there was a ladder.",
    ),
]


class SnapshotResponse(ResponseModel):
    """One link of the agent's chain of evaluations (interface.md#snapshot)."""

    agent_id: ShownAgentId
    """The agent's id."""
    snapshot_hash: Annotated[
        str,
        Field(
            examples=["0x" + "5c" * 32],
            description="Of the verdict record: subject, rung, checks, findings, fingerprints"
            " and policy. An unchanged agent keeps it.",
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
    previous_hash: HashText
    """`snapshotHash` of the evaluation before; `0x0` for the first."""
    encrypted_data_uri: Annotated[str, Field(examples=["file:blocks/5c5c"])] | None
    """Where the encrypted evidence is stored; null if storage is off."""
    timestamp: Timestamp
    """When the evaluation ended."""
    interaction_count: Count
    """Interactions that the evaluation counted."""
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

    agent_wallet: EvmAddress
    """The wallet that the agent declares; may be empty."""
    api: UrlText
    """The address of its API; may be empty."""


class IdentityResponse(ResponseModel):
    """The agent's declared identity.

    Only `agentId`, `wallet` and `owner` come from the registry.
    """

    agent_id: ShownAgentId
    """The agent's id."""
    wallet: EvmAddress
    """The agent's wallet; empty if the registry has none."""
    owner: EvmAddress
    """The address that owns the agent in the registry."""
    token_uri: UrlText
    """The address of the registration file."""
    name: Annotated[str, Field(examples=["Steady"])]
    """The agent's name. Everything declared here is untrusted."""
    image: UrlText
    """The address of a picture; may be empty."""
    description: Prose
    """What the agent says of itself; may be empty."""
    endpoints: EndpointsResponse
    """The addresses that it declares."""
    trust_models: Annotated[list[str], Field(examples=[["reputation_on_chain"]])]
    """What it says can be relied on."""
    active: bool | None
    """Whether it says that it is in use; null if it does not say."""
    problems: Annotated[
        list[str],
        Field(examples=[[]], description="What is wrong with the registration file, in sentences."),
    ]


class LocalReputationResponse(ResponseModel):
    """What this service itself found at the last evaluation."""

    evaluation_id: RecordId
    """The evaluation's id."""
    score: ScoreValue
    """The trust score, 0 to 100."""
    tier: TierName
    risk_level: RiskLevelName
    route: RouteName
    """`prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    interaction_count: Count
    """Interactions that the evaluation counted."""
    evaluated_at: Timestamp
    """When the evaluation ended."""


class RoutingResponse(ResponseModel):
    """The route that the score assigns."""

    final_route: RouteName
    """`prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    meets_threshold: bool
    """Whether the score reaches the usual threshold, 65."""


class AgentProfileResponse(ResponseModel):
    """The trust profile, with what its score was computed from (interface.md#trust-profile)."""

    agent_id: ShownAgentId
    """The agent's id."""
    identity: IdentityResponse
    """Who the agent says it is."""
    onchain_reputation: OnchainReputationResponse | SolanaReputationResponse | None
    """What the reputation registry has; null if it could not be read."""
    local_reputation: LocalReputationResponse | None
    """This service's newest evaluation; null before the first."""
    chain: ChainResponse
    """The agent's network."""
    routing: RoutingResponse
    """The route and the threshold that follow from the score."""
    timestamp: Timestamp
    """When this response was made."""
    score: Annotated[float, Field(examples=[83.64], ge=0, le=100)]
    """The trust score, 0 to 100."""
    score_low: ScoreLow
    score_high: ScoreHigh
    ladder: LadderResponse
    """What evidence is complete, rung by rung, and how that bounds the score."""
    confidence: Annotated[float, Field(examples=[0.8], ge=0, le=1)]
    """How much evidence supports it, 0 (none) to 1."""
    tier: TierName
    risk_level: RiskLevelName
    reasons: Sentences
    """What decided the grade, in sentences, strongest first."""
    signals: list[EvidencedSignalResponse]
    """Every signal, with its part in the score."""
    improve: Improvements
    problems: FileProblems
    sequential_id: SequentialId = None


class ResolutionResponse(ResponseModel):
    """The agent that a wallet acts for (interface.md#wallet-resolution)."""

    wallet: EvmAddress
    """The agent's wallet; empty if the registry has none."""
    agent_id: ShownAgentId
    """The agent's id."""
    source: Annotated[str, Field(examples=["owner"], description="`owner` or `agentWallet`")]
    chain_id: Annotated[int, Field(examples=[1])]
    """The network's EIP-155 chain id; 0 on Solana."""
    agent_name: Annotated[str, Field(examples=["Steady"])]
    """The agent's name; may be empty."""
    timestamp: Timestamp
    """When this response was made."""


class SandboxResponse(ResponseModel):
    """The result of a sandbox evaluation (interface.md#sandbox-result)."""

    ok: bool
    """Always true in a success."""
    agent_id: ShownAgentId
    """The agent's id."""
    wallet: EvmAddress
    """The agent's wallet; empty if the registry has none."""
    tier: TierName
    risk_level: RiskLevelName
    score: ScoreValue
    """The trust score, 0 to 100."""
    score_low: ScoreLow
    score_high: ScoreHigh
    ladder: LadderResponse
    """How much evidence is complete, rung by rung; it bounds the score."""
    route: RouteName
    """`prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    meets_threshold: bool
    """Whether the score reaches the threshold."""
    test_summary: Annotated[
        dict[str, object], Field(description="Opaque; its structure may change without notice.")
    ]
    chain: ChainResponse
    """The agent's network."""
    message: Prose
    """The result, in a sentence."""
    snapshot_hash: HashText
    """The hash of the verdict record."""
    evidence_hash: EvidenceHash = None
    evaluated_at: Timestamp
    """When the evaluation ended."""
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
    reasons: Sentences
    """What decided the grade, in sentences, strongest first."""
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
