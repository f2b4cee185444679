"""Requests and values for services that show none, chosen by the words of their descriptions. Pure.

An agent whose card gives no example, and a tool whose argument has no known name, still describe
themselves in a sentence. A row has words of such sentences, a question, and its values.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from assay.probing.function.known_values import (
    ADJECTIVES,
    CITIES,
    COINS,
    COUNTRIES,
    DISHES,
    ELEMENTS,
    KNOWN_FIRST,
    PLANETS,
    PLANTS,
    THINGS,
    TICKERS,
)
from assay.probing.function.passages import passage, some_date

DESCRIPTION_CHARS_MAX = 600


def _one_of(known: tuple[str, ...]) -> Callable[[Random], str]:
    return lambda random: random.choice(known[:KNOWN_FIRST])


def _money(random: Random) -> str:
    base, quote = random.sample(("USD", "EUR", "GBP", "JPY"), 2)
    return f"{random.randint(11, 980)} {base} in {quote}"


def _loan(random: Random) -> str:
    months = 12 * random.randint(2, 20)
    return f"{1000 * random.randint(5, 90)} over {months} months at {random.randint(20, 69) / 10} %"


def _length(random: Random) -> str:
    one, other = random.sample(("km", "miles", "feet", "meters"), 2)
    return f"{random.randint(3, 80)} {one} in {other}"


def _odd(random: Random) -> str:
    return str(2 * random.randint(20, 400) + 1)


def _radius(random: Random) -> str:
    return str(random.randint(2, 60))


def _hex(random: Random) -> str:
    return f"#{random.randrange(16**6):06x}"


@dataclass(frozen=True, slots=True)
class SubjectArea:
    """A topic that a service may have."""

    words: tuple[str, ...]
    question: str
    value: Callable[[Random], str]


_TEXTS: Final = (
    "summar",
    "condens",
    "extract",
    "sentiment",
    "keyword",
    "text",
    "document",
    "letter",
    "sentence",
    "paragraph",
    "passage",
    "article",
    "prompt",
    "spam",
    "readability",
    "prose",
)

_SUBJECTS: Final = (
    SubjectArea(("synonym", "thesaurus", "antonym"), "Which words mean the same as {}?",
            _one_of(ADJECTIVES)),
    SubjectArea(("circle", "radius", "sphere"), "What do you get for a radius of {}?", _radius),
    SubjectArea(("loan", "mortgage", "annuity"), "What do you get for {}?", _loan),
    SubjectArea(("colour", "color", "palette", "hexadecimal"), "What is {} as numbers?", _hex),
    SubjectArea(("weather", "forecast", "temperature", "climate", "town", "city"),
            "How is it in {} now?", _one_of(CITIES)),
    SubjectArea(("currenc", "exchange rate", "forex"), "What does {} come to?", _money),
    SubjectArea(("time zone", "timezone", "local time", "world clock"), "What time is it in {}?",
            _one_of(CITIES)),
    SubjectArea(("ticker", "stocks", "stock price", "equities"), "What do you know about {}?",
            _one_of(TICKERS)),
    SubjectArea(("crypto", "token price", "coin"), "What do you know about {}?", _one_of(COINS)),
    SubjectArea(("countr", "nation", "capital"), "What do you know about {}?", _one_of(COUNTRIES)),
    SubjectArea(("chemical", "periodic", "atomic", "element"), "What do you know about {}?",
            _one_of(ELEMENTS)),
    SubjectArea(("planet", "orbit", "solar system", "astronom"), "What do you know about {}?",
            _one_of(PLANETS)),
    SubjectArea(("plant", "garden", "watered", "flower"), "What does a {} need?", _one_of(PLANTS)),
    SubjectArea(("recipe", "ingredient", "dish", "cook"), "What is needed for {}?",
            _one_of(DISHES)),
    SubjectArea(("weekday", "calendar", "date"), "Which day was {}?", some_date),
    SubjectArea(("metric", "imperial", "length", "distance"), "What does {} come to?", _length),
    SubjectArea(("prime", "divisor", "factor"), "What do you find for {}?", _odd),
    SubjectArea(("translat", "dictionary", "language"), "What is '{}' in French?",
            _one_of(THINGS)),
    SubjectArea(_TEXTS, "What does the following say? {}", passage),
)  # fmt: skip


def subjects_of(text: str) -> list[SubjectArea]:
    """Return the topics that a description names, in order."""
    plain = text[:DESCRIPTION_CHARS_MAX].casefold()
    found = [(min(_places(plain, row)), n, row) for n, row in enumerate(_SUBJECTS)
             if _places(plain, row)]  # fmt: skip
    return [row for _, _, row in sorted(found, key=lambda entry: entry[:2])]


def reads_texts(about: str) -> bool:
    """Return whether a skill of this description processes a text."""
    return bool(_places(about[:DESCRIPTION_CHARS_MAX].casefold(), _SUBJECTS[-1]))


def _places(plain: str, row: SubjectArea) -> list[int]:
    return [place for word in row.words if (place := plain.find(word)) >= 0]


def questions_about(text: str, random: Random) -> Iterator[tuple[str, str]]:
    """Yield (topic, question) for each topic of a description, with three values each."""
    for row in subjects_of(text)[:2]:
        for _ in range(3):
            yield row.words[0], row.question.format(row.value(random))


def value_about(text: str, random: Random, *, texts: bool = True) -> str | None:
    """Return a value that a service of this description may know; None if its words tell none.

    `texts`: whether it may be a text of several sentences.
    """
    found = [row for row in subjects_of(text) if texts or row.words is not _TEXTS][:3]
    return random.choice(found).value(random) if found else None


_CONTACT = re.compile(r"\be-?mail|\bphone|personal (?:data|info)|\bPII\b", re.IGNORECASE)


def word_or_passage(name: str, random: Random, about: str = "") -> str | None:
    """Return a passage for an argument that takes one, by its name.

    It includes a person's address and number if the description mentions such.
    """
    plain = name.casefold()
    takes = ("text", "content", "document", "passage", "paragraph", "body", "article", "sentence")
    if not any(word in plain for word in takes):
        return None
    return passage(random, with_contact=bool(_CONTACT.search(about)))
