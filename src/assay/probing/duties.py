"""Detects orders to the reader of a document beyond the document's own work. Pure.

An order alone is ordinary: documentation is full of them. Its topic decides: things that are not
the tool's (a conversation, files of a home, keys of others), work of other tools, shell commands,
the choice among agents. Each such topic is one sign; a second of another kind (the destination,
concealment, claimed consent, a claimed authority) makes the finding. Words are known by class
(`lexicon`), so that no fixed sentence is searched.
Source: evidence.md#poisoned-texts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from assay.common.sliced_work import Meter, Sliced
from assay.probing.demands import TextInContext
from assay.probing.disguises import encoded_texts
from assay.probing.escapes import SEQUENCE, hidden_passages, wiped_passages
from assay.probing.lexicon import classes_in, words_of
from assay.probing.orders import Sentence, asks_by_name, trades_of

TEXT_MAX = 262_144
"""Characters read of one text."""

DOCUMENT_MAX = 262_144
"""Characters read of one document."""

GROUPS_MAX = 2_000
"""Tools, skills or texts read of one document."""

SENTENCES_MAX = 24_000
"""Sentences read of one text."""

BLOCK_CHARS = 8_192
"""Characters of a text that are split into sentences at once."""

SENTENCE_MAX = 400
"""Characters of a sentence: a longer one is read in pieces."""

OVERLAP = 80
"""Characters that two pieces of a sentence share."""

SECOND: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(others.split())
    for name, others in {
        "object": "sent hush consent authority reader far rank tools whatever",
        "commands": "altered",
        "tools": "hush consent authority reader far lie outrank diverted",
        "rank": "object hush others whatever",
        "execute": "hush consent authority far outrank",
        "money": "hush consent far",
        "order": "far",
    }.items()
}
"""Topics beyond a document's own work, and the signs that make each more than a warning."""

_ADDRESSED: Final = frozenset({"reader", "consent", "next"})


@dataclass(slots=True)
class Duties:
    """The signs of a document, and whether two independent ones occur together."""

    signs: set[str] = field(default_factory=set[str])
    is_proven: bool = False

    def add(self, signs: frozenset[str], before: frozenset[str], *, is_answer: bool) -> None:
        """Add the signs of a sentence, after those of the one before it.

        The answer to a call may quote other people's text: it counts only if it addresses the
        reader.
        """
        self.signs |= signs
        if is_answer and not (signs | before) & _ADDRESSED:
            return
        near = signs | before
        if "placed" in signs and "thing" in before:
            near |= {"object", "sent"}
        elif "object" not in signs:
            near -= {"reader"} - before
        if is_answer:
            near -= {"reader", "far"}
        self.is_proven = self.is_proven or any(
            thing in near and near & others for thing, others in SECOND.items()
        )


def find_duties(
    groups: Iterable[Sequence[TextInContext]], meter: Meter | None = None
) -> Sliced[Duties]:
    """Return what a document orders its reader to do beyond its own work."""
    meter, left, found = meter or Meter(), DOCUMENT_MAX, Duties()
    for _, group in zip(range(GROUPS_MAX), groups, strict=False):
        for said in group:
            yield from _read(said, meter, found)
            left -= len(said.text) + len(said.name)
        if left <= 0:
            break
    return found


def _read(said: TextInContext, meter: Meter, found: Duties) -> Sliced[None]:
    trades = trades_of(said.about[:SENTENCE_MAX])
    if said.name:
        found.add(asks_by_name(said.name[:SENTENCE_MAX], trades), frozenset(), is_answer=False)
    before = frozenset[str]()
    text = said.text[:TEXT_MAX]
    is_hidden = any(hidden_passages(text)) or any(wiped_passages(text))
    sentences, is_first = chain(_sentences(text, is_far=is_hidden), _coded(text)), True
    for sentence, is_far in islice(sentences, SENTENCES_MAX):
        if meter.spend(32 + 8 * len(sentence) if sentence else BLOCK_CHARS // 4):
            yield
        if not sentence:
            continue
        words = words_of(sentence)
        if said.is_answer and "reader" in before | classes_in(words):
            trades = frozenset[str]()
        signs = Sentence.of(words, said, trades, is_first=is_first).signs()
        signs |= frozenset({"far"} if is_far and signs else ())
        found.add(signs, before, is_answer=said.is_answer)
        before, is_first = signs - {"authority"}, False


def _coded(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of encoded passages of a text."""
    for _, decoded in zip(range(_CODED_MAX), encoded_texts(text), strict=False):
        yield from islice(_sentences(decoded, is_far=False), _CODED_MAX)


_CODED_MAX = 20


def _sentences(text: str, *, is_far: bool) -> Iterator[tuple[str, bool]]:
    """Yield the sentences, a long one in overlapping pieces, and whether each is out of sight.

    It works block by block; each begins with an empty sentence, for the work of splitting.
    """
    for start in range(0, max(1, len(text) - OVERLAP), BLOCK_CHARS - OVERLAP):
        yield "", is_far
        block = SEQUENCE.sub("\n", text[start : start + BLOCK_CHARS])
        for number, lines in enumerate(_GAP.split(block)):
            is_far = is_far or number > 0
            for part in filter(str.strip, _STOP.split(lines)):
                for at in range(0, max(1, len(part) - OVERLAP), SENTENCE_MAX - OVERLAP):
                    yield part[at : at + SENTENCE_MAX], is_far


_GAP = re.compile(r"(?:[^\S\n]{0,8}\n){12,}")
_STOP = re.compile(r"[\n\r\u3002\uff01\uff1f\u061f]|(?<=[;.!?])\s")
