"""Detects instructions to the model that reads a text, in many languages. Pure.

Each sign alone is a warning: policies ("do not tell the user a price that is not confirmed"), docs
and scanners use the same words. Ordinary texts do not have two signs of different kinds close
together. Stems, not words, so that inflections are found. Every quantifier is bounded.
Sources: checks.md#honest-texts-that-look-bad, #what-other-tools-check; evidence.md#poisoned-texts.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from assay.common.sliced_work import WINDOW_CHARS, Meter, Sliced

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

_DATA = json.loads(files("assay.probing.texts").joinpath("signs.json").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class _Stem:
    """One pattern of a sign; every match contains one of `needs`."""

    sign: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]


_STEMS = tuple(
    _Stem(row["sign"], re.compile(row["pattern"]), tuple(row["needs"])) for row in _DATA["signs"]
)
_ACTS = re.compile("|".join(_DATA["acts"]))
_QUOTING = re.compile("|".join(_DATA["quoting"]))
_UNDONE = re.compile("|".join(_DATA["after"]))
_NONE = re.compile("|".join(_DATA["between"]))
_NEGATED = re.compile(f"(?:{'|'.join(_DATA['negation'])})[^.!?;:,\\n]{{0,24}}$")
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


def find_signs(plain: str, meter: Meter) -> Sliced[Signs]:
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
