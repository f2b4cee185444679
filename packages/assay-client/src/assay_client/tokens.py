"""Verifies decision tokens and receipts offline (conventions.md#gate; ADR 0052).

Only compact JWS by ES256 is accepted (RFC 7518, section 3.4): the token does not choose its
algorithm, and a key of another kind is never used (RFC 8725, section 3.1).
"""

import base64
import binascii
import hashlib
import importlib
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from assay_client.errors import InvalidToken, MissingExtra, UnexpectedResponse
from assay_client.flow import Core, Steps, json_of
from assay_client.models import DecisionClaims, ReceiptClaims, decode, list_of, object_of

_PART = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN_CHARS_MAX = 8192
_KEYS_MAX = 100
_COORDINATE_BYTES = 32
_DECISION = "assay-decision+jwt"
_RECEIPT = "assay-receipt+jwt"
CLOCK_SKEW_S = 5
"""How far the clocks of the service and of the verifier may differ."""


class DecisionVerifier:
    """Holds the service's keys; they are fetched when first needed.

    Keys are fetched again after `keys_s`, and at most once in `refresh_s` for an unknown key id, so
    that tokens with invented ids cause no requests.
    """

    def __init__(
        self,
        core: Core,
        *,
        keys_s: float = 600,
        refresh_s: float = 60,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._core, self._keys_s, self._refresh_s = core, keys_s, refresh_s
        self._now, self._monotonic = now, monotonic
        self._keys: Mapping[str, Any] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None

    def verify(self, token: str, audience: str, issuer: str | None = None) -> Steps[DecisionClaims]:
        """Return the claims of a valid token; raises `InvalidToken`, or `MissingExtra`.

        `audience` is your operator id. `issuer` is the service's public address; the default is the
        address of this client.
        """
        claims = yield from self._signed(token, _DECISION)
        self._check(claims, audience, issuer or self._core.base_url)
        try:
            return decode(DecisionClaims, claims)
        except UnexpectedResponse as error:
            raise InvalidToken(f"A claim is missing or malformed: {error}") from None

    def verify_receipt(
        self,
        receipt: str,
        *,
        request: bytes | None = None,
        response: bytes | None = None,
        issuer: str | None = None,
    ) -> Steps[ReceiptClaims]:
        """Return the claims of a receipt; raises `InvalidToken`, or `MissingExtra`.

        `request` and `response` are the bodies as they were sent, before any decompression; those
        that are given must be the receipt's. `issuer` is as for `verify`.
        """
        claims = yield from self._signed(receipt, _RECEIPT)
        if claims.get("iss") != (issuer or self._core.base_url):
            raise InvalidToken("The receipt is of another issuer.")
        try:
            found = decode(ReceiptClaims, claims)
        except UnexpectedResponse as error:
            raise InvalidToken(f"A claim is missing or malformed: {error}") from None
        for name, body, said in (
            ("request", request, found.request.content_digest),
            ("response", response, found.response.content_digest),
        ):
            if body is not None and said != _content_digest(body):
                raise InvalidToken(f"The receipt is for another {name}.")
        return found

    def _signed(self, token: str, kind: str) -> Steps[Mapping[str, Any]]:
        """Return the claims of a token of that `typ` that the service has signed."""
        kid, signed, signature, claims = _parsed(token, kind)
        crypto = _Crypto()
        key = yield from self._key(kid, crypto)
        if not crypto.is_valid(key, signature, signed):
            raise InvalidToken("The signature is not the service's.")
        return claims

    def _check(self, claims: Mapping[str, Any], audience: str, issuer: str) -> None:
        now = self._now()
        if claims.get("iss") != issuer:
            raise InvalidToken("The token is of another issuer.")
        if claims.get("aud") != audience:
            raise InvalidToken("The token is for another audience.")
        for name in ("exp", "iat"):
            if type(claims.get(name)) is not int:
                raise InvalidToken(f"The claim {name} is not a whole number.")
        if now >= claims["exp"] + CLOCK_SKEW_S:
            raise InvalidToken("The token has expired.")
        if claims["iat"] > now + CLOCK_SKEW_S:
            raise InvalidToken("The token is from the future.")

    def _key(self, kid: str, crypto: "_Crypto") -> Steps[Any]:
        now = self._monotonic()
        is_stale = self._fetched_at is None or now - self._fetched_at >= self._keys_s
        may_ask = self._asked_at is None or now - self._asked_at >= self._refresh_s
        if is_stale or (kid not in self._keys and may_ask):
            self._asked_at = now
            request = self._core.request("GET", "/.well-known/jwks.json")
            body = json_of((yield from self._core.send(request)))
            self._keys, self._fetched_at = crypto.keys(body), self._monotonic()
        if kid not in self._keys:
            raise InvalidToken("The service has no key of the token's key id.")
        return self._keys[kid]


def _parsed(token: str, kind: str) -> tuple[str, bytes, bytes, Mapping[str, Any]]:
    """Return key id, signed bytes, signature and claims of a token of the right form."""
    parts = token.split(".") if len(token) <= _TOKEN_CHARS_MAX else []
    if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):  # noqa: PLR2004 - RFC 7515, section 7.1
        raise InvalidToken("The token is not a compact JWS.")
    header, claims = _object(parts[0]), _object(parts[1])
    if header.get("alg") != "ES256" or header.get("typ") != kind or "crit" in header:
        raise InvalidToken(f"The token is not of type {kind}, signed by ES256.")
    kid, signature = header.get("kid"), _decoded(parts[2])
    if not isinstance(kid, str) or len(signature) != 2 * _COORDINATE_BYTES:
        raise InvalidToken("The token has no key id, or no signature by ES256.")
    return kid, f"{parts[0]}.{parts[1]}".encode(), signature, claims


def _object(part: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_decoded(part))
    except (ValueError, RecursionError):
        found = None
    members = object_of(found)
    if members is None:
        raise InvalidToken("A part of the token is not a JSON object.")
    return members


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidToken("A part of the token is not base64url.") from None


def _content_digest(body: bytes) -> str:
    """Return the digest of a body as RFC 9530, section 2, writes it."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def _is_usable(jwk: Mapping[str, Any]) -> bool:
    """Return whether a key may verify ES256 signatures (RFC 7517, section 4)."""
    return (
        (jwk.get("kty"), jwk.get("crv")) == ("EC", "P-256")
        and jwk.get("alg", "ES256") == "ES256"
        and jwk.get("use", "sig") == "sig"
        and isinstance(jwk.get("kid"), str)
    )


class _Crypto:
    """The parts of `cryptography` that verify ES256, imported when first needed."""

    def __init__(self) -> None:
        try:
            self._ec: Any = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ec")
            self._hashes: Any = importlib.import_module("cryptography.hazmat.primitives.hashes")
            self._utils: Any = importlib.import_module(
                "cryptography.hazmat.primitives.asymmetric.utils"
            )
            self._invalid: Any = importlib.import_module("cryptography.exceptions").InvalidSignature
        except ImportError:
            message = "cryptography is not installed: pip install 'assay-client[verify]'"
            raise MissingExtra(message) from None

    def keys(self, body: Any) -> Mapping[str, Any]:
        """Return the P-256 keys of a JWK set by their ids (RFC 7517); other keys are left out."""
        listed = list_of((object_of(body) or {}).get("keys"))
        if listed is None:
            raise UnexpectedResponse("The key set has no keys.")
        entries = [object_of(one) or {} for one in listed[:_KEYS_MAX]]
        return {one["kid"]: self._key(one) for one in entries if _is_usable(one)}

    def _key(self, jwk: Mapping[str, Any]) -> Any:
        try:
            x, y = (int.from_bytes(_decoded(jwk[name]), "big") for name in ("x", "y"))
            return self._ec.EllipticCurvePublicNumbers(x, y, self._ec.SECP256R1()).public_key()
        except (KeyError, TypeError, ValueError, InvalidToken):
            raise UnexpectedResponse("A key of the key set is malformed.") from None

    def is_valid(self, key: Any, signature: bytes, signed: bytes) -> bool:
        """Return whether the signature is the key's over these bytes."""
        r, s = (
            int.from_bytes(half, "big")
            for half in (signature[:_COORDINATE_BYTES], signature[_COORDINATE_BYTES:])
        )
        encoded = self._utils.encode_dss_signature(r, s)
        try:
            key.verify(encoded, signed, self._ec.ECDSA(self._hashes.SHA256()))
        except self._invalid:
            return False
        return True
