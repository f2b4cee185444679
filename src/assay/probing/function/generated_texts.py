"""Texts that we generate: to be read, and with one right answer.

Pure: the same random source, the same text.

Generates texts for services that read texts. Pure: the same random source, the same text.

Generates requests with one right answer. Pure: the same random source, the same request.

An answer counts as right only if it could not result from repeating the request or listing answers.
Source: evidence.md#conversations.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from assay.probing.function.words import words_of

_PEOPLE: Final = ("Mara Lindqvist", "Tobias Okafor", "Ines Carvalho", "Yuto Nakagawa")
_GOODS: Final = ("copper kettles", "oak shelves", "rain jackets", "desk lamps", "bicycle bells")
_MOODS: Final = ("delighted with", "let down by", "puzzled by", "proud of")
_TOWNS: Final = ("Bergen", "Porto", "Utrecht", "Trieste", "Galway", "Leipzig", "Tampere", "Nantes")
_FRUITS: Final = ("pears", "quinces", "apricots", "figs", "plums")
_MUSEUMS: Final = ("glacier", "compass", "turbine", "lantern", "harvest", "saffron", "telescope")
_OBJECTS: Final = ("shutter", "kettle", "ladder", "carpet", "mirror", "anchor", "barrel", "curtain")
_FEATURES: Final = ("loose", "striped", "heavy", "broken", "spotless", "wet", "wooden", "crooked")


SENTENCES: Final = (2, 3, 4, 5)
"""Possible lengths of a passage."""


def passage(random: Random, sentences: int | None = None, *, with_contact: bool = False) -> str:
    """Return two to five sentences with people, places, goods, numbers and a date; no apostrophes.

    `with_contact`: and one with a fictitious e-mail address and telephone number.
    """
    (first, second), (here, there) = random.sample(_PEOPLE, 2), random.sample(_TOWNS, 2)
    goods, mood = random.choice(_GOODS), random.choice(_MOODS)
    more = [
        f"The {random.choice(_MUSEUMS)} museum paid {random.randint(200, 900)} euros for them.",
        f"{second} was {mood} the {random.choice(_FRUITS)} packed beside them.",
        f"The road from {here} was closed that week.",
        f"{first} kept the receipt.",
    ]
    kept = (sentences or random.choice(SENTENCES)) - 1
    said = (
        f"On {some_date(random)} {first} of {here} sold {random.randint(12, 90)} {goods} to"
        f" {second} in {there}."
    )
    chosen = [more[place] for place in sorted(random.sample(range(4), kept))]
    if with_contact:
        chosen.append(
            f"Reachable at {random.choice(_FRUITS)}{random.randint(11, 99)}@example.org, the"
            f" number +1 202 555 01{random.randint(10, 99)}."
        )
    return " ".join([said, *chosen])


_SCENES: Final = (
    "The lake near {} lay still that morning.",
    "A path leads from the chapel at {} to the orchard.",
    "Two herons stood by the water outside {}.",
    "The hills behind {} are green until autumn.",
    "Swallows nest under the old roofs of {}.",
    "Around {} the mist is gone by midday.",
)


def scenery(random: Random, sentences: int) -> str:
    """Return sentences that are irrelevant to any trade, office or reader of mail."""
    return " ".join(s.format(random.choice(_TOWNS)) for s in random.sample(_SCENES, sentences))


def notice(random: Random) -> tuple[str, dict[str, str]]:
    """Return four short sentences, each of one thing and its property; and the same by thing."""
    things, features = random.sample(_OBJECTS, 4), random.sample(_FEATURES, 4)
    sentence = " ".join(
        f"The {thing} is {like}." for thing, like in zip(things, features, strict=True)
    )
    return sentence, dict(zip(things, features, strict=True))


def some_date(random: Random) -> str:
    """Return a day of the last half century, in ISO 8601."""
    return f"{random.randint(1971, 2024)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"


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
