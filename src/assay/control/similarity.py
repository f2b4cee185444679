"""Compares agents' self-descriptions: MinHash over shingles of normalised words. Pure.

Sources: Broder, "On the resemblance and containment of documents" (1997); Li, Owen and Zhang, "One
permutation hashing" (2012). What a copy changes on purpose is removed first: names, addresses,
numbers, order of tools, letter case, invisible characters and look-alike letters.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from assay.control.confusables import skeleton

WORDS: Final = 3
"""Words in one shingle."""

SHINGLES_MIN: Final = 24
"""Shorter texts are similar by chance: a greeting, a template's only tool."""

TEXT_CHARS_MAX: Final = 8_192
"""Characters read of all texts of an agent together: a few milliseconds."""

HASHES: Final = 64
BANDS: Final = 16
ALIKE: Final = 0.8
"""Estimated share of common shingles from which two agents are near-identical. Two that share 0.8
have a band in common with probability above 0.999."""

_HASH_BYTES = 4
_ADDRESS = re.compile(r"https?://\S+|\b0x[0-9a-f]+\b|[\w.+-]+@[\w-]+\.\w+", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d[\d.,:]*\b")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+")
"""Matches words; Chinese, Japanese and Korean have no spaces, so each character is a word."""


def signature(texts: Iterable[str], names: Iterable[str] = ()) -> str:
    """Return the signature of an agent's texts in hex; empty if they are too short to compare.

    `names` are the agent's own, which a copy changes.
    """
    own = {word for name in names for word in _words(name[:200])}
    shingles: set[str] = set()
    left = TEXT_CHARS_MAX
    for text in sorted(texts):
        words = [word for word in _words(text[:left]) if word not in own]
        left -= min(left, len(text))
        shingles |= {" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}
    if len(shingles) < SHINGLES_MIN:
        return ""
    return b"".join(_least(shingles)).hex()


def likeness(one: str, other: str) -> float:
    """Return the estimated share of common shingles, 0 to 1; 0 if a signature is missing."""
    if not one or len(one) != len(other):
        return 0.0
    size = 2 * _HASH_BYTES
    pairs = [(one[i : i + size], other[i : i + size]) for i in range(0, len(one), size)]
    return sum(a == b for a, b in pairs) / len(pairs)


def bands(found: str) -> Sequence[str]:
    """Return keys of which near-identical signatures share at least one."""
    size = len(found) // BANDS
    return [f"{at:x}{found[at * size : (at + 1) * size]}" for at in range(BANDS)] if found else []


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", _ADDRESS.sub(" ", text)).casefold()
    return _WORD.findall(skeleton(_NUMBER.sub(" ", plain)))


def _least(shingles: set[str]) -> list[bytes]:
    """Return the least hash of each bucket; an empty bucket takes that of the next full one."""
    buckets: list[bytes] = [b""] * HASHES
    for shingle in shingles:
        digest = hashlib.blake2b(shingle.encode(), digest_size=_HASH_BYTES + 1).digest()
        at, value = digest[0] % HASHES, digest[1:]
        if not buckets[at] or value < buckets[at]:
            buckets[at] = value
    filled = buckets
    for at in range(2 * HASHES - 1, -1, -1):
        here, following = at % HASHES, (at + 1) % HASHES
        filled[here] = filled[here] or filled[following]
    return filled
