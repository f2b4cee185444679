"""Credentials of facilitators: static headers, or a JWT for each request as CDP requires it.

Source: x402.md#facilitator; ADR 0053.
"""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from assay.common.addresses import is_confidential
from assay.common.clock import Clock
from assay.common.compact_jws import JwsKey, sign_compact
from assay.common.json import JsonObject, is_object

Authorize: TypeAlias = Callable[[str, str], Mapping[str, str]]
"""Returns the headers for a request, by its method and URL."""

CDP_TTL_S: Final = 120
"""Lifetime of a CDP token. Source: x402.md#facilitator."""

_CDP: Final = {"cdp_key_id", "cdp_key_secret"}
_ED25519_BYTES: Final = 64
_SEED_BYTES: Final = 32
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,4094}[\x21-\x7e])?")
_RESERVED: Final = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection"}
)
_HEADERS_MAX: Final = 10


def no_credentials(_method: str, _url: str) -> Mapping[str, str]:
    """Return no headers."""
    return {}


@dataclass(frozen=True, slots=True)
class FacilitatorEndpoint:
    """The address of a facilitator, and what it is shown."""

    url: str
    authorize: Authorize = no_credentials


def endpoints_of(urls: Sequence[str], text: str | None, clock: Clock) -> list[FacilitatorEndpoint]:
    """Return the facilitators in order, with their credentials.

    `text` is JSON, by address: `{"headers": {...}}`, or `{"cdp_key_id": ..., "cdp_key_secret":
    ...}`. Raises `ValueError` for anything else, for an address that is not in `urls`, and for
    credentials that would travel in clear text. No message quotes a credential.
    """
    found: dict[str, Authorize] = {}
    for url, given in _by_url(text).items():
        if url not in urls:
            raise ValueError(f"{_shown(url)} is not the address of a facilitator")
        if not is_object(given):
            raise ValueError(f"the credentials of {_shown(url)} are not a JSON object")
        if not is_confidential(url):
            raise ValueError(f"{_shown(url)} must begin with https://, or name loopback")
        found[url] = _authorize(url, given, clock)
    return [FacilitatorEndpoint(url, found.get(url, no_credentials)) for url in urls]


def _by_url(text: str | None) -> JsonObject:
    """Return the members by the address as the settings keep it, without a final slash."""
    if not text:
        return {}
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("must be JSON") from None
    if not is_object(value):
        raise ValueError("must be a JSON object")
    return {url.rstrip("/"): given for url, given in value.items()}


def _authorize(url: str, given: JsonObject, clock: Clock) -> Authorize:
    headers = given.get("headers")
    if set(given) == {"headers"} and is_object(headers):
        return _static(url, headers)
    key_id, secret = given.get("cdp_key_id"), given.get("cdp_key_secret")
    if set(given) != _CDP or not isinstance(key_id, str) or not isinstance(secret, str):
        message = f"{_shown(url)} needs `headers`, or `cdp_key_id` and `cdp_key_secret`"
        raise ValueError(message)
    return CdpCredentials(key_id, secret, clock).headers


def _static(url: str, given: JsonObject) -> Authorize:
    headers = {name.lower(): value for name, value in given.items() if isinstance(value, str)}
    is_good = len(headers) == len(given) <= _HEADERS_MAX and all(
        _NAME.fullmatch(name) and _VALUE.fullmatch(value) and name not in _RESERVED
        for name, value in headers.items()
    )
    if not is_good:
        raise ValueError(f"the headers of {_shown(url)} are not at most ten names with values")
    return lambda _method, _url: headers


class CdpCredentials:
    """An API key of the Coinbase Developer Platform: Ed25519 in base64, or P-256 in PEM."""

    def __init__(self, key_id: str, secret: str, clock: Clock) -> None:
        """Create it. Raises `ValueError` for a key that CDP does not issue."""
        self._key_id = key_id
        self._key = _key(secret)
        self._algorithm = "EdDSA" if isinstance(self._key, Ed25519PrivateKey) else "ES256"
        self._clock = clock

    def headers(self, method: str, url: str) -> Mapping[str, str]:
        """Return the `Authorization` of one request: a token for this method and path alone."""
        parts, now = urlsplit(url), int(self._clock.now().timestamp())
        host = parts.netloc.rpartition("@")[2]
        header: JsonObject = {
            "alg": self._algorithm,
            "kid": self._key_id,
            "typ": "JWT",
            "nonce": secrets.token_hex(8),
        }
        claims: JsonObject = {
            "sub": self._key_id,
            "iss": "cdp",
            "iat": now,
            "nbf": now,
            "exp": now + CDP_TTL_S,
            "uris": [f"{method} {host}{parts.path}"],
        }
        return {"authorization": "Bearer " + sign_compact(header, claims, self._key)}


def _key(secret: str) -> JwsKey:
    """Return the key: base64 of seed and public key, or PEM, also with escaped line ends."""
    try:
        if secret.startswith("-----BEGIN"):
            found = load_pem_private_key(secret.replace("\\n", "\n").encode(), None)
            if isinstance(found, ec.EllipticCurvePrivateKey) and isinstance(
                found.curve, ec.SECP256R1
            ):
                return found
        else:
            raw = base64.b64decode(secret, validate=True)
            key = Ed25519PrivateKey.from_private_bytes(raw[:_SEED_BYTES])
            if len(raw) == _ED25519_BYTES and key.public_key().public_bytes_raw() == raw[32:]:
                return key
    except (ValueError, TypeError, UnsupportedAlgorithm, binascii.Error):
        pass  # the text may quote the key: the sentence below says what is expected
    message = "cdp_key_secret must be an Ed25519 key in base64, or a P-256 key in PEM"
    raise ValueError(message)


def _shown(url: str) -> str:
    """Return scheme, host and path: what else is in an address may be a secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address"
    return f"{parts.scheme}://{parts.hostname}{parts.path}"[:200]
