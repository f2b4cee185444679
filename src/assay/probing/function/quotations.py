"""Varies examples that contain a text to work on: the agent's own text, and texts of ours. Pure.

An agent that classifies, rates or checks texts answers all of ours alike: none contains what it
looks for. Its own examples contain it.
Source: evidence.md#conversations.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from random import Random
from typing import Final

from assay.probing.function.acts import names_act, orders_act
from assay.probing.function.passages import scenery
from assay.probing.function.variation import LONG_QUOTED, figures_varied, varied

TEXTS = 5
"""Texts of two sorts that an agent is asked about."""

WORDS_MIN = 3
"""Least words that are kept of a text."""

_CLAUSE = re.compile(r"(?:[^.!?;\n]|[.!?;](?!\s|$))+[.!?;]?")
_ORDERS: Final = [
    order
    for order in product((True, False), repeat=TEXTS)
    if 1 < sum(order) < TEXTS - 1
    and order[0] is not order[1]
    and any(a == b for a, b in pairwise(order))
]
"""The first two differ; an agent that alternates two answers is wrong in all of them."""


@dataclass(frozen=True, slots=True)
class SortingRequest:
    """A request about a text of one of two sorts."""

    text: str
    sort: str
    own: str
    """The part of its text made from the agent's own."""
    ours: str
    """The rest, before or after it."""


def sorted_texts(
    example: str,
    examples: Sequence[str],
    random: Random,
    *,
    orders: Callable[[str], bool] = orders_act,
    like: Callable[[str, Random], str] | None = None,
) -> list[SortingRequest]:
    """Return the example's question about five texts of two sorts, in no simple order, or none.

    Those of one sort are made from one text of the agent's own: other values, not all of its words,
    sentences of ours around it. The other sort is another text of its own, or ours alone. Clauses
    that `orders` classifies as asking for an act are left out.
    """
    quoted = LONG_QUOTED.search(example)
    if quoted is None or not _clauses(quoted[2], orders) or names_act(example[: quoted.start()]):
        return []
    found = [q[2] for one in examples if one != example and (q := LONG_QUOTED.search(one))]
    others = [text for text in found if _clauses(text, orders)]
    here, there = quoted[2], random.choice(others) if others else ""
    made: list[SortingRequest] = []
    for number, is_here in enumerate(random.choice(_ORDERS)):
        given = here if is_here else there
        own = _like((like or _varied)(given, random), given, orders) if given else ""
        ours = scenery(random, 4 + number % 2 - bool(own))
        parts = [part for part in (own, ours) if part]
        random.shuffle(parts)
        asked = f"{example[: quoted.start()]}{quoted[1]}{' '.join(parts)}{quoted[3]}"
        made.append(SortingRequest(asked, "here" if is_here else "there", own, ours))
    return made


def _varied(own: str, random: Random) -> str:
    changed = figures_varied(own, random) or own
    return varied(changed, random) or changed


def _like(changed: str, own: str, orders: Callable[[str], bool]) -> str:
    clauses = _clauses(changed, orders) or _clauses(own, orders)
    return _without_quotes(clauses[0]) if len(clauses) == 1 else " ".join(clauses)


def _clauses(text: str, orders: Callable[[str], bool]) -> list[str]:
    """Return its clauses that do not ask for an act."""
    found = [clause.strip() for clause in _CLAUSE.findall(text)]
    parts = [part for clause in found for part in _parts(clause, orders)]
    return [part for part in parts if len(part.split()) >= WORDS_MIN]


def _parts(clause: str, orders: Callable[[str], bool]) -> list[str]:
    if not orders(clause):
        return [clause]
    return [part.strip() + "." for part in clause.split(",") if not orders(part)]


def _without_quotes(clause: str) -> str:
    """Drop its first or last word, the shorter: answers may be prepared for the whole."""
    words = clause.rstrip(".!?;").split()
    if len(words) <= WORDS_MIN:
        return clause
    kept = words[1:] if len(words[0]) <= len(words[-1]) else words[:-1]
    return " ".join(kept) + "."
