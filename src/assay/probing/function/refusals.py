"""Reads what a refusal says about known values, and about how to ask. Pure."""

import re
from random import Random
from typing import Final

from assay.probing.function.arguments import POOL_MAX
from assay.probing.function.examples import BETWEEN, EXAMPLE
from assay.probing.function.formats import named_format

OFFERED_CHARS_MAX, OFFERED_WORDS_MAX = 40, 4
_LEADS_TO_LIST = re.compile(
    r":\s|\b(?:one of|try|choose|among|are|sind|son|sont|sono"
    r"|são)\b",
    re.IGNORECASE,
)


def offered_in(said: str) -> list[str]:
    """Return the short names that a refusal lists, and its examples: values the service knows."""
    shown = [text.strip() for text in EXAMPLE.findall(said[:900])[:2]]
    listed = _LEADS_TO_LIST.split(said[:2000].strip(" .?!"))[-1]
    names = [name.strip("'\"` .") for name in BETWEEN.split(listed)]
    is_list = 1 < len(names) <= POOL_MAX and all(map(_is_name, names))
    return [name for name in (*shown, *(names if is_list else ())) if name]


_SENTENCE = re.compile(r"(?<=[?!.。\uff01\uff1f])\s*|\n")
_AND: Final = "and|or|und|oder|y|o|et|ou|e|en|of|i|lub|ve|veya|и|или|та|або"  # noqa: RUF001
_JOINS = re.compile(rf"\s*[,;、،\uff0c]\s*(?:(?:{_AND})\s+)?|\s+(?:{_AND})\s+")
LISTED_MIN, NAMES_MAX = 3, 6


def listed_in(said: str) -> list[str]:
    """Return the short names of the first list of three or more in an answer, in any language.

    The first name counts only after a colon: otherwise the words leading to the list are unknown.
    """
    for sentence in _SENTENCE.split(said[:1000]):
        _, colon, rest = sentence.rpartition(":")
        parts = [p.strip(" .!?。'\"`«»“”„") for p in _JOINS.split(rest if colon else sentence)]
        names = parts if colon else parts[1:]
        if len(parts) >= LISTED_MIN and all(p and _is_name(p) for p in names):
            return [name for name in names if not any(c.isdigit() for c in name)][:NAMES_MAX]
    return []


_QUOTED_DATA = re.compile(r"[`'\"“«„]([^`'\"“”«»„\n]{2,60})[`'\"”»“]")
_DATA = re.compile(
    r"(?<![\w#₹$€£])[#₹$€£]?(?=[^\s]*\d)[A-Za-z\d]+(?:[-/.:,+#@][A-Za-z\d]+)+%?(?![\w-])"
    r"|\b[A-Z]{1,4}\d{2,10}\b"
)


def notations_in(said: str) -> list[str]:
    """Return parts of a refusal or help text that show a notation: quoted, or with digits."""
    cut = said[:900]
    quoted = [q.strip() for q in _QUOTED_DATA.findall(cut)]
    data = [found[0].strip(".,:") for found in _DATA.finditer(cut)]
    return [*dict.fromkeys(text for text in (*quoted, *data) if text)][:SHOWN_MAX]


def shown_in(said: str) -> list[str]:
    """Return the requests that an answer shows as examples; few and short."""
    shown = [part for text in _HOW_TO_ASK.findall(said[:900]) for part in _EITHER.split(text)]
    shown = [*shown[:SHOWN_MAX], *_filled_in(said[:900])]
    return [*dict.fromkeys(text.strip(" .") for text in shown if text.strip(" ."))]


_STANDS_FOR = re.compile(r"(?<![\w#])#?(?:([A-Za-z])\1+|[-/.:]|\d+)+(?![\w])")
_RUN_OF = re.compile(r"([A-Za-z])\1+")
RUNS_MIN = 2


def _filled_in(said: str) -> list[str]:
    """Return values of the form that repeated letters stand for: `#rrggbb`, `AAA-nnn`.

    Small letters become digits, which most fields accept; capitals become letters.
    """
    random = Random(said)  # noqa: S311 - an example, varied before it is asked
    found = [m[0] for m in _STANDS_FOR.finditer(said) if len(_RUN_OF.findall(m[0])) >= RUNS_MIN]
    forms = [form for form in found if not named_format(form)]

    def filled(run: re.Match[str]) -> str:
        signs = "23456789" if run[0].islower() else "ABCDEFHK"
        return "".join(random.choice(signs) for _ in run[0])

    return [_RUN_OF.sub(filled, form) for form in dict.fromkeys(forms)][:1]


SHOWN_MAX = 3
_EITHER = re.compile(r"\s+(?:or|oder|ou|ofwel|lub|или|veya)\s+")
_HOW_TO_ASK = re.compile(
    r"(?:e\.g\.|for example|for instance|such as|examples?:"
    r"|(?:writt?en?|give|enter|put|spell) (?:(?:it|them|that|this|one|each \w+) )?(?:as|like)"
    r"|(?:be|looks?) (?:written |given )?(?:like|as)|in the (?:form|format|notation)(?: of)?"
    r"|schreib\w* (?:sie )?(?:es|sie|das) (?:als|wie|so)|écri\w+(?:-l[ea]s?)? comme"
    r"|escr[ií]b\w* como|scriv\w+ come|escreva\w*(?:-[oa])? como"
    r"|(?:напишите|запишите) как|(?:напишіть|запишіть) як"
    r"|z\. ?B\.|zum Beispiel|p\. ?ej\.|por ejemplo|por exemplo|par exemple|per esempio|ad esempio"
    r"|например|örneğin|例えば|例如)[:,\uff1a]?\s*['\"`“(]?([^\s'\"`”)][^\n]{0,118}?)"
    r"(?=['\"`”)]?(?:[.?!。]?\s*$|[.!。]\s))",
    re.IGNORECASE | re.MULTILINE,
)


def tells_known(said: str) -> bool:
    """Return whether a refusal says what is known, or within which bounds."""
    return bool(offered_in(said)) or bounds_in(said) is not None


def _is_name(text: str) -> bool:
    return len(text) <= OFFERED_CHARS_MAX and len(text.split()) <= OFFERED_WORDS_MAX


def bounds_in(said: str) -> tuple[int, int] | None:
    """Return the bounds in a short refusal: its only two numbers, the lower one first."""
    numbers = [
        int(n) for n in re.findall(r"(?<![\w.,-])\d{1,9}(?![\w,-]|\.\d)", said[:BOUNDS_CHARS])
    ]
    is_range = len(numbers) == 2 and numbers[0] < numbers[1]  # noqa: PLR2004 - from and to
    return (numbers[0], numbers[1]) if is_range and len(said) <= BOUNDS_CHARS else None


BOUNDS_CHARS = 200
