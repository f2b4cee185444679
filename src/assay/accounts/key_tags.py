"""What tells an API key of ours from a guess before the store is asked.

A key ends with a tag that only holders of the service's secrets can make, and keys that have held
before are remembered. Neither grants anything: the store decides, and it is asked for those at
once. For everything else it is asked as often as the limit of guesses allows.
"""

from collections.abc import Iterable
from typing import Final

from assay.common.cache import BoundedMap
from assay.common.keyring import MacKeys, SecretRing

TAG_CHARS: Final = 16
"""Hexadecimal digits of a tag: one of 2^64, while guesses are limited."""

KNOWN_MAX: Final = 100_000
"""Keys remembered as having held; the one unused for longest is forgotten first."""

REFUSED_MAX: Final = 10_000
"""Keys remembered as not holding; the oldest is forgotten first."""


class KeyTags:
    """Tags keys, and recognises tagged ones and those that have held before."""

    def __init__(self, secrets: SecretRing) -> None:
        self._keys = MacKeys(b"assay.api-key|", secrets)
        self._known: BoundedMap[bytes, bool] = BoundedMap(KNOWN_MAX)

    def tagged(self, key: str) -> str:
        """The key with its tag behind it."""
        return key + self._keys.mac(key.encode()).hex()[:TAG_CHARS]

    def is_ours(self, key: str, digest: bytes) -> bool:
        """Whether the key has a tag of ours, or its digest is known. No I/O."""
        if digest in self._known:
            return True
        said, tag = key[:-TAG_CHARS], key[-TAG_CHARS:]
        try:
            return self._keys.is_mac(said.encode("utf-8", "replace"), bytes.fromhex(tag))
        except ValueError:
            return False

    def remember(self, digests: Iterable[bytes]) -> None:
        """These keys hold."""
        for digest in digests:
            self._known.put(digest, value=True)

    def forget(self, digest: bytes) -> None:
        """This key does not hold any more."""
        self._known.pop(digest)


class RefusedKeys:
    """Keys that did not hold a moment ago: nobody asks the store twice a second about one."""

    def __init__(self, remembered_s: float) -> None:
        self._remembered_s = remembered_s
        self._refused: BoundedMap[bytes, tuple[Exception, float]] = BoundedMap(REFUSED_MAX)

    def find(self, digest: bytes, now_s: float) -> Exception | None:
        """Why it was refused, while that is remembered."""
        found = self._refused.get(digest)
        return found[0] if found is not None and now_s < found[1] else None

    def add(self, digest: bytes, why: Exception, now_s: float) -> None:
        """Remember a refusal."""
        self._refused.put(digest, (why, now_s + self._remembered_s))

    def clear(self) -> None:
        """Ask the store again about all of them."""
        self._refused.clear()
