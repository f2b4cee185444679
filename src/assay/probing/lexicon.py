"""Classifies the words of a text, in many languages. Pure.

Read from `texts/lexicon.json`: single words and stems, no sentences. Identifiers are split into
words. Every step is a look-up, so the work is linear in the length of the text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

STEM_MIN = 2
"""Characters of the shortest stem."""

RUN_MAX = 8
"""Characters of a word in a script that is written without spaces."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence."""

    text: str
    classes: frozenset[str]
    after: str
    """What precedes it as the beginning of a clause: a mark, a conjunction; empty inside a
    clause."""
    is_joined: bool
    """Whether it is part of a longer name: gpg-agent, user.agent."""


_NONE: Final = frozenset[str]()
_DATA = json.loads(files("assay.probing.texts").joinpath("lexicon.json").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class _Table:
    """Words, stems and phrases; a phrase by its first word."""

    words: Mapping[str, frozenset[str]]
    stems: Mapping[str, frozenset[str]]
    phrases: Mapping[str, Sequence[tuple[tuple[str, ...], str]]]
    lengths: Mapping[str, Sequence[int]]
    """The lengths of stems by their first two characters, the longest first."""


def _table(classes: Mapping[str, Mapping[str, str]]) -> _Table:
    words, stems = dict[str, set[str]](), dict[str, set[str]]()
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    rows = (
        (name, entry)
        for name, by in classes.items()
        for line in by.values()
        for entry in line.split()
    )
    for name, entry in rows:
        first, *rest = entry.split("_")
        if rest:
            phrases.setdefault(first, []).append((tuple(rest), name))
        else:
            known = stems if entry.endswith("*") else words
            known.setdefault(entry.rstrip("*"), set()).add(name)
    begun = {stem[:STEM_MIN] for stem in stems}
    return _Table(
        {word: frozenset(one) for word, one in words.items()},
        {stem: frozenset(one) for stem, one in stems.items()},
        phrases,
        {two: sorted({len(s) for s in stems if s[:2] == two}, reverse=True) for two in begun},
    )


_TABLE: Final = _table(_DATA["classes"])


def classes_of(word: str) -> frozenset[str]:
    """Return the classes of a lower-case word: as it is, and by its longest stem."""
    found = _TABLE.words.get(word, _NONE)
    for length in _TABLE.lengths.get(word[:STEM_MIN], ()):
        stem = _TABLE.stems.get(word[:length])
        if stem is not None:
            return found | stem
    return found


def classes_in(words: Sequence[Word]) -> frozenset[str]:
    """Return the classes of all the words."""
    return _NONE.union(*(word.classes for word in words))


def words_of(sentence: str) -> Sequence[Word]:
    """Return the words of a sentence, phrases marked at their first word."""
    read = [*_read(_CAMEL.sub(" ", sentence).casefold())]
    return [
        Word(text, classes_of(text) | _phrases_at(read, place), after, is_joined)
        for place, (text, after, is_joined) in enumerate(read)
    ]


def _phrases_at(read: Sequence[tuple[str, str, bool]], place: int) -> frozenset[str]:
    known = _TABLE.phrases.get(read[place][0])
    if known is None:
        return _NONE
    after = tuple(text for text, _, _ in read[place + 1 : place + 5])
    return frozenset(name for rest, name in known if after[: len(rest)] == rest)


def _read(sentence: str) -> Iterator[tuple[str, str, bool]]:
    after = "^"
    for match in _TOKEN.finditer(sentence):
        text, kind = match.group(), match.lastgroup or ""
        if kind == "mark":
            after = text if text in _CLAUSES else after
            continue
        around = (
            sentence[max(0, match.start() - 1) : match.start()]
            + sentence[match.end() : match.end() + 1]
        )
        for part in _parts(text) if kind == "word" else (f"\u00a7{kind}",):
            yield part, after, not _JOINTS.isdisjoint(around)
            after = part if part in _JOINING else ""


def _parts(text: str) -> Iterator[str]:
    """Yield the words of a run: one, or those of a script without spaces."""
    if text[0] < "\u0600":
        elided = _ELIDED.match(text)
        yield from elided.groups() if elided else (text,)
    elif text[0] < "\u0700":
        yield _bare(text)
    elif not _UNSPACED.search(text):
        yield text
    else:
        yield from _cut(text)


def _bare(text: str) -> str:
    """Return an Arabic word without attached particles."""
    bare = _PREFIXES.sub("", text)
    return bare if text not in _TABLE.words and len(bare) >= STEM_MIN else text


def _cut(text: str) -> Iterator[str]:
    """Yield the known words of a run, the longest first; the rest is left out."""
    place = 0
    while place < len(text):
        for length in range(min(RUN_MAX, len(text) - place), 0, -1):
            if text[place : place + length] in _TABLE.words:
                yield text[place : place + length]
                place += length - 1
                break
        place += 1


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_TOKEN = re.compile(
    r"(?P<url>https?:/{2}[^\s<>\"'`)]{1,200})"
    r"|(?P<wallet>\b0x[0-9a-f]{40}\b)"
    r"|(?P<mail>\b[\w.+-]{1,40}+@[\w-]{1,40}+(?:\.[\w-]{2,20}+){1,4})"
    r"|(?P<home>(?:~|\$home\b|%\w{4,16}%|/home/\w{1,32}|/root|/etc)(?:[/\\][\w.*-]{1,40}){1,6})"
    r"|(?P<dotfile>(?:(?<![\w.])\.|\bdot (?:slash )?)"
    r"(?:env|ssh|aws|azure|netrc|npmrc|kube|docker|pgpass|pypirc|gnupg)\b)"
    r"|(?P<code>`(?=[\w.-]{1,40}`))"
    r"|(?P<word>[^\W_]{1,64}(?:['\u2019][^\W_]{1,12})?)"
    r"|(?P<mark>[^\w\s-]|(?<!\w)-|-(?!\w)|[\u2013\u2014])"
)
_ELIDED = re.compile(r"([^\W_]{1,4})['\u2019]([^\W_]{3,})")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_PREFIXES = re.compile(
    "^[\u0648\u0641]?(?:[\u0628\u0643]?\u0627\u0644|\u0644\u0644|[\u0644\u0628])?"
)
_JOINTS: Final = frozenset("-/\\")
_CLAUSES: Final = frozenset(",:;.!?()[]<>*#-\u2013\u2014\u3001\uff0c\uff1a\u060c")
_JOINING: Final = frozenset(
    {"and", "then", "but", "so", "also", "or", "now", "afterwards", "please", "first", "thus", "to"}
)
