"""Decision tokens: compact JWS by ES256 (RFC 7518, section 3.4), keys published as a JWK set."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc import jws
from joserfc.jwk import ECKey, OKPKey
from joserfc.registry import Header

from assay.common.json import JsonObject
from assay.common.keyring import SecretRing

_ALGORITHM: Final = "ES256"
"""What every common JWT library verifies, where few know Ed25519 by its own name (RFC 9864)."""

_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the group of P-256. Source: SEC 2, section 2.4.2."""


class Es256DecisionSigner:
    """Signs with the key of the ring's first secret; all keys of the ring are published.

    A key's id is its RFC 7638 thumbprint. Keys of versions that signed with Ed25519 are published
    as well, those of `earlier` by id, each until its time.
    """

    def __init__(self, secrets: SecretRing, earlier: Mapping[str, datetime]) -> None:
        keys = [_key(secret) for secret in secrets]
        self._key = keys[0]
        self._header: Header = {
            "alg": _ALGORITHM,
            "kid": self._key.thumbprint(),
            "typ": "assay-decision+jwt",
        }
        self._published = [_public(key, _ALGORITHM) for key in keys]
        known = {
            kid: _ed25519(secret)
            for kid, secret in zip(ed25519_kids(secrets), secrets, strict=True)
        }
        self._earlier = [
            (until, _public(known[kid], "Ed25519"))
            for kid, until in earlier.items()
            if kid in known
        ]

    def sign(self, claims: JsonObject) -> str:
        payload = json.dumps(claims, separators=(",", ":")).encode()
        return jws.serialize_compact(self._header, payload, self._key, algorithms=[_ALGORITHM])

    def jwks(self, now: datetime) -> JsonObject:
        earlier = [key for until, key in self._earlier if now < until]
        return {"keys": [*self._published, *earlier]}


def ed25519_kids(secrets: SecretRing) -> list[str]:
    """The ids of the keys that versions before ES256 made of these secrets."""
    return [_ed25519(secret).thumbprint() for secret in secrets]


def _key(secret: str) -> ECKey:
    """A key of P-256 from the secret: 512 bits of hash, so that no scalar is likelier."""
    drawn = hashlib.sha512(b"assay.decision.es256|" + secret.encode()).digest()
    scalar = int.from_bytes(drawn) % (_ORDER - 1) + 1
    return ECKey.import_key(ec.derive_private_key(scalar, ec.SECP256R1()))


def _ed25519(secret: str) -> OKPKey:
    """The key that versions before ES256 signed with (RFC 8037)."""
    seed = hashlib.sha256(b"assay.decision|" + secret.encode()).digest()
    return OKPKey.import_key(Ed25519PrivateKey.from_private_bytes(seed))


def _public(key: ECKey | OKPKey, algorithm: str) -> JsonObject:
    public = key.as_dict(private=False)
    return {**public, "kid": key.thumbprint(), "use": "sig", "alg": algorithm}
