"""Varies examples of one shape: the same words around other values, which are exchanged. Pure.

`Which bay holds A-17?` and `Which bay holds B-20?` show that a bay is identified by a capital, a
hyphen and two digits. So values that only its owner knows can be asked for.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby
from random import Random
from typing import Final

from assay.probing.function.variation import EXAMPLE_CHARS_MAX, figures_varied

MADE_MAX = 2
"""Values generated from one notation."""

_TOKEN: Final = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[A-Za-z\d]+(?:[./:@#+-][A-Za-z\d]+)*|[^\W\d_]+|\S"
)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

_Slots = dict[tuple[int, int], list[str]]
"""Values by their position in an example, its own first."""


def reslotted(example: str, examples: Sequence[str], random: Random) -> list[str]:
    """Return the example with one of its values changed; none if no other has its shape.

    First with values of the others, then with new ones of their notation. All but one value stay:
    an agent prepared for one of them answers all of these alike, or none.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    slots: _Slots = {}
    for other in examples:
        for place, value in _differences(text, other[:EXAMPLE_CHARS_MAX]).items():
            values = slots.setdefault(place, [text[slice(*place)]])
            values += [value] if value not in values else []
    places = random.sample(list(slots), len(slots))
    had = {one.casefold() for one in examples}
    theirs = [_with(text, place, value) for place in places for value in slots[place][1:]]
    made = [_with(text, place, v) for place in places for v in _made_like(slots[place], random)]
    return [t for t in dict.fromkeys((*theirs, *made)) if t.casefold() not in had]


def recombined(example: str, examples: Sequence[str], random: Random) -> list[str]:
    """Return the example with one value exchanged for another's: each text in another place.

    None if fewer than two places have such: an agent that looks up one value would pass.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    had = {one.casefold() for one in examples}
    by_place: dict[tuple[int, int], list[str]] = {}
    for other in random.sample([*examples], len(examples)):
        for place, value in _differences(text, other[:EXAMPLE_CHARS_MAX]).items():
            made = _with(text, place, value)
            if made.casefold() not in had and made != text:
                by_place.setdefault(place, []).append(made)
    made = [texts[0] for texts in by_place.values()]
    random.shuffle(made)
    return made if len(made) > 1 else []


def _with(text: str, place: tuple[int, int], value: str) -> str:
    return text[: place[0]] + value + text[place[1] :]


def _differences(text: str, other: str) -> dict[tuple[int, int], str]:
    """Return what another text has in place of parts of this one; none if the shapes differ."""
    here, there = list(_TOKEN.finditer(text)), list(_TOKEN.finditer(other))
    one, two = [t[0] for t in here], [t[0] for t in there]
    steps = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    kept = sum(step[2] - step[1] for step in steps if step[0] == "equal")
    is_shape = {step[0] for step in steps} == {"equal", "replace"}
    if not is_shape or 2 * kept < max(len(one), len(two)):
        return {}
    return {
        (here[a].start(), here[b - 1].end()): other[there[c].start() : there[d - 1].end()]
        for step, a, b, c, d in steps
        if step == "replace"
    }


def _made_like(values: Sequence[str], random: Random) -> list[str]:
    """Return new values of the notation that some of these share; none for words."""
    by_form: dict[str, list[list[str]]] = {}
    for value in values:
        runs = ["".join(run) for _, run in groupby(value, _kind)]
        by_form.setdefault("".join(_kind(run[0]) for run in runs), []).append(runs)
    form, alike = max(by_form.items(), key=lambda item: len(item[1]))
    if len(alike) < 2 or not ("9" in form or form.isupper()):  # noqa: PLR2004 - to be shared
        return []
    figures = figures_varied(values[0], random) if not set(form) & {"A", "a"} else None
    if figures is not None:
        return [figures]
    return ["".join(_run(parts, random) for parts in zip(*alike, strict=True))
            for _ in range(MADE_MAX)]  # fmt: skip


def _kind(char: str) -> str:
    if char.isdigit():
        return "9"
    if char.isalpha():
        return "A" if char.isupper() else "a"
    return char


def _run(given: Sequence[str], random: Random) -> str:
    """Return characters like those of the values in one place; shared ones stay."""
    first, kind = given[0], _kind(given[0][0])
    if kind not in {"9", "A", "a"} or len(set(given)) == 1:
        return first
    length = random.randint(min(map(len, given)), max(map(len, given)))
    if kind == "9":
        head = random.choice("123456789") if all(run[0] != "0" for run in given) else "0"
        return head + "".join(str(random.randint(0, 9)) for _ in range(length - 1))
    seen = "".join(given)
    letters = _LETTERS if seen.isascii() else seen.casefold()
    return "".join(
        random.choice(letters.upper() if kind == "A" else letters) for _ in range(length)
    )


def relettered(value: str, random: Random) -> str | None:
    """Return the value with other digits; single capitals become others of a few."""
    changed = figures_varied(value, random)
    is_sentence = len(value.split()) >= SENTENCE_WORDS_MIN
    letters = changed or value
    if not is_sentence:
        letters = _ALONE.sub(lambda _: random.choice(_CAPITALS), letters)
    return letters if letters != value else None


SENTENCE_WORDS_MIN = 4
"""Least words of a possible sentence, in which `I` means the speaker."""

_ALONE: Final = re.compile(r"(?<![A-Za-z\d])[A-Z](?![A-Za-z\d])")
_CAPITALS: Final = "ABCD"
