"""Names that look alike: skeletons by Unicode TR39, section 4. Pure.

The table is Unicode's `confusables.txt`, in the form of the library `confusable-homoglyphs`: it
lists pairs in both directions; the character of a group that most others are confused with is the
prototype.
"""

import unicodedata
from collections.abc import Mapping, Sequence
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
