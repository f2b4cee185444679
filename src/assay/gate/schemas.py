"""The gate's request and response.

Source: interface.md#gate-decision, #trust-evaluation; conventions.md#gate.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter

from assay.common.clock import iso
from assay.common.json import JsonObject
from assay.evaluation.model import SignalName
from assay.evaluation.schemas_grade import (
    AgentHintResponse,
    ImprovementResponse,
    Improvements,
    LadderResponse,
    ScoreHigh,
    ScoreLow,
    SignalResponse,
    ladder,
    signals,
)
from assay.evaluation.scoring import MIN_SCORE_DEFAULT
from assay.gate.decision import denial, valid_until, was_rechecked
from assay.gate.model import TTL_MS_DEFAULT, ColdStart, Decision, GateInput, GatePolicy, Stale
from assay.liveness.schemas import SequentialId
from assay.registries.schemas import ChainResponse, FileProblemResponse, FileProblems, chain
from assay.server.schemas import (
    CachedReason,
    EvmAddress,
    Off,
    RequestModel,
    ResponseModel,
    RiskLevelName,
    RouteName,
    Sentences,
    ShownAgentId,
    TierName,
    Timestamp,
)

_REASONS, _IMPROVE = TypeAdapter(list[str]), TypeAdapter(list[ImprovementResponse])
_PROBLEMS, _HINTS = TypeAdapter(list[FileProblemResponse]), TypeAdapter(list[AgentHintResponse])


class GateRequest(RequestModel):
    """All members are optional: an absent or empty body uses the defaults."""

    min_score: Annotated[float, Field(ge=0, le=100)] = MIN_SCORE_DEFAULT
    """The lowest score that is allowed."""
    ttl_ms: Annotated[float, Field(gt=0)] = float(TTL_MS_DEFAULT)
    """How old an evaluation may be, in milliseconds; else the agent is visited."""
    trust_signals: Annotated[tuple[SignalName, ...], Field(max_length=len(SignalName))] = ()
    """The signals that count; empty or absent: all."""
    cold_start: Annotated[
        ColdStart | None,
        Field(
            description="What to do with an agent on rung 0 against which nothing is known; without"
            " it the threshold decides."
        ),
    ] = None

    def request(self) -> GateInput:
        """Return the body as the gate takes it."""
        signals = frozenset(self.trust_signals)
        return GateInput(self.min_score, self.ttl_ms, signals, self.cold_start)


Authority = Annotated[
    str,
    Field(max_length=262, pattern=r"^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::[1-9][0-9]{0,4})?$"),
]


class GatePolicyRequest(GateRequest):
    """A policy of a proxy's check; absent members have the gate's defaults."""

    ttl_ms: Annotated[float, Field(ge=60_000)] = float(TTL_MS_DEFAULT)
    """How old an evaluation may be, in milliseconds; at least a minute, as calls count once in 30
    seconds."""
    chain: Annotated[
        str | None,
        Field(
            max_length=64,
            description="The chain of agents whose caller names none: slug or CAIP-2 identifier.",
        ),
    ] = None
    authorities: Annotated[
        tuple[Authority, ...],
        Field(
            max_length=10,
            description="Public hosts of the API behind the proxy, as callers reach it:"
            " `api.example.com`, with a port unless it is the scheme's default. Web Bot Auth"
            " signatures are accepted for these alone; empty: for none.",
            examples=[["api.example.com"]],
        ),
    ] = ()

    def policy(self) -> GatePolicy:
        """Return the policy as the check takes it."""
        return GatePolicy(self.request(), self.chain, self.authorities)


PolicyName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class GatePoliciesRequest(RequestModel):
    """All policies of an API key, by name."""

    policies: Annotated[
        dict[PolicyName, GatePolicyRequest],
        Field(max_length=20, examples=[{"default": {"minScore": 65}, "search": {"minScore": 40}}]),
    ]
    """By name, which is the path of the check; they replace the former ones."""


class GatePolicyResponse(ResponseModel):
    """A policy of a proxy's check."""

    min_score: float
    """The lowest score that is allowed; a caller may raise it."""
    ttl_ms: float
    """How old an evaluation may be, in milliseconds."""
    trust_signals: list[SignalName]
    """The signals that count; empty: all."""
    cold_start: str | None
    """What to do with an agent that nobody knows; null: the threshold decides."""
    chain: str | None
    """The chain of agents whose caller names none; null: the service's default."""
    authorities: list[str]
    """Hosts for which Web Bot Auth signatures are accepted; empty: none are."""


class GatePoliciesResponse(ResponseModel):
    """All policies of an API key, by name."""

    policies: dict[str, GatePolicyResponse]
    """By name, which is the path of the check."""

    @classmethod
    def of(cls, found: GatePoliciesRequest) -> Self:
        """Return the policies as a response."""
        shown = {
            name: GatePolicyResponse(
                min_score=one.min_score,
                ttl_ms=one.ttl_ms,
                trust_signals=list(one.trust_signals),
                cold_start=one.cold_start,
                chain=one.chain,
                authorities=list(one.authorities),
            )
            for name, one in found.policies.items()
        }
        return cls(policies=shown)

    def stored(self) -> str:
        """Return the policies as JSON that `GatePoliciesRequest` reads."""
        return self.model_dump_json(by_alias=True)


DenialReason = Annotated[
    str | None,
    Field(
        description="Why it denies: `insufficient_evidence` (nothing is known against the agent,"
        " and too little of it) or `low_score`; absent where it allows.",
        exclude_if=lambda value: value is None,
    ),
]


class StaleResponse(ResponseModel):
    """What an answer rests on although its source does not answer."""

    what: Annotated[
        Literal["key", "controllers", "evaluation"],
        Field(
            description="The oldest such part: the operator's `key` with its plan, the agent's"
            " `controllers` by its registry, or its `evaluation`."
        ),
    ]
    age_s: Annotated[int, Field(description="Seconds since it was read.", ge=0, examples=[42])]

    @classmethod
    def of(cls, stale: Stale) -> Self:
        """Return it as part of a response."""
        return cls(what=stale.what, age_s=int(stale.age_s))


class GateResponse(ResponseModel):
    """A gate decision; `allow` is exactly `meetsThreshold`."""

    allow: bool
    """Whether to let the agent pass; equal to `meetsThreshold`."""
    tier: TierName
    """The letter grade, `AAA` (best) to `C`."""
    risk_level: RiskLevelName
    """`GREEN`, `YELLOW` or `RED`; it follows from the tier."""
    meets_threshold: bool
    """Whether the score reaches the threshold."""
    route: RouteName
    """How to treat the agent: `prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    wallet: EvmAddress
    """The agent's wallet; empty if the registry has none."""
    chain: ChainResponse
    """The agent's network."""
    sandbox_ran: Off
    """Whether the agent was visited for this call."""
    cached: bool
    """Whether an earlier evaluation was used."""
    cached_reason: CachedReason = None
    ttl_floor: Annotated[
        bool,
        Field(
            description="Whether the newest evaluation is older than `ttlMs`, and none could be"
            " made: see `cachedReason` and `evaluatedAt`.",
            exclude_if=lambda value: not value,
        ),
    ] = False
    recheck: Annotated[
        bool,
        Field(
            description="Whether the last look was a re-check of three requests, as the host of"
            " the agent had no room for a whole visit: reachability and fingerprints alone.",
            exclude_if=lambda value: not value,
        ),
    ] = False
    score: Annotated[float, Field(examples=[83.64], ge=0, le=100)]
    """The trust score, 0 to 100."""
    score_low: ScoreLow
    score_high: ScoreHigh
    ladder: LadderResponse
    """How much evidence is complete, rung by rung; it bounds the score."""
    denial_reason: DenialReason = None
    cold_start: Annotated[
        str | None,
        Field(
            description="The `coldStart` asked for, where it decided instead of the threshold.",
            exclude_if=lambda value: value is None,
        ),
    ] = None
    confidence: Annotated[float, Field(examples=[0.8], ge=0, le=1)]
    """How much evidence supports it, 0 (none) to 1."""
    min_score: Annotated[float, Field(examples=[65.0])]
    """The threshold that was applied, 0 to 100."""
    reasons: Sentences
    """What decided the grade, in sentences, strongest first."""
    improve: Improvements
    problems: FileProblems
    did_you_mean: Annotated[
        list[AgentHintResponse],
        Field(description="Denied key agents: registered agents that the address speaks for."),
    ]
    signals: list[SignalResponse]
    """Every signal, with its part in the score."""
    identity_proven: bool
    """Whether the caller proved that it is the agent."""
    identity_proof: Annotated[
        Literal["web_bot_auth"] | None,
        Field(
            description="`web_bot_auth` if the key of the agent's domain proved it; absent if its"
            " address did.",
            exclude_if=lambda value: value is None,
        ),
    ] = None
    evaluated_at: Timestamp
    """When the evaluation ended."""
    valid_until: Annotated[
        Timestamp,
        Field(description="Until when the evaluation is reused at most, whatever `ttlMs`."),
    ]
    expires_at: Timestamp
    """Until when the decision holds."""
    decision_token: Annotated[
        str,
        Field(
            examples=["eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIyMiJ9.c2ln"],
            description="Compact JWS (ES256); keys at /.well-known/jwks.json; 5 minutes.",
        ),
    ]
    sequential_id: SequentialId = None
    stale: Annotated[
        StaleResponse | None,
        Field(
            description="What could not be read again because the database or the chain does not"
            " answer; absent otherwise.",
            exclude_if=lambda value: value is None,
        ),
    ] = None


def gate(
    decision: Decision,
    token: str,
    *,
    proven: bool,
    number: int | None = None,
    by_domain: bool = False,
) -> GateResponse:
    """Return a decision as a response; `number` is the sequential id of the request.

    `by_domain`: the key of the agent's domain proved it.
    """
    subject = decision.subject
    why: JsonObject = {} if decision.allow else denial(decision)
    return GateResponse(
        allow=decision.allow,
        tier=decision.grade.tier,
        risk_level=decision.grade.risk_level,
        meets_threshold=decision.allow,
        route=decision.grade.route,
        agent_id=subject.agent_id,
        wallet=subject.wallet,
        chain=chain(subject.network),
        sandbox_ran=decision.sandbox_ran,
        cached=decision.cached,
        cached_reason=decision.cached_reason,
        ttl_floor=decision.cached_reason is not None,
        recheck=was_rechecked(decision.evaluation),
        score=decision.score.value,
        score_low=decision.score.low,
        score_high=decision.score.high,
        ladder=ladder(decision.score),
        denial_reason=decision.denial_reason,
        cold_start=decision.cold_start,
        confidence=decision.score.confidence,
        min_score=decision.min_score,
        reasons=_REASONS.validate_python(why.get("reasons", decision.score.reasons)),
        improve=_IMPROVE.validate_python(why.get("improve", ())),
        problems=_PROBLEMS.validate_python(why.get("problems", ())),
        did_you_mean=_HINTS.validate_python(why.get("didYouMean", ())),
        signals=signals(decision.score),
        identity_proven=proven,
        identity_proof="web_bot_auth" if by_domain else None,
        evaluated_at=iso(decision.evaluation.evaluated_at),
        valid_until=iso(valid_until(decision.evaluation)),
        expires_at=iso(decision.expires_at),
        decision_token=token,
        sequential_id=number,
    )
