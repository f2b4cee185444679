"""Secrets at rest: AES-256-GCM under a ring of keys (facts of the field: NIST SP 800-38D)."""

import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_VERSION = b"\x01"
_KEY_ID_BYTES = 4
_NONCE_BYTES = 12


class SecretBox:
    """Seals with the first key of the ring, opens with whichever sealed.

    Sealed form: version (1) | key id (4) | nonce (12) | ciphertext and tag. Associated data binds
    a sealed value to its place (a row id, say): moved elsewhere it does not open.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != 32 for key in keys):  # noqa: PLR2004 - AES-256
            raise ValueError("a ring of 32-byte keys is needed")
        self._ring = {_key_id(key): AESGCM(key) for key in keys}
        self._current = _key_id(keys[0])

    @classmethod
    def from_secrets(cls, *secrets: str) -> "SecretBox":
        """A box under keys derived from the secrets, the current one first."""
        return cls([hashlib.sha256(b"assay.box|" + secret.encode()).digest() for secret in secrets])

    def seal(self, data: bytes, associated: bytes) -> bytes:
        """The sealed form; two seals of the same data differ."""
        nonce = os.urandom(_NONCE_BYTES)
        head = _VERSION + self._current
        return head + nonce + self._ring[self._current].encrypt(nonce, data, head + associated)

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """The data; raises `ValueError` for anything not sealed by this ring for this place."""
        head, rest = sealed[: 1 + _KEY_ID_BYTES], sealed[1 + _KEY_ID_BYTES :]
        key = self._ring.get(head[1:])
        if head[:1] != _VERSION or key is None or len(rest) <= _NONCE_BYTES:
            raise ValueError("not sealed by a key of this ring")
        try:
            return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], head + associated)
        except InvalidTag as error:
            raise ValueError("the sealed value was changed or moved") from error

    def is_current(self, sealed: bytes) -> bool:
        """Whether the ring's first key sealed it."""
        return sealed[1 : 1 + _KEY_ID_BYTES] == self._current


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"assay.box.id|" + key).digest()[:_KEY_ID_BYTES]
