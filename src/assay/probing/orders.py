"""Detects what one sentence orders its reader to do beyond a document's own work. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from assay.probing.demands import TextInContext
from assay.probing.lexicon import Word, classes_in, words_of

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


def trades_of(about: str) -> frozenset[str]:
    """Return the things that a tool may request, according to its purpose."""
    known = classes_in(words_of(about))
    return frozenset(thing for thing, words in _TRADES.items() if words & known)


def asks_by_name(name: str, trades: frozenset[str]) -> frozenset[str]:
    """Return the signs of an argument's name, split into words."""
    words = words_of(name)
    if not set(_things(words)) - trades:
        return frozenset()
    is_whole = classes_in(words) & {"whole", "foreign", "person", "send", "yours"}
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
        return cls(words, said, trades, is_first, classes_in(words))

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
        return classes_in(self.words[max(0, first) : max(0, last)])


def _is_imperative(word: Word) -> bool:
    """Return whether it is a verb, and in English uninflected: an order is uninflected."""
    if not word.classes & _VERBS:
        return False
    return word.text in _BASE or not word.text.endswith(("s", "ed", "ing", "sent", "given"))


_BASE: Final = frozenset({"embed", "pass"})


def _things(words: Sequence[Word]) -> Iterator[str]:
    """Yield what a sentence names that belongs to the reader, or to their principals."""
    for n, word in enumerate(words):
        if not word.classes & _THINGS or "ident" in classes_in(words[n + 1 : n + 2]):
            continue
        near = classes_in(words[max(0, n - 4) : n + 5])
        is_talk = "talk" in word.classes and (
            word.text not in _VAGUE or "whole" in classes_in(words[max(0, n - 2) : n + 3])
        )
        is_source = not _SOURCES.isdisjoint(one.text for one in words[max(0, n - 3) : n])
        if is_talk or ("message" in word.classes and "whole" in near and not is_source):
            yield "talk"
        yield from word.classes & {"rules", "place"}
        if "key" in word.classes:
            before = {one.text for one in words[max(0, n - 2) : n]}
            if before & _OWNED or near & {"foreign", "repo"}:
                yield "key"
        if "repo" in word.classes and classes_in(words[max(0, n - 3) : n]) & {"other", "foreign"}:
            yield "repo"
