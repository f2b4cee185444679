"""Detects orders to the reader of a document beyond the document's own work. Pure.

Classifies the words of a text, in many languages.

Read from `texts/lexicon.json`: single words and stems, no sentences. Identifiers are split into
words. Every step is a look-up, so the work is linear in the length of the text.

An order alone is ordinary: documentation is full of them. Its topic decides: things that are not
the tool's (a conversation, files of a home, keys of others), work of other tools, shell commands,
the choice among agents. Each such topic is one sign; a second of another kind (the destination,
concealment, claimed consent, a claimed authority) makes the finding. Words are known by class
(`lexicon`), so that no fixed sentence is searched.
Source: evidence.md#poisoned-texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import chain, islice
from typing import Final

from assay.common.sliced_work import Meter, Sliced
from assay.probing.demands import TextInContext
from assay.probing.hidden_texts import SEQUENCE, encoded_texts, hidden_passages, wiped_passages

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


def _classes_in(words: Sequence[Word]) -> frozenset[str]:
    """Return the classes of all the words."""
    return _NONE.union(*(word.classes for word in words))


def words_of(sentence: str) -> Sequence[Word]:
    """Return the words of a sentence, phrases marked at their first word."""
    read = [*_classified(_CAMEL.sub(" ", sentence).casefold())]
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


def _classified(sentence: str) -> Iterator[tuple[str, str, bool]]:
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


_RELATIVE: Final = frozenset({"that", "which"})
_MANY: Final = frozenset({"commands"})
_SHORT: Final = 12
"""Words of a sentence that only names its reader."""

_VERBS: Final = frozenset({"call", "send", "read", "alter", "execute", "avoid", "rank", "divert"})
_TRADES: Final = {
    "talk": {"talk", "message", "speech"},
    "place": {"place", "computer", "login", "key", "command"},
    "key": {"key", "login"},
    "commands": {"command", "computer"},
    "rules": {"prompts"},
    "tools": {"tool", "prompts"},
    "rank": {"rank"},
    "repo": {"repo", "computer"},
}
"""What a tool may request if its purpose has words of these classes."""

_THINGS: Final = frozenset({"talk", "message", "rules", "place", "key", "repo"})
_TELLING: Final = _THINGS | {
    *("command", "tool", "rank", "task", "reader", "authority", "agreed", "hush", "tell"),
    *("lie", "guide", "traffic", "outrank", "outside", "within", "slot", "duty", "call"),
}
"""Classes without which a sentence contains no sign."""

_OWNED: Final = frozenset({"all", "any", "every", "other", "others"})
_VAGUE: Final = frozenset({"context", "dialog", "chat", "chats", "exchange"})
"""Words that interfaces use too."""

_INVOKING: Final = frozenset({"by", "for", "per", "under", "as", "our", "your"})
_SOURCES: Final = frozenset({"from", "in"})
_LINKS: Final = frozenset({"(", "[", "<"})
_PASSIVE: Final = frozenset(
    {"with", "of", "by", "from", "are", "is", "was", "were", "be", "have", "has", "had"}
)


def _trades_of(about: str) -> frozenset[str]:
    """Return the things that a tool may request, according to its purpose."""
    known = _classes_in(words_of(about))
    return frozenset(thing for thing, words in _TRADES.items() if words & known)


def _asks_by_name(name: str, trades: frozenset[str]) -> frozenset[str]:
    """Return the signs of an argument's name, split into words."""
    words = words_of(name)
    if not set(_things(words)) - trades:
        return frozenset()
    is_whole = _classes_in(words) & {"whole", "foreign", "person", "send", "yours"}
    return frozenset({"object", "sent"} if is_whole else {"object"})


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and its context."""

    words: Sequence[Word]
    said: TextInContext
    trades: frozenset[str]
    is_first: bool
    known: frozenset[str]
    """The classes of its words."""

    @classmethod
    def of(
        cls, words: Sequence[Word], said: TextInContext, trades: frozenset[str], *, is_first: bool
    ) -> Sentence:
        """Return a sentence of a text."""
        return cls(words, said, trades, is_first, _classes_in(words))

    def signs(self) -> frozenset[str]:
        """Return what it asks beyond the tool's work, and accompanying signs."""
        if not self.known & _TELLING or self._is_report():
            return frozenset()
        asked = self._asked() if self._is_order() else ()
        return frozenset((*self._said_besides(), *asked))

    def _is_report(self) -> bool:
        """Return whether it reports or quotes what others ask."""
        verbs = [n for n, word in enumerate(self.words) if word.classes & _VERBS]
        return bool(verbs) and "mention" in self._between(0, verbs[-1])

    def _is_order(self) -> bool:
        if self.said.is_argument or self._has("duty"):
            return True
        begun = [n for n, w in enumerate(self.words) if w.after and _is_imperative(w)]
        if any(n or not (self.is_first and self.said.says_purpose) for n in begun):
            return True
        return any("reader" in word.classes and self._does(n) for n, word in enumerate(self.words))

    def _does(self, n: int) -> bool:
        """Return whether a reader is said to do something, rather than to be its object."""
        verbs = (m for m in range(n + 1, n + 6) if self._between(m, m + 1) & _VERBS)
        verb = next(verbs, None)
        around = self.words[max(0, n - 1) : verb]
        return verb is not None and not _PASSIVE & {word.text for word in around}

    def _is_addressed(self, n: int) -> bool:
        """Return whether it addresses a reader: by an order, by name first, or as you."""
        after = self.words[n + 1 : n + 8]
        if self._does(n) or "duty" in self._between(n + 1, n + 7):
            return True
        is_named = self.words[n].after or "addressing" in self._between(n - 4, n)
        if is_named and any(word.after == ":" for word in after):
            return True
        if len(self.words) <= _SHORT and ":" in {
            word.after for word in self.words[max(0, n - 2) : n + 1]
        }:
            return True
        return "you" in self._between(n - 4, n + 4)

    def _said_besides(self) -> Iterator[str]:
        """Yield signs that may also be in a neighbouring sentence."""
        for n, word in enumerate(self.words):
            if "hush" in word.classes or (
                "tell" in word.classes and "neg" in self._between(n - 4, n + 2)
            ):
                yield "hush"
            if "agreed" in word.classes and "already" in self._between(n - 5, n + 7):
                yield "consent"
            if "authority" in word.classes and self._is_invoked(n):
                yield "authority"
            if "reader" in word.classes and not word.is_joined and self._is_addressed(n):
                yield "reader"
        if self._has("lie"):
            yield "lie"
        if self._has("outrank") and self._has("person"):
            yield "outrank"

    def _is_invoked(self, n: int) -> bool:
        """Return whether the demand invokes a rule or an office."""
        before = {word.text for word in self.words[max(0, n - 2) : n]}
        return bool(before & _INVOKING) or "duty" in self._between(n - 3, n + 5)

    def _asked(self) -> Iterator[str]:
        things = set(_things(self.words)) - self.trades
        moves, is_placed = self._moves("send"), self._has("slot") or self._goes_out()
        if things:
            yield "thing"
        if moves and is_placed and self._has("pronoun"):
            yield "placed"
        yield "order"
        if "next" in self._between(0, 3) and self.said.is_answer:
            yield "next"
        if things and (moves or self._moves("read") or self.said.is_argument):
            yield "object"
            if (moves and is_placed) or (self.said.is_argument and self._has("whole")):
                yield "sent"
        if self._has_all("task") or self._has_all("repo"):
            yield "whatever"
        yield from self._work()
        yield from self._meddled()

    def _work(self) -> Iterator[str]:
        """Yield signs of made or opened things sent to an address, and of results to execute."""
        marks = {word.text for word in self.words if word.after != "("}
        is_addressed = bool(marks & {"\u00a7url", "\u00a7mail"})
        is_work = self._has_all("task") or (self._has("task") and self._has("person"))
        if is_addressed and is_work and (self._moves("send") or "go" in marks):
            yield from ("object", "sent")
        if self._has("guide") and self._moves("send"):
            yield "object"
        if "\u00a7wallet" in marks and self._moves("execute", "send"):
            yield "money"
        if self._moves("execute") and self._has("within"):
            yield "execute"

    def _meddled(self) -> Iterator[str]:
        """Yield signs of orders about other tools, commands and the choice among agents."""
        is_yours = self._has("you") or self._has("reader")
        are_many = is_yours and any(word.text in _MANY for word in self.words)
        is_any = are_many or (self._has("command") and self._has("all"))
        if is_any and self._moves("alter") and "commands" not in self.trades:
            yield from ("commands", "altered")
        if self._follows("traffic", "all") and self._moves("divert") and self._goes_out():
            yield from ("commands", "altered")
        are_others = self._follows("tool", "other") or self._are_described("tool")
        if are_others and self._moves("alter", "avoid", "send") and "tools" not in self.trades:
            yield "tools"
            yield from ("diverted",) if self._moves("send") and self._goes_out() else ()
        if self._has("reader") and self._moves("rank") and "rank" not in self.trades:
            yield from ("rank",) if self._has("first") else ()
            yield from ("others",) if self._moves("avoid") else ()

    def _goes_out(self) -> bool:
        """Return whether an outside place is named; the target of a link does not count."""
        is_meant = self._has("reader")
        return any(
            "outside" in word.classes and (is_meant or word.after not in _LINKS)
            for word in self.words
        )

    def _moves(self, *kinds: str) -> bool:
        """Return whether a verb of a kind is ordered here."""
        return not self.known.isdisjoint(kinds) and any(
            word.classes & {*kinds}
            and "neg" not in self._between(n - 3, n)
            and (_is_imperative(word) or self._between(n - 8, n) & {"duty", "reader"})
            for n, word in enumerate(self.words)
        )

    def _has_all(self, name: str) -> bool:
        return self._follows(name, "all")

    def _are_described(self, name: str) -> bool:
        """Return whether it describes others: tools that do this, servers which do that."""
        following = zip(self.words, self.words[1:], strict=False)
        return any(name in w.classes and after.text in _RELATIVE for w, after in following)

    def _follows(self, name: str, before: str) -> bool:
        return name in self.known and any(
            name in word.classes and before in self._between(n - 3, n)
            for n, word in enumerate(self.words)
        )

    def _has(self, name: str) -> bool:
        return name in self.known

    def _between(self, first: int, last: int) -> frozenset[str]:
        return _classes_in(self.words[max(0, first) : max(0, last)])


def _is_imperative(word: Word) -> bool:
    """Return whether it is a verb, and in English uninflected: an order is uninflected."""
    if not word.classes & _VERBS:
        return False
    return word.text in _BASE or not word.text.endswith(("s", "ed", "ing", "sent", "given"))


_BASE: Final = frozenset({"embed", "pass"})


def _things(words: Sequence[Word]) -> Iterator[str]:
    """Yield what a sentence names that belongs to the reader, or to their principals."""
    for n, word in enumerate(words):
        if not word.classes & _THINGS or "ident" in _classes_in(words[n + 1 : n + 2]):
            continue
        near = _classes_in(words[max(0, n - 4) : n + 5])
        is_talk = "talk" in word.classes and (
            word.text not in _VAGUE or "whole" in _classes_in(words[max(0, n - 2) : n + 3])
        )
        is_source = not _SOURCES.isdisjoint(one.text for one in words[max(0, n - 3) : n])
        if is_talk or ("message" in word.classes and "whole" in near and not is_source):
            yield "talk"
        yield from word.classes & {"rules", "place"}
        if "key" in word.classes:
            before = {one.text for one in words[max(0, n - 2) : n]}
            if before & _OWNED or near & {"foreign", "repo"}:
                yield "key"
        if "repo" in word.classes and _classes_in(words[max(0, n - 3) : n]) & {"other", "foreign"}:
            yield "repo"


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
            yield from _read_text(said, meter, found)
            left -= len(said.text) + len(said.name)
        if left <= 0:
            break
    return found


def _read_text(said: TextInContext, meter: Meter, found: Duties) -> Sliced[None]:
    trades = _trades_of(said.about[:SENTENCE_MAX])
    if said.name:
        found.add(_asks_by_name(said.name[:SENTENCE_MAX], trades), frozenset(), is_answer=False)
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
        if said.is_answer and "reader" in before | _classes_in(words):
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
