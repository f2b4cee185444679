"""Detects terminal sequences that hide text on a screen, and reads the hidden text. Pure.

Colours hide nothing; test runners and builds use them. Hidden are: concealed text, letters in the
colour of the background, and lines that are overwritten or erased.
Source: ECMA-48, sections 8.3.39, 8.3.41 and 8.3.117.
"""

import re
from collections.abc import Iterator
from itertools import islice

SEQUENCES_MAX = 400
"""Sequences read of one text."""

_CHARS = 2_000
"""Characters read of one sequence."""

SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,40})([@-~])")
_LINES = 3
_CONCEALED = 8


def hidden_passages(text: str) -> Iterator[str]:
    """Yield passages of the text that no screen shows."""
    for match in _sequences(text):
        if match[2] == "m" and _is_unseen(match[1]):
            yield SEQUENCE.split(text[match.end() : match.end() + _CHARS], maxsplit=1)[0]


def wiped_passages(text: str) -> Iterator[str]:
    """Yield passages that a screen shows only for a moment: progress, or hidden text."""
    for match in _sequences(text):
        if match[2] in "JK" and match[1] in {"1", "2", "3"}:
            yield _wiped(text[max(0, match.start() - _CHARS) : match.start()])


def _sequences(text: str) -> Iterator[re.Match[str]]:
    return islice(SEQUENCE.finditer(text), SEQUENCES_MAX)


def _is_unseen(numbers: str) -> bool:
    """Return whether letters are concealed, or have the colour of the background."""
    codes = [int(code) for code in numbers.replace(":", ";").split(";") if len(code) in {1, 2, 3}]
    letters = background = ""
    while codes:
        code, *codes = codes
        if code == _CONCEALED:
            return True
        if code in {38, 48} and codes:
            size = {5: 2, 2: 4}.get(codes[0], 0)
            colour, codes = str(codes[1:size]), codes[size:]
        elif code // 10 in {3, 4, 9, 10}:
            colour = f"{code % 10} {code // 10 > 4}"  # noqa: PLR2004 - bright ones begin at 90
        else:
            continue
        if code == 38 or code // 10 in {3, 9}:  # noqa: PLR2004 - the code of a colour for letters
            letters = colour
        else:
            background = colour
    return letters == background != ""


def _wiped(before: str) -> str:
    """Return the erased line, and those above it that the cursor moved up to."""
    return "\n".join(SEQUENCE.sub("", before).split("\n")[-_LINES:])
