"""Gate request and decision (spec 2.5, 4.2; decisions, section 8)."""

from typing import Annotated

from pydantic import Field

from assay.gate.model import MIN_SCORE_DEFAULT, TTL_MS_DEFAULT, Decision, GateRequest
from assay.kit.clock import iso
from assay.trust.model import SignalName
from assay.web.wire.chain import ChainShape, chain
from assay.web.wire.evidence import SignalShape, signals
from assay.web.wire.liveness import SequentialId
from assay.web.wire.shape import Answer, Body, CachedReason, Timestamp


class GateBody(Body):
    """All optional: an absent or empty body asks with the defaults."""

    min_score: Annotated[float, Field(ge=0, le=100)] = MIN_SCORE_DEFAULT
    ttl_ms: Annotated[float, Field(gt=0)] = float(TTL_MS_DEFAULT)
    trust_signals: Annotated[tuple[SignalName, ...], Field(max_length=len(SignalName))] = ()

    def request(self) -> GateRequest:
        """The body as the gate takes it."""
        return GateRequest(self.min_score, self.ttl_ms, frozenset(self.trust_signals))


class GateShape(Answer):
    """A gate decision; `allow` is exactly `meetsThreshold`."""

    allow: bool
    tier: str
    risk_level: str
    meets_threshold: bool
    route: str
    agent_id: str
    wallet: str
    chain: ChainShape
    sandbox_ran: bool
    cached: bool
    cached_reason: CachedReason = None
    score: Annotated[float, Field(ge=0, le=100)]
    confidence: Annotated[float, Field(ge=0, le=1)]
    min_score: float
    reasons: list[str]
    signals: list[SignalShape]
    identity_proven: bool
    evaluated_at: Timestamp
    expires_at: Timestamp
    decision_token: Annotated[
        str, Field(description="Compact JWS (ES256); keys at /.well-known/jwks.json; 5 minutes.")
    ]
    sequential_id: SequentialId = None


def gate(decision: Decision, token: str, *, proven: bool, number: int | None = None) -> GateShape:
    """A decision on the wire; `number` is the sequential id it was asked for by."""
    subject = decision.subject
    return GateShape(
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
        score=decision.score.value,
        confidence=decision.score.confidence,
        min_score=decision.min_score,
        reasons=list(decision.score.reasons),
        signals=signals(decision.score),
        identity_proven=proven,
        evaluated_at=iso(decision.evaluation.evaluated_at),
        expires_at=iso(decision.expires_at),
        decision_token=token,
        sequential_id=number,
    )
