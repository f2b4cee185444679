"""Dashboard JWTs and agent session tokens."""

import base64
import binascii
import hashlib
import json
from datetime import UTC, datetime, timedelta

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from assay.common.clock import Clock
from assay.common.json import is_array, is_object
from assay.common.keyring import MacKeys, SecretRing
from assay.identity.model import ContractProof, Session

LOGIN_TTL = timedelta(hours=12)
"""Lifetime of a dashboard JWT. Source: conventions.md#accounts."""

_ALGORITHMS = ["HS256"]
_AUDIENCE = "assay-dashboard"
_MAC_BYTES = 32


class JwtLoginTokens:
    """HS256 tokens; the algorithm in a token's header is ignored.

    The first secret of the ring signs; tokens of any of them are accepted.
    """

    def __init__(self, secrets: SecretRing, issuer: str, clock: Clock) -> None:
        self._keys = tuple(
            OctKey.import_key(hashlib.sha256(b"assay.jwt|" + secret.encode()).digest())
            for secret in secrets
        )
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
        return jwt.encode({"alg": "HS256"}, claims, self._keys[0], algorithms=_ALGORITHMS)

    def read(self, token: str) -> tuple[str, str] | None:
        return next((found for key in self._keys if (found := self._read(token, key))), None)

    def _read(self, token: str, key: OctKey) -> tuple[str, str] | None:
        try:
            claims = jwt.decode(token, key, algorithms=_ALGORITHMS).claims
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

    def names_us(self, token: str) -> bool:
        """Return whether a compact JWS claims to be a dashboard token of this service.

        Nothing is verified, so that expired tokens and those of an older key are recognised too.
        """
        try:
            claims: object = json.loads(_unpadded(token.split(".")[1]))
        except (ValueError, IndexError, RecursionError):
            return False
        if not is_object(claims) or claims.get("iss") != self._issuer:
            return False
        audience = claims.get("aud")
        return audience == _AUDIENCE or (is_array(audience) and _AUDIENCE in audience)


class HmacSessionTokens:
    """`base64url(session id | address | expiry in ms | HMAC-SHA256)`: two microseconds to check.

    If a contract proved the address, its chains follow the expiry, after a `*` if they include the
    home chain of key agents.
    """

    def __init__(self, secrets: SecretRing) -> None:
        self._keys = MacKeys(b"assay.session|", secrets)

    def issue(
        self,
        session_id: str,
        agent_address: str,
        expires_at: datetime,
        contract: ContractProof | None = None,
    ) -> str:
        parts = [session_id, agent_address, str(round(expires_at.timestamp() * 1000))]
        if contract is not None:
            parts.append(("*" if contract.is_home else "") + ",".join(contract.chains))
        said = "|".join(parts).encode()
        return _text_of(said + self._keys.mac(said))

    def read(self, token: str, now: datetime) -> Session | None:
        try:
            data = _unpadded(token)
        except (binascii.Error, ValueError):
            return None
        if _text_of(data) != token:  # another spelling would outlive the revocation of this one
            return None
        said, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
        if len(mac) != _MAC_BYTES or not self._keys.is_mac(said, mac):
            return None
        session_id, address, expires_ms, *chains = said.decode().split("|")
        expires = datetime.fromtimestamp(int(expires_ms) / 1000, UTC)
        contract = _contract_of(chains[0]) if chains else None
        return Session(session_id, address, expires, token, contract) if now < expires else None


def _text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unpadded(text: str) -> bytes:
    """Decode URL-safe base64 without padding. Raises `ValueError`."""
    return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)


def _contract_of(said: str) -> ContractProof:
    return ContractProof(tuple(said.removeprefix("*").split(",")), said.startswith("*"))
