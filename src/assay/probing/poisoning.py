"""Detects texts that are poisoned: hidden ones, and instructions to the reader. Pure.

The signs of `asks`: acts, objects and conditions, in many wordings.

Read from `texts/asks.json`: stems and word classes, not sentences. English is covered most closely;
other languages by the signs that need no grammar: whose words are requested, how much of them, for
how long, who is praised. Every quantifier is bounded, and a sentence is a few hundred characters.

Detects instructions to the model that reads a text, in many languages.

Each sign alone is a warning: policies ("do not tell the user a price that is not confirmed"), docs
and scanners use the same words. Ordinary texts do not have two signs of different kinds close
together. Stems, not words, so that inflections are found. Every quantifier is bounded.
Sources: checks.md#honest-texts-that-look-bad, #what-other-tools-check; evidence.md#poisoned-texts.

Patterns of hidden text and instructions to the reader.

Precision before recall: an honest agent that is accused loses its grade, a dishonest one meets
several probes. So it contains only patterns that ordinary tool descriptions do not match. Every
quantifier is bounded, because the text is hostile. So is the work: a text is read in windows of
fixed size, normalised piece by piece, and the computations yield after every few thousand
characters (`common.sliced_work`).
Sources: checks.md#poisoning; Unicode Technical Report 36.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from assay.common.sliced_work import WINDOW_CHARS, Meter, Sliced, whole
from assay.probing.hidden_texts import COMMON, SECRETIVE, concealed, find_disguises

NEGATION_REACH = 80
"""Characters before a sign in which a negation applies to it."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign; `trade` says which tools have an honest use for what it requests."""

    name: str
    pattern: re.Pattern[str]
    trade: re.Pattern[str] | None
    is_data: bool
    """Whether it is data for the tool: counts if demanded, or an argument."""
    needs_order: bool
    """Whether it counts only as an order to the reader, not as the tool's own behaviour."""
    needs: tuple[str, ...]
    """Every match contains one of them; empty: not known."""
    unless_negated: bool
    """Whether a negation before it reverses it: "never ... without asking"."""

    def search(self, sentence: str) -> re.Match[str] | None:
        """Return the first match in a sentence."""
        if self.needs and not any(need in sentence for need in self.needs):
            return None
        found = self.pattern.finditer(sentence)
        return next((match for match in found if not self._is_negated(sentence, match)), None)

    def _is_negated(self, sentence: str, match: re.Match[str]) -> bool:
        before = sentence[max(0, match.start() - NEGATION_REACH) : match.start()]
        return self.unless_negated and NEGATED.search(before) is not None


_ASKS = json.loads(files("assay.probing.texts").joinpath("asks.json").read_text("utf-8"))


def _expanded(lines: Sequence[str], parts: Mapping[str, str]) -> str:
    """Return a pattern with the word classes that it names (`<who>`) expanded."""
    return re.sub(r"<(\w+)>", lambda name: parts.get(name[1], name[0]), "".join(lines))


def _parts() -> Mapping[str, str]:
    made: dict[str, str] = {}
    for name, lines in {**_ASKS["parts"], **_ASKS["readers"]}.items():
        made[name] = _expanded(lines, made)
    return made


_PARTS = _parts()
_TRADES = {name: re.compile("".join(lines)) for name, lines in _ASKS["trades"].items()}

SIGNS: Final = tuple(
    Sign(
        row["sign"],
        re.compile(_expanded(row["pattern"], _PARTS)),
        _TRADES.get(row.get("trade")),
        is_data=bool(row.get("is_data")),
        needs_order=bool(row.get("needs_order")),
        needs=tuple(row.get("needs", "").split()),
        unless_negated=bool(row.get("unless_negated")),
    )
    for row in _ASKS["signs"]
)
ORDERS: Final = re.compile(_PARTS["orders"])
"""Matches an order to the reader, anywhere in a sentence."""

CLAUSE: Final = re.compile(_PARTS["clause"])
"""Matches a verb that begins a clause. At the beginning of a description it says what the tool
does."""

BY_MODEL: Final = re.compile(_PARTS["by_model"])
"""Matches text addressed to models by name."""

HEADING: Final = re.compile(_PARTS["heading"])
"""Matches a heading that addresses the next sentence to models."""

ALWAYS: Final = re.compile(_PARTS["always"])
ARGUMENT: Final = re.compile(_PARTS["argument"])
"""Matches a reference to an argument by name."""

NEGATED: Final = re.compile(_PARTS["negated"])
SECURITY: Final = re.compile(_PARTS["security"])
"""Matches trades that quote such texts."""

HARMLESS: Final = re.compile(_PARTS["harmless"])
"""Matches sentences that quote, or speak of protection."""


REACH = 256
"""Longest match that is found beyond a window."""

NEAR = 600
"""Characters within which two signs belong together."""

SECRET_NEAR = 110
"""Characters within which a verb and the secret it demands belong together."""

HITS_MAX = 500
"""Hits of one text that are examined."""

TRIES_MAX = 1_500
"""How often patterns are tried on windows of one text; ordinary texts need a few a window."""

_NOUN = "noun"

OVERRIDE, REVEAL, CONCEAL, MARKUP, SECRET, TARGET, SHADOW, ROLE = (
    "override",
    "reveal",
    "conceal",
    "markup",
    "secret",
    "target",
    "shadow",
    "role",
)

PAIRS: Final = frozenset(
    frozenset(pair)
    for pair in (
        (OVERRIDE, CONCEAL),
        (OVERRIDE, SECRET),
        (OVERRIDE, REVEAL),
        (CONCEAL, REVEAL),
        (OVERRIDE, MARKUP),
        (OVERRIDE, TARGET),
        (CONCEAL, SECRET),
        (CONCEAL, MARKUP),
        (CONCEAL, TARGET),
        (MARKUP, SECRET),
        (SHADOW, SECRET),
        (SHADOW, CONCEAL),
        (ROLE, OVERRIDE),
        (ROLE, CONCEAL),
    )
)
"""Independent signs that no honest text has together."""

ALONE: Final = frozenset({OVERRIDE, REVEAL, CONCEAL, MARKUP})
"""Signs that are a warning by themselves."""

_SIGNS = json.loads(files("assay.probing.texts").joinpath("signs.json").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class _Stem:
    """One pattern of a sign; every match contains one of `needs`."""

    sign: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]


_STEMS = tuple(
    _Stem(row["sign"], re.compile(row["pattern"]), tuple(row["needs"])) for row in _SIGNS["signs"]
)
_ACTS = re.compile("|".join(_SIGNS["acts"]))
_QUOTING = re.compile("|".join(_SIGNS["quoting"]))
_UNDONE = re.compile("|".join(_SIGNS["after"]))
_NONE = re.compile("|".join(_SIGNS["between"]))
_NEGATED = re.compile(f"(?:{'|'.join(_SIGNS['negation'])})[^.!?;:,\\n]{{0,24}}$")
_QUOTING_CHARS = 80
_QUOTES = ("'", '"', "`", "\u201c", "\u2018", "\u00ab", "\u300c", "\u201e", "\u300e")


@dataclass(slots=True)
class Signs:
    """The signs of one text, and whether two independent ones are close together."""

    found: set[str] = field(default_factory=set[str])
    is_pair: bool = False
    last: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, sign: str, at: int) -> None:
        """Add a sign at a position; positions never decrease by more than a match is long."""
        self.found.add(sign)
        self.last[sign] = at
        self.is_pair = self.is_pair or any(
            at - place <= NEAR and frozenset((sign, other)) in PAIRS
            for other, place in self.last.items()
        )


def _find_signs(plain: str, meter: Meter) -> Sliced[Signs]:
    """Return the signs in a text that is normalised and in lower case.

    Window by window: only patterns whose literal parts occur in a window are tried there.
    """
    hits: list[tuple[int, str]] = []
    tries = TRIES_MAX
    for at in range(0, len(plain), WINDOW_CHARS):
        end = min(len(plain), at + WINDOW_CHARS)
        view = plain[at : min(len(plain), end + REACH)]
        for stem in _STEMS:
            if tries and len(hits) < HITS_MAX and any(need in view for need in stem.needs):
                tries -= 1
                hits += _hits(plain, stem, at, end)
                if meter.spend(len(view) // 8):
                    yield
        if meter.spend(len(view)):
            yield
    signs = Signs()
    for place, sign in sorted(hits):
        signs.add(sign, place)
    return signs


def _hits(plain: str, stem: _Stem, at: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the matches that begin in a window; of secrets those that a verb demands."""
    for match in stem.pattern.finditer(plain, at, min(len(plain), end + REACH)):
        if match.start() >= end:
            return
        if stem.sign != _NOUN:
            if _is_meant(plain, match.start()):
                yield match.start(), stem.sign
        elif _is_asked_for(plain, match):
            yield match.start(), SECRET


def _is_asked_for(plain: str, noun: re.Match[str]) -> bool:
    """Return whether a verb near the noun demands it, and is neither quoted nor negated."""
    begin, end = _sentence(plain, noun.start(), noun.end())
    return any(
        _is_meant(plain, act.start())
        and not _NEGATED.search(plain[begin : act.start()])
        and not _NONE.search(plain[act.end() : noun.start()])
        and not _UNDONE.search(plain[act.end() : end])
        for act in _ACTS.finditer(plain, begin, end)
    )


def _sentence(plain: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of the sentence around a place, within `SECRET_NEAR` of it."""
    first = max(0, start - SECRET_NEAR)
    breaks = [match.end() for match in _SENTENCE_END.finditer(plain, first, start)]
    closing = _SENTENCE_END.search(plain, end, end + SECRET_NEAR)
    last = closing.start() if closing else min(len(plain), end + SECRET_NEAR)
    return (breaks[-1] if breaks else first), last


def _is_meant(plain: str, place: int) -> bool:
    """Return whether it is not quoted as an example, as guards and scanners do."""
    before = plain[max(0, place - _QUOTING_CHARS) : place]
    if before.endswith(_QUOTES):
        return False
    return not _QUOTING.search(_SENTENCE_END.split(before)[-1])


_SENTENCE_END = re.compile(r"[.!?;]\s|[\n\u3002\uff01\uff1f]")


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
    seen = yield from _find_signs((yield from _plain(text, meter)), meter)
    plain = yield from _plain("\n".join(concealed(text, disguises))[: len(text)], meter)
    unseen = yield from _find_signs(plain, meter)
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
