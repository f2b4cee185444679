"""Generates texts for services that read texts. Pure: the same random source, the same text."""

from random import Random
from typing import Final

_PEOPLE: Final = ("Mara Lindqvist", "Tobias Okafor", "Ines Carvalho", "Yuto Nakagawa")
_GOODS: Final = ("copper kettles", "oak shelves", "rain jackets", "desk lamps", "bicycle bells")
_MOODS: Final = ("delighted with", "let down by", "puzzled by", "proud of")
_PLACES: Final = ("Bergen", "Porto", "Utrecht", "Trieste", "Galway", "Leipzig", "Tampere", "Nantes")
_FRUITS: Final = ("pears", "quinces", "apricots", "figs", "plums")
_MUSEUMS: Final = ("glacier", "compass", "turbine", "lantern", "harvest", "saffron", "telescope")
_THINGS: Final = ("shutter", "kettle", "ladder", "carpet", "mirror", "anchor", "barrel", "curtain")
_FEATURES: Final = ("loose", "striped", "heavy", "broken", "spotless", "wet", "wooden", "crooked")


SENTENCES: Final = (2, 3, 4, 5)
"""Possible lengths of a passage."""


def passage(random: Random, sentences: int | None = None, *, with_contact: bool = False) -> str:
    """Return two to five sentences with people, places, goods, numbers and a date; no apostrophes.

    `with_contact`: and one with a fictitious e-mail address and telephone number.
    """
    (first, second), (here, there) = random.sample(_PEOPLE, 2), random.sample(_PLACES, 2)
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
    return " ".join(s.format(random.choice(_PLACES)) for s in random.sample(_SCENES, sentences))


def notice(random: Random) -> tuple[str, dict[str, str]]:
    """Return four short sentences, each of one thing and its property; and the same by thing."""
    things, features = random.sample(_THINGS, 4), random.sample(_FEATURES, 4)
    sentence = " ".join(
        f"The {thing} is {like}." for thing, like in zip(things, features, strict=True)
    )
    return sentence, dict(zip(things, features, strict=True))


def some_date(random: Random) -> str:
    """Return a day of the last half century, in ISO 8601."""
    return f"{random.randint(1971, 2024)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
