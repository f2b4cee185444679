"""Dashboard JWTs and agent session tokens."""

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from assay.identity.model import Session
from assay.kit.clock import Clock

LOGIN_TTL = timedelta(hours=12)
"""Lifetime of a dashboard JWT. Source: decisions, section 12."""

_ALGORITHMS = ["HS256"]
_AUDIENCE = "assay-dashboard"
_MAC_BYTES = 32


class JwtLoginTokens:
    """HS256, and nothing else, whatever a token's header asks for."""

    def __init__(self, secret: str, issuer: str, clock: Clock) -> None:
        self._key = OctKey.import_key(hashlib.sha256(b"assay.jwt|" + secret.encode()).digest())
        self._issuer = issuer
        self._clock = clock

    def issue(self, operator_id: str, session_id: str) -> str:
        now = self._clock.now()
        claims = {
            "iss": self._issuer,
            "aud": _AUDIENCE,
            "sub": operator_id,
            "iat": int(now.timestamp()),
            "exp": int((now + LOGIN_TTL).timestamp()),
            "jti": session_id,
        }
        return jwt.encode({"alg": "HS256"}, claims, self._key, algorithms=_ALGORITHMS)

    def read(self, token: str) -> tuple[str, str] | None:
        try:
            claims = jwt.decode(token, self._key, algorithms=_ALGORITHMS).claims
            rules = jwt.JWTClaimsRegistry(
                now=int(self._clock.now().timestamp()),
                iss={"essential": True, "value": self._issuer},
                aud={"essential": True, "value": _AUDIENCE},
                sub={"essential": True},
                jti={"essential": True},
                exp={"essential": True},
            )
            rules.validate(claims)
        except (JoseError, ValueError, TypeError):
            return None
        return str(claims["sub"]), str(claims["jti"])


class HmacSessionTokens:
    """`base64url(session id | address | expiry in ms | HMAC-SHA256)`: two microseconds to check."""

    def __init__(self, secret: str) -> None:
        self._key = hashlib.sha256(b"assay.session|" + secret.encode()).digest()

    def issue(self, session_id: str, agent_address: str, expires_at: datetime) -> str:
        said = f"{session_id}|{agent_address}|{round(expires_at.timestamp() * 1000)}".encode()
        return base64.urlsafe_b64encode(said + self._mac(said)).rstrip(b"=").decode()

    def read(self, token: str, now: datetime) -> Session | None:
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        said, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(said)):
            return None
        session_id, address, expires_ms = said.decode().split("|")
        expires = datetime.fromtimestamp(int(expires_ms) / 1000, UTC)
        return Session(session_id, address, expires, token) if now < expires else None

    def _mac(self, said: bytes) -> bytes:
        return hmac.digest(self._key, said, "sha256")
