"""Varies examples that are texts: without values, with a text to work on, or about an act. Pure.

Makes variants of examples without values, for agents that classify texts.

An agent that classifies texts into a few kinds gives all texts of ours the same answer. Two
examples of one skill may be of two kinds; a variant that keeps most words of one is of its kind.
Source: evidence.md#conversations.

Varies examples that contain a text to work on: the agent's own text, and texts of ours.

An agent that classifies, rates or checks texts answers all of ours alike: none contains what it
looks for. Its own examples contain it.
Source: evidence.md#conversations.

Makes texts that describe acts, framed as material to read, for agents that only read.

`Ada will send the plans by Friday` is not an order to an agent that extracts promises from notes. A
message gives it as a text to read, with other names, days and numbers; an agent that does more than
read is not asked.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from random import Random
from typing import Final

from assay.common.json import JsonObject
from assay.probing.function.acts import asks_for_act, names_act, orders_act, orders_reader
from assay.probing.function.generated_texts import scenery
from assay.probing.function.known_values import KINDS, is_common, language_of, put_as_question
from assay.probing.function.variation import (
    EXAMPLE_CHARS_MAX,
    LONG_QUOTED,
    examples_of,
    figures_varied,
    skills_of,
    varied,
)
from assay.probing.function.words import is_statement, words_of

TEXTS = 5
"""Messages made of two examples."""

KIN_WORDS_MIN = 5
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
    if len(words) < KIN_WORDS_MIN or words[-1].endswith(("?", "\uff1f")):
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
    if lead and len(rest) >= KIN_WORDS_MIN:
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


QUOTATION_WORDS_MIN = 3
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
    return [part for part in parts if len(part.split()) >= QUOTATION_WORDS_MIN]


def _parts(clause: str, orders: Callable[[str], bool]) -> list[str]:
    if not orders(clause):
        return [clause]
    return [part.strip() + "." for part in clause.split(",") if not orders(part)]


def _without_quotes(clause: str) -> str:
    """Drop its first or last word, the shorter: answers may be prepared for the whole."""
    words = clause.rstrip(".!?;").split()
    if len(words) <= QUOTATION_WORDS_MIN:
        return clause
    kept = words[1:] if len(words[0]) <= len(words[-1]) else words[:-1]
    return " ".join(kept) + "."


MATERIAL_WORDS_MIN = 8
"""Least words of a text from which parts can be left out."""

_READS: Final = re.compile(
    r"\b(?:extract|find|read|summar|condens|identif|detect|pick|spot|highlight|recogni|analy|digest"
    r"|list|collect|abstract|outlin|extrah|find|lies|fasst|zusammen|erkenn|extrae|encuentra|resum"
    r"|lee\b|identific|extrait|trouve|lit\b|résum|relève|estrae|trova|legge|riassum|extrai|lê\b"
    r"|encontra|wyci[aą]g|znajd|czyta|streszcz|haalt|vindt|leest|vat\b|извлека|находит|читает"
    r"|витяга|знаход|чита|підсумов)|抽出|要約|読み|提取|总结|摘要|추출|요약|يستخرج|يلخص",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"[\"“«「]([^\"“”«»「」]{25,600})[\"”»」]")
_FRAMES: Final = {
    "en": "What do these words tell, which are there for reading alone: ",
    "de": "Was steht in diesen Zeilen, die allein zum Lesen da sind: ",
    "fr": "Que dit ce texte, qui est seulement à lire : ",
    "es": "¿Qué dice este texto, que es solo para leer?: ",
    "it": "Che cosa dice questo testo, che è solo da leggere: ",
}
_CAPITAL: Final = re.compile(r"(?<![.!?;:\n“] )(?<!^)(?<![“\w])[A-Z][^\W\d]{2,14}(?!\w)")
"""A capitalised word inside a sentence: a name, in most languages."""

_KNOWN_TEXT: Final = """
Ben Ada Clara Omar Dora Jane Leila Tom Greta Paul Nina Karl Rosa Hugo Emma Luca Marta Jonas Sofia
Pedro Anna Ivan Olga Mehmet Ayla Yuki Chen Priya Amir Fatima John Mary Sarah David Alice Bob Carol
Eve Sam Max Julia Peter Laura Maria Jose Carlos Lucia Pierre Claire Hans Ingrid Lars Piotr Kasia
"""
_KNOWN: Final = frozenset(_KNOWN_TEXT.split())
_OURS: Final = ("Tamsin", "Ossian", "Jorun", "Leocadia", "Bram", "Sunniva", "Teodor", "Wanda")


def material_in(card: JsonObject, random: Random) -> list[tuple[str, list[SortingRequest]]]:
    """For skills that only read, return texts from their examples and descriptions.

    Each has five messages of two sorts, like other quotations; a text that consists only of orders
    has none.
    """
    found: list[tuple[str, list[SortingRequest]]] = []
    for (name, about), (_, examples) in zip(skills_of(card), examples_of(card), strict=True):
        if not _only_reads(f"{name}. {about}"):
            continue
        shown = [e.strip() for e in examples if names_act(e) and not _QUOTED.search(e)]
        texts = [*(t for t in shown if len(words_of(t)) >= MATERIAL_WORDS_MIN), *quoted_in(about)]
        framed = [_framed(text) for text in texts]
        for text, asked in zip(texts, framed, strict=True):
            made = sorted_texts(asked, framed, random, orders=orders_reader, like=retold)
            found += [(text, made)] if made else []
    return found


def _only_reads(about: str) -> bool:
    """Return whether a skill says that it reads texts, and mentions nothing else that it does."""
    plain = unquoted(about)
    return bool(_READS.search(plain)) and not names_act(plain)


def quoted_in(about: str) -> list[str]:
    """Return the texts of several words that a description quotes."""
    return [text for text in _QUOTED.findall(about) if len(words_of(text)) >= MATERIAL_WORDS_MIN]


def unquoted(about: str) -> str:
    """Return a description without quoted texts, which do not describe what it does."""
    return _QUOTED.sub(" ", about)


def _framed(text: str) -> str:
    """Frame a text as material to read, so that it cannot be taken for an order."""
    inside = re.sub(r"[\"“”«»「」]", "'", text)
    frame = _FRAMES.get(language_of(text)) or put_as_question("", text)
    return f"{frame}“{inside}”"


def retold(text: str, random: Random) -> str:
    """Return the text with other names, days and numbers, replaced consistently."""
    changed = figures_varied(text, random) or text
    changed = varied(changed, random) or changed
    names = _names_in(changed)
    ours = random.sample(_OURS, len(_OURS))
    for name, other in zip(dict.fromkeys(names), ours, strict=False):
        changed = re.sub(rf"(?<!\w){name}(?!\w)", other, changed)
    return changed


def has_names(text: str) -> bool:
    """Return whether a text may contain full names of people."""
    return bool(_FULL_NAME.search(text))


_FULL_NAME: Final = re.compile(r"(?<!\w)[A-Z][^\W\d]{2,14} [A-Z][^\W\d]{2,14}(?!\w)")


def _names_in(text: str) -> list[str]:
    inside = set(_CAPITAL.findall(text)) - _DAYS
    return [word for word in re.findall(r"\w+", text) if word in _KNOWN or word in inside]


_DAYS: Final = frozenset({*KINDS[7], *KINDS[8]})
