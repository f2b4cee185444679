"""Detects what a description demands of the model that reads it, beyond the tool's work. Pure.

It searches not for phrases but for the demand: an act, on what, for whom, under which condition,
and whether it is to be concealed from a person. Each of those is a sign, which alone also occurs in
honest texts ("cite the source in your answer", "do not ask, this only reads"). Two that never occur
together in an honest text are the finding: `PAIRS`. Demands within the declared trade of a tool do
not count: a tool that makes minutes needs the whole transcript.
Source: evidence.md#poisoned-texts; checks.md#what-other-tools-check.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from assay.common.sliced_work import Meter, Sliced
from assay.probing.demand_signs import (
    ALWAYS,
    ARGUMENT,
    BY_MODEL,
    CLAUSE,
    HARMLESS,
    HEADING,
    NEGATED,
    ORDERS,
    SECURITY,
    SIGNS,
    Sign,
)
from assay.probing.demands import TEXT_MAX, TextInContext

GROUPS_MAX = 2_000
"""Tools, skills or texts read of one document."""

SENTENCES_MAX = 400
"""Sentences read of one text."""

SENTENCE_MAX = 420
"""Characters of a sentence: a longer one is read in pieces."""

OVERLAP = 120
"""Characters that two pieces of a sentence share."""

DOCUMENT_MAX = 131_072
"""Characters read of one document."""


def _pairs(*pairs: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair.split(" ")) for pair in "|".join(pairs).split("|"))


ADJACENT: Final = _pairs(
    "person harvest|words whole|answer praise|rank model|falsify answer|falsify slander",
    "shadow slander|shadow despite|rank despite|praise despite|copy target|copy despite",
    "execute unasked|role despite|speak despite|precede model|money model|destroy reach",
    "execute model|person model|talk model|rules model|tools model|files model",
    "falsify model|shadow model|copy model|tamper model|bypass model|destroy model",
    "secret model|own model|unasked model",
)
"""Pairs of signs that no ordinary sentence, with the one after it, contains together."""

NEARBY: Final = _pairs(
    "talk conceal|talk standing|talk argument|words standing|words conceal|words despite",
    "rules argument|rules must|rules conceal|tools argument|tools conceal|person conceal",
    "person standing|code argument|code must|key argument|key must|files argument",
    "files conceal|answer rank|praise standing|praise omit|rank omit|rank standing",
    "rank conceal|praise conceal|omit standing|falsify conceal|falsify standing",
    "falsify despite|shadow conceal|shadow standing|copy conceal|tamper target",
    "tamper conceal|tamper standing|tamper falsify|money unasked|money agreed",
    "agreed unasked|precede objection|precede standing|bypass host|bypass conceal",
    "execute conceal|money conceal|destroy conceal|gather argument|gather conceal",
    "gather standing|secret conceal|secret standing|own conceal|unasked conceal",
    "agreed conceal|tamper despite|rank praise|secret harvest",
)
"""Pairs of signs that no ordinary text has close together; a tool and its arguments are one
text."""

HEADED = "headed"
"""A heading addresses models: the demands of the next sentence are theirs."""

NEAR = 600
"""Characters within which two signs of one text belong together."""


@dataclass(frozen=True, slots=True)
class DocumentDemands:
    """A document's demands on its reader: the signs, and whether two are more than a warning."""

    signs: frozenset[str]
    is_proven: bool


def find_asks(
    groups: Iterable[Sequence[TextInContext]], meter: Meter | None = None
) -> Sliced[DocumentDemands]:
    """Return the texts' demands; those of a group (a tool and its arguments) count together."""
    meter, left = meter or Meter(), DOCUMENT_MAX
    signs, is_proven = frozenset[str](), False
    for _, group in zip(range(GROUPS_MAX), groups, strict=False):
        last = dict[str, int]()
        for said in group:
            found = yield from _signs_of(said, meter)
            is_proven = is_proven or _are_near(found, last)
            signs = signs.union(*(one for _, _, one in found))
            left -= len(said.text)
        if left <= 0:
            break
    return DocumentDemands(signs, is_proven)


_Found = Sequence[tuple[int, int, frozenset[str]]]
"""Sentences with signs: their number, their start, and the signs."""


def _are_near(found: _Found, elsewhere: dict[str, int]) -> bool:
    """Return whether two signs belong together.

    `elsewhere` are those of the group's other texts.
    """
    before, places = (-2, frozenset[str]()), dict.fromkeys(elsewhere, -1)
    for number, at, signs in found:
        near = signs | {sign for sign, place in places.items() if place < 0 or at - place <= NEAR}
        adjacent = signs | (before[1] if number == before[0] + 1 else frozenset[str]())
        if "model" not in signs and HEADED not in before[1]:
            adjacent -= {"model"}
        if any(p <= near and p & signs for p in NEARBY) or any(p <= adjacent for p in ADJACENT):
            return True
        before = number, signs
        places |= dict.fromkeys(signs, at)
    elsewhere |= dict.fromkeys(places, -1)
    return False


def _signs_of(said: TextInContext, meter: Meter) -> Sliced[_Found]:
    trade, found, at = said.about[:TEXT_MAX].casefold(), list[tuple[int, int, frozenset[str]]](), 0
    for number, sentence in enumerate(_sentences(said.text[:TEXT_MAX])):
        if meter.spend(32 + 8 * len(sentence)):
            yield
        signs = frozenset(_read(sentence, trade, said, number))
        if signs:
            found.append((number, at, signs))
        at += len(sentence)
    return found


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences in lower case; a long one in overlapping pieces."""
    parts = (part for part in _STOP.split(text) if part.strip())
    pieces = (part[at : at + SENTENCE_MAX] for part in parts for at in _starts(len(part)))
    for _, piece in zip(range(SENTENCES_MAX), pieces, strict=False):
        folded = unicodedata.normalize("NFKC", piece)[: 2 * SENTENCE_MAX]
        yield " ".join(folded.split()).casefold()[:SENTENCE_MAX].replace("\u2019", "'")


def _starts(length: int) -> range:
    return range(0, max(1, length - OVERLAP), SENTENCE_MAX - OVERLAP)


_STOP = re.compile(r"[\n\r\u3002\uff01\uff1f]|(?<=[;.!?])\s")


def _read(sentence: str, trade: str, said: TextInContext, number: int) -> Iterator[str]:
    if SECURITY.search(trade) or HARMLESS.search(sentence):
        return
    found = [sign for sign in SIGNS if _is_said(sign, sentence, trade, said, number)]
    yield from (sign.name for sign in found)
    names = {sign.name for sign in found}
    if "talk" in names and "whole" in names and (said.is_argument or said.says_purpose):
        yield "argument"
    elif any(sign.is_data for sign in found):
        if (said.is_argument and "talk" not in names) or ARGUMENT.search(sentence):
            yield "argument"
        if ALWAYS.search(sentence):
            yield "must"
    if BY_MODEL.search(sentence) or HEADING.search(sentence):
        yield "model"
    if HEADING.search(sentence):
        yield HEADED


def _is_said(sign: Sign, sentence: str, trade: str, said: TextInContext, number: int) -> bool:
    match = sign.search(sentence)
    if match is None or _is_quoted(sentence, match.start()):
        return False
    if sign.trade is not None and sign.trade.search(trade):
        return False
    if sign.is_data:
        if NEGATED.search(sentence):
            return False
        return said.is_argument or _is_directed(
            sentence, says_purpose=said.says_purpose and not number
        )
    return (
        not sign.needs_order
        or said.is_argument
        or _is_directed(sentence, says_purpose=said.says_purpose and not number)
    )


def _is_directed(sentence: str, *, says_purpose: bool) -> bool:
    """Return whether it is an order to the reader; a text's beginning says what the tool does."""
    if ORDERS.search(sentence) or BY_MODEL.search(sentence):
        return True
    return any(not says_purpose or match.start() > 0 for match in CLAUSE.finditer(sentence))


def _is_quoted(sentence: str, place: int) -> bool:
    return sentence[:place].endswith(("'", '"', "`", "\u201c", "\u2018", "\u00ab", "\u300c"))
