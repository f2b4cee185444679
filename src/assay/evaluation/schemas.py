"""Trust profile, wallet resolution, sandbox result (interface.md#trust-profile, #snapshot)."""

from typing import Annotated

from pydantic import Field

from assay.common.clock import iso
from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject
from assay.evaluation.explanations import Explanation
from assay.evaluation.model import INDEXING, UNFINISHED, Evaluation, EvaluationCompleted, Score
from assay.evaluation.profile import AgentProfile
from assay.evaluation.schemas_evidence import EvidencedSignalResponse, evidenced_signals
from assay.evaluation.schemas_improve import Improvements, improvements
from assay.evaluation.schemas_ladder import LadderResponse, ScoreHigh, ScoreLow, ladder
from assay.evaluation.schemas_reputation import (
    OnchainReputationResponse,
    SolanaReputationResponse,
    reputation,
)
from assay.evaluation.schemas_snapshots import EvidenceHash
from assay.liveness.schemas import LivenessSummaryResponse, SequentialId, liveness_summary
from assay.liveness.service import LivenessReport
from assay.registries.model import OnchainAgent
from assay.registries.registration import problems_of
from assay.registries.schemas import ChainResponse, chain
from assay.registries.schemas_problems import FileProblems, file_problems
from assay.registries.subject import Subject
from assay.registries.wallet_resolution import Resolution
from assay.server.schemas_base import CachedReason, ResponseModel, Timestamp


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
