"""What an example of an agent's own becomes: the requests that are made of it. Pure.

Source: the design of evidence, sections 2 and 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from random import Random
from typing import Final

from assay.kit.json import JsonObject
from assay.probing.function.acts import asks_for_act, does_act, names_act, names_thing
from assay.probing.function.check_digits import checks_numbers
from assay.probing.function.grammar import Checkable
from assay.probing.function.kin import ORDERS, kin_texts
from assay.probing.function.known_values import topics
from assay.probing.function.languages import put_as_question
from assay.probing.function.material import has_names, material_in, retold
from assay.probing.function.passages import SENTENCES
from assay.probing.function.quotations import Sorted, sorted_texts
from assay.probing.function.skills import examples_of, skills_of
from assay.probing.function.slots import reslotted
from assay.probing.function.statements import is_statement
from assay.probing.function.symbols import is_notation, respelled
from assay.probing.function.variation import (
    about_passage,
    checked_varied,
    figures_varied,
    swapped,
    varied,
    without_quotation,
)

VARIANTS_MAX = 6
"""Requests made of one example with values that are known."""

CHECKS = 5
"""Numbers with check digits, right or wrong by chance, that an agent has to tell apart."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something to say, and the example it was made of."""

    text: str
    family: str
    is_literal: bool = False
    """It is the agent's own example, word for word."""
    checked: Checkable | None = None
    """What a right answer holds, where that is known."""
    is_known: bool = True
    """Whether the agent can be expected to know what it is asked about."""
    is_own: bool = True
    """It is made of an example of the agent's own."""
    fits: bool | None = None
    """Whether its number has right check digits, for those who say so."""
    sort: Sorted | None = None
    """The text of one of two sorts that it is about."""
    skill: int | None = None
    """Of the skill whose example it is made of, its place on the card."""
    is_kin: bool = False
    """It is the example with most of its words, for those who sort."""

    @property
    def is_promising(self) -> bool:
        """Whether it is likely to be answered, and its answer to count."""
        return self.is_known and self.is_own and not self.is_literal


@dataclass(frozen=True, slots=True)
class Others:
    """What stands beside an example."""

    examples: Sequence[str]
    """Of the same skill, itself among them."""
    known: frozenset[str]
    """Words that say what the agent does."""
    is_act: bool
    """Whether its skill does something."""
    every: str = ""
    """All that the agent says of itself, in small letters."""
    skill: int | None = None
    """The place of its skill on the card."""
    tells: bool = False
    """Whether its skill says that it only tells: what is no question is put as one."""


def family_of(example: str, others: Others, random: Random) -> list[Request]:
    """An example with other values: such as the agent must know, ours, then as it is.

    Of an example that asks for an act, what does so no longer.
    """
    used: set[str] = set()
    ways = zip(random.sample(SENTENCES, 2), random.sample((True, False), 2), strict=True)
    figures = [t for way in ways if (t := figures_varied(example, random, way)) is not None]
    own = swapped(example, others.examples, others.known, random)
    near = [text for is_unlike, text in own if not is_unlike]
    far = [text for is_unlike, text in own if is_unlike]
    ours = [t for _ in range(2) if (t := varied(example, random, used, others.every)) is not None]
    unknown = [t for _, t in swapped(example, topics(random, 2), frozenset(), random)]
    made = [m for _ in range(2) if (m := about_passage(example, random)) is not None]
    found = [Request(m.text, example, checked=m) for m in made]
    sorts = [] if made or others.is_act else sorted_texts(example, others.examples, random)
    if sorts:
        return [Request(one.text, example, sort=one) for one in sorts]
    slots = reslotted(example, others.examples, random)[:2]
    names = [retold(example, random)] if figures and has_names(example) else []
    texts = (*figures[:1], *names, *figures[1:], *respelled(example, random))
    texts += (*slots, *near[:2], *ours, *far[:2])
    found += [Request(t, example, t in others.examples) for t in texts]
    found = [*found[:VARIANTS_MAX], Request(example, example, is_literal=True)]
    found += [Request(text, example, is_known=False) for text in unknown]
    harmless = [r for r in found if not names_act(r.text)]
    is_told = others.tells and is_statement(example)
    may = {r.text: r for r in harmless if is_told or _may_be_asked(r.text)}
    return [
        replace(r, text=_asking(r.text, is_act=others.is_act), skill=others.skill)
        for r in may.values()
    ]


def takes_values(example: str, examples: Sequence[str], random: Random) -> bool:
    """Whether an example has values of which we know others."""
    if figures_varied(example, random) is not None or varied(example, random) is not None:
        return True
    return bool(reslotted(example, examples, random)) or is_notation(example)


def kin_of(
    pair: tuple[str, str],
    skill: int | None,
    random: Random,
    orders: Sequence[tuple[int, ...]] = ORDERS,
) -> list[Request]:
    """Requests with most words of one example or the other."""
    made = kin_texts(*pair, random, orders)
    return [Request(one.text, pair[one.of], skill=skill, is_kin=True) for one in made]


def read_in(card: JsonObject, random: Random) -> list[list[Request]]:
    """For skills that only read, texts that tell of acts, to be read."""
    return [
        [Request(one.text, text, sort=one) for one in made]
        for text, made in material_in(card, random)
    ]


def kin_in(card: JsonObject, random: Random) -> list[list[Request]]:
    """For each skill that does nothing and whose examples take no values, kin of two of them."""
    found: list[list[Request]] = []
    tells = [not does_act(name, about) for name, about in skills_of(card)]
    for skill, (is_act, examples) in enumerate(examples_of(card)):
        plain = [e for e in examples if not takes_values(e, examples, random)]
        if len(plain) > 1 and not is_act and tells[skill]:
            one, other = random.sample(plain, 2)
            found.append(kin_of((one, other), skill, random))
    return [row for row in found if row]


def checks_in(card: JsonObject, said: str, random: Random) -> list[list[Request]]:
    """For each example about check digits, numbers that are right or wrong, in no simple order."""
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
"""Two of each at least; who says yes and no in turn is wrong in all of them."""


def _may_be_asked(text: str) -> bool:
    return is_notation(text) or not asks_for_act(text) or names_thing(without_quotation(text))


def _asking(text: str, *, is_act: bool) -> str:
    """The text as a question where it only names a thing; one that nobody can take for an order."""
    if is_notation(text) or not asks_for_act(text):
        return text
    is_plain = not is_act and without_quotation(text) == text and names_thing(text)
    return f"{text}?" if is_plain else put_as_question(text, text)
