"""What a refusal says of what is known, and of how to ask. Pure."""

import re

from assay.probing.function.arguments import POOL_MAX
from assay.probing.function.examples import BETWEEN, EXAMPLE

OFFERED_CHARS_MAX, OFFERED_WORDS_MAX = 40, 4
_LEADS_TO_LIST = re.compile(
    r":\s|\b(?:one of|try|choose|among|are|sind|son|sont|sono"
    r"|são)\b",
    re.IGNORECASE,
)


def offered_in(said: str) -> list[str]:
    """The short names that a refusal lists, and its examples: what a service says it knows."""
    shown = [text.strip() for text in EXAMPLE.findall(said[:900])[:2]]
    listed = _LEADS_TO_LIST.split(said[:2000].strip(" .?!"))[-1]
    names = [name.strip("'\"` .") for name in BETWEEN.split(listed)]
    is_list = 1 < len(names) <= POOL_MAX and all(map(_is_name, names))
    return [name for name in (*shown, *(names if is_list else ())) if name]


def shown_in(said: str) -> list[str]:
    """The requests that an answer shows for others to follow; few and short."""
    shown = [part for text in _HOW_TO_ASK.findall(said[:900]) for part in _EITHER.split(text)]
    return [*dict.fromkeys(text.strip(" .") for text in shown[:SHOWN_MAX] if text.strip(" ."))]


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
    """Whether a refusal says what is known, or within which bounds."""
    return bool(offered_in(said)) or bounds_in(said) is not None


def _is_name(text: str) -> bool:
    return len(text) <= OFFERED_CHARS_MAX and len(text.split()) <= OFFERED_WORDS_MAX


def bounds_in(said: str) -> tuple[int, int] | None:
    """The bounds that a short refusal gives: its only two numbers, the lower one first."""
    numbers = [
        int(n) for n in re.findall(r"(?<![\w.,-])\d{1,9}(?![\w,-]|\.\d)", said[:BOUNDS_CHARS])
    ]
    is_range = len(numbers) == 2 and numbers[0] < numbers[1]  # noqa: PLR2004 - from and to
    return (numbers[0], numbers[1]) if is_range and len(said) <= BOUNDS_CHARS else None


BOUNDS_CHARS = 200
