"""Signs compact JWS (RFC 7515, section 7.1) by ES256 or Ed25519.

Equal input gives equal bytes: Ed25519 always does, and ES256 signs by RFC 6979.
"""

import base64
import json
from typing import Final, TypeAlias

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from assay.common.json import JsonObject

JwsKey: TypeAlias = ec.EllipticCurvePrivateKey | Ed25519PrivateKey

_COORDINATE_BYTES: Final = 32
_DETERMINISTIC: Final = ec.ECDSA(SHA256(), deterministic_signing=True)


def sign_compact(header: JsonObject, claims: JsonObject, key: JwsKey) -> str:
    """Return a compact JWS over the claims; the header must name the key's algorithm.

    A key of ECDSA must be on P-256 (RFC 7518, section 3.4).
    """
    signed = b".".join(_base64url(_json(part)) for part in (header, claims))
    if isinstance(key, Ed25519PrivateKey):
        signature = key.sign(signed)
    else:
        numbers = decode_dss_signature(key.sign(signed, _DETERMINISTIC))
        signature = b"".join(number.to_bytes(_COORDINATE_BYTES) for number in numbers)
    return b".".join((signed, _base64url(signature))).decode()


def _json(value: JsonObject) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _base64url(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")
