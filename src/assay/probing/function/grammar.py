"""Generates requests with one right answer. Pure: the same random source, the same request.

An answer counts as right only if it could not result from repeating the request or listing answers.
Source: evidence.md#conversations.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from assay.probing.function.words import words_of

_ANSWER_NUMBERS_MAX = 12
"""Different numbers allowed in a right answer: it may show its working, but not a list of
numbers."""

_SMALL_TEXT: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    " fifteen sixteen seventeen eighteen nineteen"
)
_SMALL: Final = tuple(_SMALL_TEXT.split())
_TENS_TEXT: Final = "zero ten twenty thirty forty fifty sixty seventy eighty ninety"
_TENS: Final = tuple(_TENS_TEXT.split())
_THINGS_TEXT: Final = (
    "lamps kettles bricks ribbons marbles candles buttons violins lemons tickets stamps"
    " pencils tiles shells blankets coins spoons baskets"
)
_THINGS: Final = tuple(_THINGS_TEXT.split())
_PLACES_TEXT: Final = "crate cellar barn workshop attic wagon cupboard library harbour shed"
_PLACES: Final = tuple(_PLACES_TEXT.split())
_FIRST_TEXT: Final = (
    "Mira Ossian Tamsin Jorun Pavel Ilse Renko Amadou Sunniva Kofi Leocadia Bram Noor Yusra"
    " Teodor Wanda"
)
_FIRST: Final = tuple(_FIRST_TEXT.split())
_COLOURS_TEXT: Final = "green blue red yellow white black purple orange"
_COLOURS: Final = tuple(_COLOURS_TEXT.split())
_WORDS_TEXT: Final = (
    "anchor basket candle dragon engine feather garden hammer island jacket kitten ladder"
    " magnet needle orange pillow quarry ribbon saddle timber umbrella valley walnut yonder"
    " zipper"
)
_WORDS: Final = tuple(_WORDS_TEXT.split())


@dataclass(frozen=True, slots=True)
class Checkable:
    """A request, and the required content of its answer."""

    kind: str
    text: str
    expected: tuple[str, ...]
    """Words the answer must contain, in this order."""
    excluded: tuple[str, ...] = ()
    """Words a right answer has no reason to contain."""


def checkable(random: Random) -> Checkable:
    """Return one request of a random kind."""
    make: Callable[[Random], Checkable] = random.choice((_arithmetic, _reordering, _extraction))
    return make(random)


def checkables(about: str, random: Random) -> list[list[Checkable]]:
    """Return two requests of each kind; first of the kinds that a description mentions."""
    kinds = [
        (_product, r"\bsums?\b|arithmetic|calculat|multipl|\bmath|numbers"),
        (_arithmetic, r"word problem|reason|puzzle|general|question|assistant"),
        (_reordering, r"\bsort|\blists?\b|alphabet|order"),
        (_extraction, r"questions? (?:on|about)|extract|\bread|text|document"),
    ]
    random.shuffle(kinds)
    kinds.sort(key=lambda kind: not re.search(kind[1], about[:4000], re.IGNORECASE))
    return [[make(random), make(random)] for make, _ in kinds]


def is_right(request: Checkable, answer: str) -> bool:
    """Return whether an answer is right; additional text does not matter."""
    found = words_of(answer)
    if any(word in found for word in request.excluded):
        return False
    if request.kind == "arithmetic":
        numbers = set(re.findall(r"\d+", re.sub(r"(?<=\d),(?=\d{3})", "", answer[:4000])))
        return request.expected[0] in numbers and len(numbers) <= _ANSWER_NUMBERS_MAX
    named = [word for word in found if word in request.expected]
    return tuple(named[-len(request.expected) :]) == request.expected


def _arithmetic(random: Random) -> Checkable:
    start, more = random.randint(21, 79), random.randint(11, 19)
    times, taken = random.randint(3, 9), random.randint(2, 9)
    thing, place = random.choice(_THINGS), random.choice(_PLACES)
    text = (
        f"A {place} holds {_spelled(start)} {thing}. Then {_spelled(times)} boxes with"
        f" {_spelled(more)} {thing} each are brought in, and {_spelled(taken)} {thing} break."
        f" How many whole {thing} are in the {place} now? Answer with the number in digits."
    )
    return Checkable("arithmetic", text, (str(start + times * more - taken),))


def _product(random: Random) -> Checkable:
    one, other = random.randint(13, 97), random.randint(13, 97)
    return Checkable("arithmetic", f"What is {one} times {other}?", (str(one * other),))


def _reordering(random: Random) -> Checkable:
    words = random.sample(_WORDS, 6)
    while words == sorted(words):
        random.shuffle(words)
    text = (
        "Which is the alphabetical sequence of these words? Answer with commas between them:"
        f" {', '.join(words)}."
    )
    return Checkable("reordering", text, tuple(sorted(words)))


def _extraction(random: Random) -> Checkable:
    people = random.sample(_FIRST, 5)
    things = [word[:-1] for word in random.sample(_THINGS, 5)]
    colours = random.sample(_COLOURS, 5)
    listed = ", ".join(
        f"{who} got the {colour} {thing}"
        for who, colour, thing in zip(people, colours, things, strict=True)
    )
    wanted = random.randrange(5)
    text = f"At the fair {listed}. Who got the {things[wanted]}? Answer with the name only."
    others = tuple(name.casefold() for i, name in enumerate(people) if i != wanted)
    return Checkable("extraction", text, (people[wanted].casefold(),), others)


def _spelled(number: int) -> str:
    """Spell a number below one hundred."""
    if number < len(_SMALL):
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens] if not ones else f"{_TENS[tens]}-{_SMALL[ones]}"
