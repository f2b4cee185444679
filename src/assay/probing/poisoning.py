"""Patterns of hidden text and instructions to the reader. Pure.

Precision before recall: an honest agent that is accused loses its grade, a dishonest one meets
several probes. So it contains only patterns that ordinary tool descriptions do not match. Every
quantifier is bounded, because the text is hostile. So is the work: a text is read in windows of
fixed size, normalised piece by piece, and the computations yield after every few thousand
characters (`common.sliced_work`).
Sources: checks.md#poisoning; Unicode Technical Report 36.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from assay.common.sliced_work import Meter, Sliced, whole
from assay.probing.demand_signs import CLAUSE, ORDERS
from assay.probing.disguises import COMMON, SECRETIVE, concealed, find_disguises
from assay.probing.reader_instructions import ALONE, TARGET, Signs, find_signs

DESCRIPTION_MAX = 262_144
"""Characters read of one description; the rest of a longer one is ignored."""

DOCUMENT_MAX = 524_288
"""Characters read of all the descriptions of one document; the rest is ignored."""

TEXTS_MAX = 50_000
"""Texts read of one document."""

_PIECE = 1_024
"""Characters normalised at once: ordering the combining marks of one letter is quadratic."""

_TEXT_COSTS = 32
"""The cost of a text besides its characters, counted as characters."""

_NAME_CHARS = 256
_WORD_CHARS = 32

_COMMANDING = re.compile(
    r"\b(?:you must|you should|always|never|ignore|secretly|do not|don't|send|forward|call|execute"
    r"|upload|exfiltrate|read)\b"
)
_WIDE = re.compile(
    "[\u2057\u2152\u2167\u2177\u247d-\u2487\u2a0c\u321d\u321e\u3300-\u3302\u3304\u3307\u3308\u330c"
    "\u330d\u3312\u3313\u3315-\u3317\u3319-\u331b\u331f-\u3321\u332b\u332d\u332e\u3332-\u3334\u3336"
    "\u333d\u3343\u3347\u3348\u334a\u334c\u334d\u3351\u3354\u3356\u337f\u3389\u33a8\u33ae\u33af\u33c2"
    "\u33c6\u33d8\ufdf2-\ufdf8\ufdfa-\ufdfc]"
)
"""Characters that NFKC turns into more than three: U+FDFA becomes 18. No words of an instruction
use them; they are read as a space."""


def poison(text: str) -> frozenset[str]:
    """Return what in a description is meant for the model that reads it, not for the person."""
    return whole(find_poison([text]))


@dataclass(slots=True)
class Poison:
    """What was found in a document: kinds, and those of texts with two signs."""

    kinds: set[str] = field(default_factory=set[str])
    proven: set[str] = field(default_factory=set[str])
    open_texts: list[str] = field(default_factory=list[str])
    """The first texts with a single sign, for a judge; never stored as evidence."""


def find_poison(texts: Iterable[str], meter: Meter | None = None) -> Sliced[frozenset[str]]:
    """Return what in a document's descriptions is meant for the model that reads them."""
    return frozenset((yield from judge_texts(texts, meter)).kinds)


def judge_texts(texts: Iterable[str], meter: Meter | None = None) -> Sliced[Poison]:
    """Return what in a document's texts is meant for the model, and how certain that is.

    Two signs count together within one text. Of a document with more than `DOCUMENT_MAX` characters
    or `TEXTS_MAX` texts, the first ones are read.
    """
    found = Poison()
    meter = meter or Meter()
    left = DOCUMENT_MAX
    for _, text in zip(range(TEXTS_MAX), texts, strict=False):
        if meter.spend(_TEXT_COSTS):
            yield
        if not _is_word(text):
            yield from _read(text[: min(DESCRIPTION_MAX, left)], meter, found)
        left -= len(text)
        if left <= 0:
            break
    return found


def find_alike(names: Iterable[str]) -> Sliced[bool]:
    """Return whether one of a document's names looks like another."""
    meter = Meter()
    for _, name in zip(range(TEXTS_MAX), names, strict=False):
        if not name.isascii() and looks_alike(name):
            return True
        if meter.spend(_TEXT_COSTS + min(len(name), _NAME_CHARS)):
            yield
    return False


def looks_alike(name: str) -> bool:
    """Return whether a name mixes Latin letters with Cyrillic or Greek ones that look the same."""
    letters = (c for c in name[:_NAME_CHARS] if c.isalpha())
    scripts = {unicodedata.name(c, "").partition(" ")[0] for c in letters}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK"})


def _is_word(text: str) -> bool:
    """Return whether a text is short and only letters and digits: no pattern matches it."""
    return len(text) < _WORD_CHARS and text.isascii() and text.replace("_", "a").isalnum()


def _read(text: str, meter: Meter, found: Poison) -> Sliced[None]:
    disguises = yield from find_disguises(text, meter)
    seen = yield from find_signs((yield from _plain(text, meter)), meter)
    plain = yield from _plain("\n".join(concealed(text, disguises))[: len(text)], meter)
    unseen = yield from find_signs(plain, meter)
    unshown = yield from _plain("\n".join(concealed(text, disguises & _UNSEEN))[:_SHORT], meter)
    kinds = {kind for kind in disguises if _counts(kind, unseen, plain)}
    if (seen.found | unseen.found) & ALONE or seen.is_pair:
        kinds.add("instructions to the reader")
    if seen.is_pair or unseen.is_pair or any(_is_proven(kind, unseen, unshown) for kind in kinds):
        found.proven |= kinds
    elif kinds and len(found.open_texts) < _OPEN_MAX:
        found.open_texts.append(text[:_SHORT])
    found.kinds |= kinds


def _counts(kind: str, unseen: Signs, plain: str) -> bool:
    """Return whether a disguise alone deserves a warning: comments and encodings seldom do."""
    if kind == "encoded instructions":
        return bool(unseen.found & ALONE) or unseen.is_pair
    if kind == "hidden comment":
        return bool(unseen.found) or _COMMANDING.search(plain[:_SHORT]) is not None
    return kind not in _SELDOM or bool(unseen.found)


def _is_proven(kind: str, unseen: Signs, unshown: str) -> bool:
    """Return whether a disguise and its content are two signs.

    Sentences in characters that no screen shows are meant for a model; any order in them counts.
    """
    if kind in _UNSEEN:
        return bool(CLAUSE.search(unshown) or ORDERS.search(unshown))
    if kind in COMMON:
        return bool(unseen.found & ALONE)
    if kind in SECRETIVE:
        return bool(unseen.found - {TARGET})
    return kind == "hidden data"


_SELDOM = frozenset({"coded letters", "wiped lines"})
_UNSEEN = frozenset({"invisible tag characters", "terminal escape"})
_SHORT = 4_000
_OPEN_MAX = 2


def _plain(text: str, meter: Meter) -> Sliced[str]:
    """Return text as a model reads it: compatibility forms folded, invisible characters removed."""
    parts: list[str] = []
    gap = ""
    for piece in _pieces(text):
        folded = _folded(piece)
        if words := " ".join(folded.split()):
            parts.append((" " if folded[0].isspace() and parts else gap) + words)
            gap = ""
        if folded[-1:].isspace() and parts:
            gap = " "
        if meter.spend(len(piece)):
            yield
    return "".join(parts)


def _folded(piece: str) -> str:
    if piece.isascii():
        return piece.casefold()
    folded = unicodedata.normalize("NFKC", _WIDE.sub(" ", piece))
    return "".join(c for c in folded if unicodedata.category(c) != "Cf").casefold()


def _pieces(text: str) -> Iterator[str]:
    """Yield pieces, cut before an ASCII character, because nothing composes over that cut.

    A text without one for a whole piece is cut in the middle of it.
    """
    at = 0
    while at < len(text):
        end = min(len(text), at + _PIECE)
        cut = end
        while end < len(text) and cut > at + 1 and not text[cut].isascii():
            cut -= 1
        cut = cut if cut > at + 1 else end
        yield text[at:cut]
        at = cut
