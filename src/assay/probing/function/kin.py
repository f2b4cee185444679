"""Makes variants of examples without values, for agents that classify texts. Pure.

An agent that classifies texts into a few kinds gives all texts of ours the same answer. Two
examples of one skill may be of two kinds; a variant that keeps most words of one is of its kind.
Source: evidence.md#conversations.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from random import Random
from typing import Final

from assay.probing.function.acts import asks_for_act, names_act
from assay.probing.function.languages import is_common, put_as_question
from assay.probing.function.statements import is_statement
from assay.probing.function.variation import EXAMPLE_CHARS_MAX

TEXTS = 5
"""Messages made of two examples."""

WORDS_MIN = 5
"""Least words of an example from which one can be left out."""

REPEATS_MAX = 6

ORDERS: Final = [
    order
    for order in product((0, 1), repeat=TEXTS)
    if 1 < sum(order) < TEXTS - 1
    and order[0] != order[1]
    and any(a == b for a, b in pairwise(order))
]
"""The first two differ; an agent that alternates two answers is wrong in all of them."""

LATER_ORDERS: Final = ((1, 0, 1), (0, 1, 1))
"""The same after two messages of the first kind; an agent that repeats each answer twice is wrong
in all of them."""

_LEAD: Final = re.compile(r"(?:\S+ ){0,5}\S+: +")


@dataclass(frozen=True, slots=True)
class Kin:
    """A message that keeps most words of the first or the second of two examples."""

    text: str
    of: int


def kin_texts(
    one: str, other: str, random: Random, orders: Sequence[tuple[int, ...]] = ORDERS
) -> list[Kin]:
    """Return messages made of two examples, in no simple order.

    None if one of the examples is short or an act. Neither kind is longer than the other
    throughout: one of the shorter repeats its own text.
    """
    both = [text.strip()[:EXAMPLE_CHARS_MAX] for text in (one, other)]
    if any(names_act(text) or not is_informative(text) for text in both):
        return []
    made = [_variants(text, random) for text in both]
    plain = [texts[0] for texts in made]
    for of, texts in enumerate(made):
        texts[1] = _longer(both[of], texts[1], plain[1 - of])
    order = random.choice(orders)
    uses = [_in_use(texts, order.count(of), random) for of, texts in enumerate(made)]
    chosen = [(uses[of].pop(), of) for of in order]
    if any(asks_for_act(text) for text, _ in chosen):
        chosen = [(put_as_question(text, both[of]), of) for text, of in chosen]
    return [Kin(text, of) for text, of in chosen]


def _in_use(texts: list[str], count: int, random: Random) -> list[str]:
    """Return the long one and as many others as requested, in any order."""
    chosen = [texts[1], texts[0], texts[2]][:count]
    random.shuffle(chosen)
    return chosen


def is_informative(text: str) -> bool:
    """Return whether an example is information to classify: a question wants its own answer."""
    lead, words = _split(text)
    if len(words) < WORDS_MIN or words[-1].endswith(("?", "\uff1f")):
        return False
    return bool(_SORTS.search(lead)) if lead else is_statement(text)


_SORTS: Final = re.compile(
    r"classif|categor|sort|label|detect|identif|rout|triage|which|kind|mood|tone|sentiment|topic"
    r"|languag|spam|klassif|zuordn|erkenn|clasific|idioma|détect|classe|langue|riconosc|lingua"
    r"|klasyfik|rozpozn|распозн|класс|розпізн|клас|分类|判断|分類|判定",
    re.IGNORECASE,
)


def _split(text: str) -> tuple[str, list[str]]:
    """Return the introduction of a text (`Sort this: `), and the words of the text."""
    lead = _LEAD.match(text)
    rest = text[lead.end() :].split() if lead else []
    if lead and len(rest) >= WORDS_MIN:
        return lead[0], rest
    return "", text.split()


def _variants(text: str, random: Random) -> list[str]:
    """Return the text without one of its words, in three ways: the smallest change first."""
    lead, words = _split(text)
    inner = list(range(1, len(words) - 1))
    plain = [n for n in inner if is_common(words[n].strip(",.;"))] or inner
    outer = 0 if len(words[0]) <= len(words[-1]) else len(words) - 1
    left_out = [outer, random.choice(plain)]
    rest = [n for n in (*plain, *inner) if n not in left_out]
    left_out.append(random.choice(rest))
    return [lead + " ".join(words[:n] + words[n + 1 :]) for n in left_out]


def _longer(text: str, variant: str, than: str) -> str:
    """Repeat the variant until it is longer."""
    lead, _ = _split(text)
    said = variant.removeprefix(lead).rstrip(".!?; ")
    again = said
    for _ in range(REPEATS_MAX):
        if len(again) > len(than) and len(again.split()) > len(than.split()):
            break
        again += ". " + said
    return lead + again
