"""Varies an example's digits: neighbours of its number, or each run of digits. Pure."""

import re
from random import Random

from assay.probing.function.variation import EXAMPLE_CHARS_MAX

_IDENTIFIER = re.compile(r"(?<![A-Za-z\d])[A-Z]{1,5}[-/ ]?\d{3,12}(?![\w.,:/-]*\d)|(?<=#)\d{2,9}\b")
"""Matches what identifies one thing of many: letters and a number, or a number after its sign."""
_WHOLE = re.compile(r"(?<![\w.,:/#-])\d{2,12}(?![\w/:%-]|[.,]\d)")


def runs_varied(example: str, random: Random, *, at_once: bool = False) -> list[str]:
    """Return the example with one run of digits changed in each; or with all, twice.

    Digits become as many other digits; everything between them stays.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    runs = [run for run in _RUN.finditer(text) if len(run[0]) <= RUN_DIGITS_MAX]
    if at_once:
        return [_RUN.sub(lambda run: _other_run(run[0], random), text) for _ in runs[:2]]
    random.shuffle(runs)
    return [
        text[: run.start()] + _other_run(run[0], random) + text[run.end() :]
        for run in runs[:RUNS_MAX]
    ]


_RUN = re.compile(r"\d+", re.ASCII)
RUNS_MAX, RUN_DIGITS_MAX = 4, 12


def _other_run(digits: str, random: Random) -> str:
    """Return other digits with a first digit not larger: hours, months and shares have bounds."""
    first = random.randint(0 if digits[0] == "0" else 1, max(1, int(digits[0])))
    rest = "".join(str(random.randint(0, 9)) for _ in digits[1:])
    made = f"{first}{rest}"
    return made if made != digits else f"{digits[:-1]}{(int(digits[-1]) + 1) % 10}"


def names_code(example: str) -> bool:
    """Return whether an example identifies one thing by a code that ends in a number."""
    return bool(_IDENTIFIER.search(example[:EXAMPLE_CHARS_MAX]))


def beside_it(example: str, random: Random) -> list[str]:
    """Return the example with neighbours of its last code or number, if that is its only one.

    A service that knows few things often numbers them consecutively.
    """
    text = example[:EXAMPLE_CHARS_MAX]
    found = list(_IDENTIFIER.finditer(text)) or list(_WHOLE.finditer(text))
    if len(found) != 1:
        return []
    code = re.search(r"\d+$", found[0][0])
    assert code is not None  # noqa: S101 - both patterns end in digits
    end, digits = found[0].end(), code[0]
    steps = random.sample((1, -1), 2)
    made = [f"{int(digits) + step:0{len(digits)}}" for step in steps]
    fitting = [number for number in made if len(number) == len(digits)]
    return [text[: end - len(digits)] + number + text[end:] for number in fitting]
