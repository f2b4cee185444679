"""Keys derived from a ring of secrets: MACs, and the sealing of secrets at rest.

The first secret signs and seals; every secret verifies and opens. To change a secret, put the new
one first and keep the old one behind it for as long as its signatures and seals must hold. Sealing
is AES-256-GCM (NIST SP 800-38D).
"""

import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SecretRing: TypeAlias = tuple[str, ...]
"""A ring of at least one secret, the signing one first."""


class MacKeys:
    """HMAC-SHA256 under keys that `label` separates from other uses of the same secrets."""

    def __init__(self, label: bytes, secrets: SecretRing) -> None:
        """Derive the keys; raises `ValueError` for an empty ring."""
        if not secrets:
            raise ValueError("a ring needs at least one secret")
        keys = (hashlib.sha256(label + secret.encode()).digest() for secret in secrets)
        self._begun = tuple(hmac.new(key, digestmod=hashlib.sha256) for key in keys)

    def mac(self, text: bytes) -> bytes:
        """Return the 32-byte MAC of the text under the first key."""
        return _mac(self._begun[0], text)

    def is_mac(self, text: bytes, given: bytes) -> bool:
        """Return whether `given` is the beginning of a MAC of the text under any key of the ring.

        At least 8 bytes are needed, so a MAC may be shortened but never be empty.
        """
        if not 8 <= len(given) <= 32:  # noqa: PLR2004 - of the 32 bytes of SHA-256
            return False
        return any(
            hmac.compare_digest(_mac(begun, text)[: len(given)], given) for begun in self._begun
        )


def _mac(begun: hmac.HMAC, text: bytes) -> bytes:
    made = begun.copy()  # `hmac.digest` would give up the interpreter's lock, and wait for it again
    made.update(text)
    return made.digest()


_VERSION = b"\x01"
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12


class SecretBox:
    """Seals with the first key of the ring, and opens with the key that sealed.

    Sealed form: version (1) | key id (4) | nonce (12) | ciphertext and tag. Associated data binds a
    sealed value to its place, such as a row id: it does not open anywhere else.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != 32 for key in keys):  # noqa: PLR2004 - AES-256
            raise ValueError("a ring of 32-byte keys is needed")
        self._ring = {_key_id(key): AESGCM(key) for key in keys}
        self._current = _key_id(keys[0])

    @classmethod
    def from_secrets(cls, *secrets: str) -> "SecretBox":
        """Return a box under keys that are derived from the secrets, the current one first."""
        return cls([hashlib.sha256(b"assay.box|" + secret.encode()).digest() for secret in secrets])

    def seal(self, data: bytes, associated: bytes) -> bytes:
        """Return the sealed form; two seals of the same data differ."""
        nonce = os.urandom(_NONCE_BYTES)
        head = _VERSION + self._current
        return head + nonce + self._ring[self._current].encrypt(nonce, data, head + associated)

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """Return the data; raises `ValueError` if this ring did not seal it for this place."""
        head, rest = sealed[: 1 + _KEY_ID_BYTES], sealed[1 + _KEY_ID_BYTES :]
        key = self._ring.get(head[1:])
        if head[:1] != _VERSION or key is None or len(rest) <= _NONCE_BYTES:
            raise ValueError("not sealed by a key of this ring")
        try:
            return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], head + associated)
        except InvalidTag as error:
            raise ValueError("the sealed value was changed or moved") from error

    def is_current(self, sealed: bytes) -> bool:
        """Return whether the ring's first key sealed it."""
        return sealed[1 : 1 + _KEY_ID_BYTES] == self._current


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"assay.box.id|" + key).digest()[:_KEY_ID_BYTES]
