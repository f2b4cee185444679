"""Decision tokens: compact JWS by Ed25519 (RFC 8037), keys published as a JWK set."""

import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc import jws
from joserfc.jwk import OKPKey
from joserfc.registry import Header

from assay.kit.json import JsonObject

_ALGORITHM = "Ed25519"
"""Fully specified, where `EdDSA` leaves the curve open. Source: RFC 9864."""


class Ed25519DecisionSigner:
    """Signs with a key derived from the secret; the key id is its RFC 7638 thumbprint."""

    def __init__(self, secret: str) -> None:
        seed = hashlib.sha256(b"assay.decision|" + secret.encode()).digest()
        self._key = OKPKey.import_key(Ed25519PrivateKey.from_private_bytes(seed))
        self._header: Header = {
            "alg": _ALGORITHM,
            "kid": self._key.thumbprint(),
            "typ": "assay-decision+jwt",
        }

    def sign(self, claims: JsonObject) -> str:
        payload = json.dumps(claims, separators=(",", ":")).encode()
        return jws.serialize_compact(self._header, payload, self._key, algorithms=[_ALGORITHM])

    def jwks(self) -> JsonObject:
        public = self._key.as_dict(private=False)
        published = {"kid": self._header["kid"], "use": "sig", "alg": _ALGORITHM}
        return {"keys": [{**public, **published}]}
