"""Varies examples that are not a sentence but a notation. Pure.

`Aa x aa` works as well with the letter t or with its sides exchanged, and `B+` with a minus: an
agent that computes answers each separately.
"""

import re
from random import Random

SYMBOLS_MAX = 60
_LETTERS_MAX = 4
_RUN = re.compile(r"[^\W\d_]+")
_LETTERS = "abdegkrt"


def is_notation(text: str) -> bool:
    """Return whether a short text has letters and no whole word."""
    runs = _RUN.findall(text)
    is_short = len(text) <= SYMBOLS_MAX and bool(runs) and max(map(len, runs)) <= _LETTERS_MAX
    return is_short and text.isascii()


def respelled(example: str, random: Random) -> list[str]:
    """Return the example with other letters, signs or order; nothing if it has whole words."""
    if not is_notation(example):
        return []
    tokens = example.split()
    made = [
        example.translate(str.maketrans("+-", "-+")),
        " ".join(reversed(tokens)),
        _with_other_letters(example, random),
    ]
    return [text for text in dict.fromkeys(made) if text != example]


def _with_other_letters(example: str, random: Random) -> str:
    """Replace consistently each letter that occurs in both cases."""
    both = [c for c in dict.fromkeys(example) if c.islower() and c.upper() in example]
    free = [c for c in _LETTERS if c not in example.casefold()]
    others = random.sample(free, min(len(free), len(both)))
    pairs = dict(zip(both, others, strict=False))
    pairs |= {one.upper(): other.upper() for one, other in pairs.items()}
    return example.translate(str.maketrans(pairs))
