"""Examples that are no sentence but a notation, with other symbols. Pure.

`Aa x aa` is as good with the letter t, with its sides changed, and `B+` with a minus: an agent that
works such things out answers each by itself.
"""

import re
from random import Random

SYMBOLS_MAX = 60
_LETTERS_MAX = 4
_RUN = re.compile(r"[^\W\d_]+")
_LETTERS = "abdegkrt"


def is_notation(text: str) -> bool:
    """Whether a short text has letters and no whole word."""
    runs = _RUN.findall(text)
    is_short = len(text) <= SYMBOLS_MAX and bool(runs) and max(map(len, runs)) <= _LETTERS_MAX
    return is_short and text.isascii()


def respelled(example: str, random: Random) -> list[str]:
    """The example with other letters, signs or order; nothing of one that has whole words."""
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
    """Each letter that stands in both cases is another one, everywhere."""
    both = [c for c in dict.fromkeys(example) if c.islower() and c.upper() in example]
    free = [c for c in _LETTERS if c not in example.casefold()]
    others = random.sample(free, min(len(free), len(both)))
    pairs = dict(zip(both, others, strict=False))
    pairs |= {one.upper(): other.upper() for one, other in pairs.items()}
    return example.translate(str.maketrans(pairs))
