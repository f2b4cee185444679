"""Makes requests from an agent's own example. Pure.

Source: evidence.md#conversations, #announced-and-unannounced-visits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product, zip_longest
from random import Random
from typing import Final

from assay.common.json import JsonObject
from assay.probing.function.acts import (
    asks_for_act,
    does_act,
    is_question,
    names_act,
    names_thing,
    orders,
)
from assay.probing.function.formats import checks_numbers
from assay.probing.function.generated_texts import SENTENCES, Checkable
from assay.probing.function.known_values import (
    asked_behind,
    is_known_language,
    put_as_question,
    topics,
)
from assay.probing.function.text_variation import (
    ORDERS,
    SortingRequest,
    has_names,
    kin_texts,
    material_in,
    retold,
    sorted_texts,
)
from assay.probing.function.variation import (
    about_passage,
    beside_it,
    checked_varied,
    examples_of,
    figures_varied,
    is_notation,
    names_code,
    recombined,
    reslotted,
    respelled,
    runs_varied,
    skills_of,
    swapped,
    varied,
    without_quotation,
)
from assay.probing.function.words import is_statement, words_of

VARIANTS_MAX = 6
"""Requests made of one example with known values."""

DRAWS = 3
"""Attempts to draw unpublished values for a published message."""

CHECKS = 5
"""Numbers with check digits, valid or invalid at random, that an agent has to tell apart."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and the example it was made of."""

    text: str
    family: str
    is_literal: bool = False
    """Whether it is the agent's own example, word for word."""
    checked: Checkable | None = None
    """The contents of a right answer, if known."""
    is_known: bool = True
    """Whether the agent can be expected to know the topic."""
    is_own: bool = True
    """Whether it is made of an example of the agent's own."""
    fits: bool | None = None
    """Whether its number has valid check digits, for agents that validate."""
    sort: SortingRequest | None = None
    """The text, of one of two sorts, that it is about."""
    skill: int | None = None
    """The position on the card of the skill whose example it is made of."""
    is_kin: bool = False
    """Whether it is the example with most of its words, for agents that classify."""
    is_published: bool = False
    """Whether it is made of a message that the owner publishes for tests."""
    is_fresh: bool = False
    """Whether none of its replaced values is published."""

    @property
    def is_promising(self) -> bool:
        """Return whether it is likely to be answered, and its answer to count."""
        return self.is_known and self.is_own and not self.is_literal


@dataclass(frozen=True, slots=True)
class Others:
    """The context of an example."""

    examples: Sequence[str]
    """Examples of the same skill, including itself."""
    known: frozenset[str]
    """Words that say what the agent does."""
    is_act: bool
    """Whether its skill acts."""
    every: str = ""
    """All that the agent says of itself, in lower case."""
    skill: int | None = None
    """The position of its skill on the card."""
    tells: bool = False
    """Whether its skill only informs: what is not a question is asked as one."""
    published: frozenset[str] = frozenset()
    """Messages that the owner publishes to be sent: their form does not matter."""


def family_of(example: str, others: Others, random: Random) -> list[Request]:
    """Return an example with other values: known to the agent, then ours, then unchanged.

    An example that asks for an act is reworded so that it no longer does.
    """
    unknown = [t for _, t in swapped(example, topics(random, 2), frozenset(), random)]
    made = [m for _ in range(2) if (m := about_passage(example, random)) is not None]
    found = [Request(m.text, example, checked=m) for m in made]
    sorts = [] if made or others.is_act else sorted_texts(example, others.examples, random)
    if sorts:
        return [Request(one.text, example, sort=one) for one in sorts]
    if example in others.published:
        return _of_published(example, others, random)
    texts = _varied_in_turn(example, others, random)
    found += [Request(t, example, t in others.examples) for t in texts]
    found = found[:VARIANTS_MAX]
    own = [Request(example, example, is_literal=True)]
    requests = [Request(text, example, is_known=False) for text in unknown]
    found += [*own, *requests] if found else [*requests[:1], *own, *requests[1:]]
    harmless = [r for r in found if not names_act(r.text)]
    is_known = is_known_language(example, others.every)
    tells = others.tells or (is_known and not others.is_act)
    is_plain_statement = tells and is_statement(example)
    is_asked = is_known and is_question(example)
    may = {r.text: r for r in harmless if is_plain_statement or is_asked or _may_be_asked(r.text)}
    return [
        replace(
            r,
            text=r.text if is_asked else _asking(r.text, others),
            skill=others.skill,
        )
        for r in may.values()
    ]


def _of_published(example: str, others: Others, random: Random) -> list[Request]:
    """Return a published message with other values, in any form except an order.

    Unpublished values prove the most. For values that only the owner can know, published values
    change places, and then the message itself is sent too.
    """
    theirs = frozenset(word for text in others.published for word in words_of(text))
    own = frozenset(words_of(example))
    drawn = [_varied_in_turn(example, others, random) for _ in range(DRAWS)]
    made = [text for texts in zip_longest(*drawn) for text in texts if text is not None]
    figures = frozenset(word for word in theirs if word.isdigit() and len(word) > 1)
    words = {text: frozenset(words_of(text)) for text in made}
    fresh = [t for t, had in words.items() if had - own and not had & ((theirs - own) | figures)]
    placed = recombined(example, [*others.published], random)[:2]
    is_counted = any(word.isdigit() for text in fresh for word in words[text] - own)
    is_number = is_counted and not names_code(example)
    literal = Request(example, example, is_literal=True)
    found = [Request(text, example, is_fresh=True) for text in fresh[:VARIANTS_MAX]]
    swaps = [Request(text, example) for text in placed]
    found = [*found, *swaps, literal] if is_number or not swaps else [*swaps, literal, *found]
    return [
        replace(one, skill=others.skill, is_published=True) for one in found if not orders(one.text)
    ]


def _varied_in_turn(example: str, others: Others, random: Random) -> list[str]:
    """Return the example with other values, those first that its agent most likely knows.

    For a code, its neighbours.
    """
    used: set[str] = set()
    ways = zip(random.sample(SENTENCES, 2), random.sample((True, False), 2), strict=True)
    figures = [t for way in ways if (t := figures_varied(example, random, way)) is not None]
    own = swapped(example, others.examples, others.known, random)
    near = [text for is_unlike, text in own if not is_unlike][:2]
    far = [text for is_unlike, text in own if is_unlike][:2]
    ours = [t for _ in range(2) if (t := varied(example, random, used, others.every)) is not None]
    slots = reslotted(example, others.examples, random)
    names = [retold(example, random)] if figures and has_names(example) else []
    beside = beside_it(example, random)
    is_published = example in others.published
    runs = runs_varied(example, random, at_once=is_published)[:2]
    rest = [*respelled(example, random), *slots[: None if is_published else 2]]
    rest += [*near, *ours, *far]
    first = [*beside, *figures[:1]] if names_code(example) else figures[:1]
    if figures and not is_published:
        runs = []
    return [*first, *names, *figures[1:], *runs, *rest, *beside]


def _takes_values(example: str, examples: Sequence[str], random: Random) -> bool:
    """Return whether an example has values of which we know others."""
    if figures_varied(example, random) is not None or varied(example, random) is not None:
        return True
    return bool(reslotted(example, examples, random)) or is_notation(example)


def kin_of(
    pair: tuple[str, str],
    skill: int | None,
    random: Random,
    orders: Sequence[tuple[int, ...]] = ORDERS,
) -> list[Request]:
    """Return requests with most words of one example or the other."""
    made = kin_texts(*pair, random, orders)
    return [Request(one.text, pair[one.of], skill=skill, is_kin=True) for one in made]


def read_in(card: JsonObject, random: Random) -> list[list[Request]]:
    """For skills that only read, return texts that describe acts, to be read."""
    return [
        [Request(one.text, text, sort=one) for one in made]
        for text, made in material_in(card, random)
    ]


def kin_in(card: JsonObject, random: Random) -> list[list[Request]]:
    """Return kin of two examples, for each skill that does not act and has no known values."""
    found: list[list[Request]] = []
    tells = [not does_act(name, about) for name, about in skills_of(card)]
    for skill, (is_act, examples) in enumerate(examples_of(card)):
        plain = [e for e in examples if not _takes_values(e, examples, random)]
        if len(plain) > 1 and not is_act and tells[skill]:
            one, other = random.sample(plain, 2)
            found.append(kin_of((one, other), skill, random))
    return [row for row in found if row]


def checks_in(card: JsonObject, said: str, random: Random) -> list[list[Request]]:
    """For each example about check digits, return valid and invalid numbers in no simple order."""
    found: list[list[Request]] = []
    for is_act, examples in examples_of(card):
        for example in examples:
            if is_act or asks_for_act(example) or not checks_numbers(f"{example} {said}"):
                continue
            order = random.choice(_ORDERS)
            made = [(checked_varied(example, random, right=fits), fits) for fits in order]
            rows = [Request(t, f"checks {example}", fits=fits) for t, fits in made if t]
            if len(rows) == CHECKS:
                found.append(rows)
    return found


_ORDERS: Final = [
    order
    for order in product((True, False), repeat=CHECKS)
    if 1 < sum(order) < CHECKS - 1 and any(a == b for a, b in pairwise(order))
]
"""At least two of each; an agent that alternates yes and no is wrong in all of them."""


def _may_be_asked(text: str) -> bool:
    return is_notation(text) or not asks_for_act(text) or names_thing(without_quotation(text))


def _asking(text: str, others: Others) -> str:
    """Return the text as a question if it only names a thing, so that it is not an order.

    A text with several lines, or numbers, is read from its first word on: the question follows it.
    """
    if is_notation(text) or not asks_for_act(text):
        return text
    is_plain = not others.is_act and without_quotation(text) == text
    if is_plain and names_thing(text):
        return f"{text}?"
    is_data = is_plain and ("\n" in text or any(c.isdigit() for c in text))
    return asked_behind(text, others.every) if is_data else put_as_question(text, text)
