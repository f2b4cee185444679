"""A decision as a short-lived signed token, for whoever enforces it (decisions, section 8)."""

from datetime import datetime, timedelta

from assay.common.ids import new_id
from assay.common.json import JsonObject
from assay.gate.model import Decision
from assay.gate.ports import DecisionSigner

TOKEN_TTL = timedelta(minutes=5)
"""Lifetime of a decision token: long enough to be carried, short enough to be forgotten."""


class DecisionTokens:
    """Makes decision tokens; `aud` is the operator the decision was made for."""

    def __init__(self, signer: DecisionSigner, issuer: str) -> None:
        self._signer = signer
        self._issuer = issuer

    def issue(self, decision: Decision, operator_id: str, agent_address: str, at: datetime) -> str:
        """A compact JWS (ES256) that holds for `TOKEN_TTL`, verifiable with `jwks`."""
        evaluation = decision.evaluation
        return self._signer.sign(
            {
                "iss": self._issuer,
                "aud": operator_id,
                "sub": evaluation.subject_key,
                "jti": new_id(),
                "iat": int(at.timestamp()),
                "exp": int((at + TOKEN_TTL).timestamp()),
                "agentAddress": agent_address,
                "chain": evaluation.chain,
                "allow": decision.allow,
                "score": decision.score.value,
                "minScore": decision.min_score,
                "tier": decision.grade.tier,
                "riskLevel": decision.grade.risk_level,
                "route": decision.grade.route,
                "rung": decision.score.place.rung,
                "evaluationId": evaluation.id,
            }
        )

    def jwks(self, now: datetime) -> JsonObject:
        """The public keys as a JWK set: of the secret in use, the next one and previous ones."""
        return self._signer.jwks(now)
