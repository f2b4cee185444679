"""Signs a decision as a short-lived token, for services that enforce it (conventions.md#gate).

A token is a compact JWS by ES256 (RFC 7518, section 3.4); the keys are published as a JWK set.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import ECKey, OKPKey

from assay.common.compact_jws import sign_compact
from assay.common.ids import new_id
from assay.common.json import JsonObject
from assay.common.keyring import SecretRing
from assay.gate.model import Decision

ALGORITHM: Final = "ES256"
"""Every common JWT library verifies it; few know Ed25519 by its own name (RFC 9864)."""

DECISION_TYPE: Final = "assay-decision+jwt"
"""`typ` of a decision token (RFC 8725, section 3.11)."""

_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Order of the group of P-256. Source: SEC 2, section 2.4.2."""


class Es256DecisionSigner:
    """Signs decisions so that anybody can check them offline."""

    def __init__(self, secrets: SecretRing, earlier: Mapping[str, datetime]) -> None:
        drawn = [_private(secret) for secret in secrets]
        keys = [ECKey.import_key(one) for one in drawn]
        self._private = drawn[0]
        self._header: JsonObject = {"alg": ALGORITHM, "kid": keys[0].thumbprint()}
        self._published = [_public(key, ALGORITHM) for key in keys]
        known = {
            kid: _ed25519(secret)
            for kid, secret in zip(ed25519_kids(secrets), secrets, strict=True)
        }
        self._earlier = [
            (until, _public(known[kid], "Ed25519"))
            for kid, until in earlier.items()
            if kid in known
        ]

    def sign(self, claims: JsonObject, kind: str = DECISION_TYPE) -> str:
        """Return a compact JWS over the claims; `kind` is its `typ`.

        Equal claims give the same bytes (RFC 6979), so what is sent again is the same receipt.
        """
        return sign_compact({**self._header, "typ": kind}, claims, self._private)

    def jwks(self, now: datetime) -> JsonObject:
        """Return the public keys that verify at that time, as a JWK set (RFC 7517)."""
        earlier = [key for until, key in self._earlier if now < until]
        return {"keys": [*self._published, *earlier]}


def ed25519_kids(secrets: SecretRing) -> list[str]:
    """Return the ids of the keys that versions before ES256 derived from these secrets."""
    return [_ed25519(secret).thumbprint() for secret in secrets]


def _private(secret: str) -> ec.EllipticCurvePrivateKey:
    """Return a key of P-256 from the secret: 512 bits of hash make all scalars equally likely."""
    drawn = hashlib.sha512(b"assay.decision.es256|" + secret.encode()).digest()
    scalar = int.from_bytes(drawn) % (_ORDER - 1) + 1
    return ec.derive_private_key(scalar, ec.SECP256R1())


def _ed25519(secret: str) -> OKPKey:
    """Return the key that versions before ES256 signed with (RFC 8037)."""
    seed = hashlib.sha256(b"assay.decision|" + secret.encode()).digest()
    return OKPKey.import_key(Ed25519PrivateKey.from_private_bytes(seed))


def _public(key: ECKey | OKPKey, algorithm: str) -> JsonObject:
    public = key.as_dict(private=False)
    return {**public, "kid": key.thumbprint(), "use": "sig", "alg": algorithm}


TOKEN_TTL = timedelta(minutes=5)
"""Lifetime of a decision token: long enough to be carried, short enough to be forgotten."""


class DecisionTokens:
    """Makes decision tokens; `aud` is the operator that the decision was made for."""

    def __init__(self, signer: Es256DecisionSigner, issuer: str) -> None:
        self._signer = signer
        self._issuer = issuer

    def issue(self, decision: Decision, operator_id: str, agent_address: str, at: datetime) -> str:
        """Return a compact JWS (ES256), valid for `TOKEN_TTL` and verifiable with `jwks`."""
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
        """Return the public keys as a JWK set: of the present, the next and previous secrets."""
        return self._signer.jwks(now)
