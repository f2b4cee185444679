"""Compares names that look alike and agents' self-descriptions. Pure.

Names that look alike: skeletons by Unicode TR39, section 4.

The table is Unicode's `confusables.txt`, in the form of the library `confusable-homoglyphs`: it
lists pairs in both directions; the character of a group that most others are confused with is the
prototype.

Compares agents' self-descriptions: MinHash over shingles of normalised words.

Sources: Broder, "On the resemblance and containment of documents" (1997); Li, Owen and Zhang, "One
permutation hashing" (2012). What a copy changes on purpose is removed first: names, addresses,
numbers, order of tools, letter case, invisible characters and look-alike letters.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

NAME_CHARS_MAX: Final = 200

_PASSES = 3
"""Passes over the text: the result of one pass, or its lower case, may map again."""


def skeleton(text: str) -> str:
    """Return a lower-case form of `text` that is equal for all texts that look like it."""
    found = text
    for _ in range(_PASSES):
        found = _mapped(found)
    return found


def name_skeleton(name: str) -> str:
    """Return the skeleton of a name, without white space and punctuation."""
    found = skeleton(name[:NAME_CHARS_MAX])
    return "".join(c for c in found if unicodedata.category(c)[0] not in "ZPCS")[:NAME_CHARS_MAX]


def _mapped(text: str) -> str:
    table = _prototypes()
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    shown = (c for c in plain if not _is_invisible(c))
    return "".join(table.get(c, c) for c in shown).casefold()


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"


@lru_cache(maxsize=1)
def _prototypes() -> Mapping[str, str]:
    """Return the prototype of each character; loaded on first use: 40 ms."""
    # A table of a mebibyte, not needed at the start.
    from confusable_homoglyphs import confusables  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    rows = cast("Mapping[str, Sequence[Mapping[str, str]]]", confusables.confusables_data)
    groups = {c: [other["c"] for other in others] for c, others in rows.items()}
    table: dict[str, str] = {}
    for character, others in groups.items():
        if len(character) != 1:
            continue
        # Many characters look like a prototype; in a pair it is the first in code order.
        best = min(
            [character, *others], key=lambda c: (-len(groups.get(c, ())), not c.isascii(), c)
        )
        table[character] = "".join(c for c in best if not _is_invisible(c))
    return table


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
