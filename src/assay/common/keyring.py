"""MAC keys derived from a ring of secrets: the first one signs, every one of them verifies.

A secret is changed by putting the new one first and keeping the old one behind it for as long as
what it signed holds.
"""

import hashlib
import hmac
from typing import TypeAlias

SecretRing: TypeAlias = tuple[str, ...]
"""A ring of secrets, at least one, the signing one first."""


class MacKeys:
    """HMAC-SHA256 under keys that `label` sets apart from other uses of the same secrets."""

    def __init__(self, label: bytes, secrets: SecretRing) -> None:
        """Raises `ValueError` for a ring without a secret."""
        if not secrets:
            raise ValueError("a ring needs at least one secret")
        keys = (hashlib.sha256(label + secret.encode()).digest() for secret in secrets)
        self._begun = tuple(hmac.new(key, digestmod=hashlib.sha256) for key in keys)

    def mac(self, text: bytes) -> bytes:
        """The 32 bytes that the first key makes of the text."""
        return _mac(self._begun[0], text)

    def is_mac(self, text: bytes, given: bytes) -> bool:
        """Whether `given` begins one of the MACs that a key of the ring makes of the text.

        At least 8 bytes are needed, so that a MAC may be shortened but never be empty.
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
