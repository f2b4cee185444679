"""Decides what a transcript proves of an agent that takes messages in words. Pure."""

from itertools import combinations
from typing import Final, Literal

from assay.common.json import JsonObject
from assay.probing.function.answered import (
    DENIES,
    PICKED_MIN,
    is_right_row,
    keeps_most,
    picks_own,
    replaced_in,
)
from assay.probing.function.declines import declines
from assay.probing.function.quotations import TEXTS
from assay.probing.function.rows import FunctionVerdict, asked, is_cut, judge_failures, text, texts
from assay.probing.function.variation import LONG_QUOTED
from assay.probing.function.words import (
    COUNTING,
    counts_in,
    selected,
    substance,
    words_of,
)

KEPT_SHARE = 0.4
"""Share of the words unique to a request's answer that its rewording must get again."""

KIN_MIN = 5
"""Messages made of two examples of one skill that must be told apart."""

LABEL_WORDS_MAX = 6
"""Words of an answer that may be the name of a kind."""

CHECKS_MIN = 5
"""Numbers told apart by their check digits: fewer could be guessed."""

Wanted = Literal["pair", "reworded"]

_SORTS: Final = ("here", "there")
_OWN: Final = frozenset({"first", "other"})


def judge_conversation(transcript: JsonObject) -> FunctionVerdict:
    """Return the verdict on an agent that takes messages in words (A2A)."""
    rows = asked(transcript)
    if not any(text(row) for row in rows):
        return judge_failures(transcript)
    wanted = missing(transcript)
    if wanted is None:
        right = any(is_right_row(row) or "fits" in row for row in rows)
        return FunctionVerdict("functional", "checked_answer" if right else "answers_vary")
    if is_cut(rows) or transcript.get("cut"):
        return FunctionVerdict("unfinished", "answers_missing")
    return _unproven(_Answers(transcript), wanted)


def _unproven(answers: "_Answers", wanted: "Wanted") -> FunctionVerdict:
    """Return the verdict if answers prove nothing; an agent that says how to ask is asked again."""
    if answers.are_unsteady():
        return FunctionVerdict("not_functional", "unsteady_answers")
    if (
        not answers.own
        or wanted == "reworded"
        or answers.know_own_example()
        or answers.different() > 1
    ):
        return FunctionVerdict("unfinished", "inputs_unknown")
    return FunctionVerdict("not_functional", "same_answer")


def missing(transcript: JsonObject) -> Wanted | None:
    """Return what a proof still lacks; None if function is proven.

    `pair`: one example, twice with values that are not its own, gets different answers, beyond the
    words of request and card; `reworded`: each of the two gets the substance of its answer again in
    other words, or was checked and is right.
    """
    answers = _Answers(transcript)
    checks = answers.checks()
    if all(checks):
        if len(checks) >= CHECKS_MIN:
            return None
        if checks:
            return "pair"
    if answers.sort() or answers.kin() or answers.pick():
        return None
    pairs = answers.pairs()
    if any(answers.is_confirmed(a) and answers.is_confirmed(b) for a, b in pairs):
        if answers.any_right() or not answers.are_two_labels():
            return None
        if answers.count() >= KIN_MIN:
            return None if not answers.any_spoilt() else "pair"
    return "reworded" if pairs else "pair"


def to_reword(transcript: JsonObject) -> list[str]:
    """Return the requests to reword: those of pairs that were not reworded yet.

    The newest first: an agent that answers in turn has moved on by then.
    """
    answers = _Answers(transcript)
    paired = [row for pair in answers.pairs() for row in pair]
    had = [str(row["asked"]) for row in answers.rows if row["role"] == "reworded"]
    texts = [str(row["asked"]) for row in reversed(answers.own) if row in paired]
    fresh = [asked for asked in dict.fromkeys(texts) if not any(asked in text for text in had)]
    return fresh or texts[:1]


class _Answers:
    """The answers of a transcript, compared beyond the words of the card and of the requests."""

    def __init__(self, transcript: JsonObject) -> None:
        self.rows = asked(transcript)
        said = [row for row in self.rows if row["role"] in _OWN and text(row)]
        self.own = [row for row in said if "fits" in row or not declines(text(row))]
        self._card = frozenset(texts(transcript.get("known")))
        self._gaps = {id(row): replaced_in(row) for row in self.rows}
        self._asked = {id(row): self._known_of(str(row.get("asked"))) for row in self.rows}

    def _known_of(self, request: str) -> frozenset[str]:
        words = frozenset(words_of(request))
        return words if self._card & COUNTING else words | counts_in(request)

    def said(self, row: JsonObject, *others: JsonObject) -> frozenset[str]:
        """Return what an answer says beyond the words of the card, its request and the others'."""
        if is_right_row(row):
            return frozenset(texts(row.get("expected")))
        known = self._card.union(self._asked[id(row)], *(self._asked[id(o)] for o in others))
        return substance(text(row), known) | self._gaps[id(row)]

    def checks(self) -> list[bool]:
        """Return for each number with check digits whether the answer was right."""
        rows = [row for row in self.own if isinstance(row.get("fits"), bool)]
        return [bool(DENIES.search(text(row))) is not row["fits"] for row in rows]

    def sort(self) -> bool:
        """Return whether texts of two sorts are told apart, beyond the words of each request.

        All of one sort are answered with a word that no answer to the other has, and vice versa; or
        words are replaced in all of one sort and in none of the other. Words of the card count: a
        classifier names its kinds there.
        """
        rows = [row for row in self.own if row.get("of")]
        if len(rows) < TEXTS:
            return False
        here, there = ([row for row in rows if row["of"] == of] for of in _SORTS)
        marks = [[bool(self._gaps[id(row)]) for row in side] for side in (here, there)]
        if any(all(a) and not any(b) for a, b in (marks, marks[::-1])):
            return True
        return self._are_apart(here, there)

    def kin(self) -> bool:
        """Return whether variants of one example get an answer that none of another's gets.

        The two are of one skill, and five messages were made of them: an agent that picks one of
        two answers at random passes once in sixteen times.
        """
        by_example: dict[tuple[str, str], list[JsonObject]] = {}
        for row in self.own:
            if isinstance(row.get("skill"), int) and not row.get("literal") and keeps_most(row):
                key = str(row.get("skill")), str(row.get("family"))
                by_example.setdefault(key, []).append(row)
        if sum(row.get("kin") is True for row in self.own) < KIN_MIN - 2:
            return False
        many = [(key, rows) for key, rows in by_example.items() if len(rows) > 1]
        return any(
            a[0] == b[0] and len(one) + len(other) >= KIN_MIN and self._are_apart(one, other)
            for (a, one), (b, other) in combinations(many, 2)
        )

    def _are_apart(self, here: list[JsonObject], there: list[JsonObject]) -> bool:
        """Return whether all answers of each group share a word that none of the other has."""
        one, other = self._names_of(here), self._names_of(there)
        return all(
            bool(a[0].intersection(*a[1:]).difference(*b)) for a, b in ((one, other), (other, one))
        )

    def _names_of(self, rows: list[JsonObject]) -> list[frozenset[str]]:
        """Return the words of each answer that are not of its request; no numbers."""
        said = [frozenset(words_of(text(row))).difference(self._asked[id(row)]) for row in rows]
        return [frozenset(word for word in words if not word.isdigit()) for words in said]

    def pick(self) -> bool:
        """Return whether answers contain what is searched in texts, and leave out the rest.

        Words of the agent's own text and none of ours, which precedes or follows it; or selected
        words of several places.
        """
        rows = [row for row in self.own if row.get("of")]
        given = [LONG_QUOTED.search(str(row["asked"])) for row in rows]
        pairs = [(text(r), q[2]) for r, q in zip(rows, given, strict=True) if q]
        if sum(bool(selected(answer, quoted)) for answer, quoted in pairs) >= PICKED_MIN:
            return True
        mixed = [row for row in rows if row.get("own")]
        begin = {str(r["asked"]).find(str(r["own"])) < str(r["asked"]).find(str(r["ours"]))
                 for r in mixed}  # fmt: skip
        return len(begin) > 1 and len(mixed) > PICKED_MIN and all(map(picks_own, mixed))

    def pairs(self) -> list[tuple[JsonObject, JsonObject]]:
        """Return pairs of one example with two foreign values, answered differently."""
        asked = [row for row in self.own if not row.get("literal") and not row.get("kin")]
        ours = [row for row in asked if not self.is_spoilt(row)]
        return [
            (a, b)
            for a, b in combinations(ours, 2)
            if a.get("family") == b.get("family") and self.differ(a, b) and self._is_beyond(a, b)
        ]

    def _is_beyond(self, a: JsonObject, b: JsonObject) -> bool:
        """Return whether answers prepared for published values could not differ like these two.

        Neither has a published value; or each has one in another place than the message that both
        are made of, whose own answer differs from both: an agent that looks up one value repeats
        one.
        """
        kinds = {str(a.get("published")), str(b.get("published"))}
        if kinds != {"theirs"}:
            return len(kinds) == 1
        own = (r for r in self.own if r.get("literal") and r.get("family") == a.get("family"))
        return any(self.differ(row, a) and self.differ(row, b) for row in own)

    def is_confirmed(self, row: JsonObject) -> bool:
        """Return whether an answer was checked and is right, or was repeated in other words."""
        again = self._again(row)
        return is_right_row(row) or (bool(again) and all(self._keeps(row, r) for r in again))

    def is_spoilt(self, row: JsonObject) -> bool:
        """Return whether the same request in other words got another answer."""
        return any(not self._keeps(row, again) for again in self._again(row))

    def any_spoilt(self) -> bool:
        """Return whether any request in other words got another answer."""
        return any(self.is_spoilt(row) for row in self.own)

    def any_right(self) -> bool:
        """Return whether an answer was checked, and is right."""
        return any(is_right_row(row) for row in self.own)

    def count(self) -> int:
        """Return how many messages were answered."""
        return sum(bool(text(row)) for row in self.rows)

    def are_two_labels(self) -> bool:
        """Return whether all answers are one of two, in few words: chance produces as many."""
        found = {self._names_of([row])[0] for row in self.own}
        said = [words_of(text(row)) for row in self.own]
        is_plain = not any(word.isdigit() for words in said for word in words)
        return is_plain and len(found) == len(_SORTS) and max(map(len, found)) <= LABEL_WORDS_MAX

    def are_unsteady(self) -> bool:
        """Return whether no reworded request got its answer again, and one did not."""
        is_steady = any(self.is_confirmed(row) for row in self.own)
        return not is_steady and self.any_spoilt()

    def different(self) -> int:
        """Return how many answers differ from each other."""
        found: list[JsonObject] = []
        for row in self.own:
            if self.said(row) and all(self.differ(row, other) for other in found):
                found.append(row)
        return len(found)

    def _again(self, row: JsonObject) -> list[JsonObject]:
        """Return its rewordings. They follow it: a clock or counter cannot return to its value."""
        wanted = str(row.get("asked"))
        return [r for r in self.rows if r["role"] == "reworded" and wanted in str(r.get("asked"))]

    def _keeps(self, row: JsonObject, again: JsonObject) -> bool:
        """Return whether a rewording got what its request got, and other requests did not."""
        before, said = self.said(row, again), self.said(again, row)
        if before == said:
            return bool(before)
        others = [r for r in self.own if r is not row and not self._are_same(r, row)]
        own = before.difference(*(self.said(other) for other in others))
        figures = frozenset(word for word in own if word.isdigit())
        if not own or (figures and figures <= said):
            return bool(own)
        kept = len(own & said) / len(own)
        theirs = [self.said(other) - before for other in others]
        strayed = max((len(rest & said) / len(rest) for rest in theirs if rest), default=0.0)
        return kept >= KEPT_SHARE and kept >= 2 * strayed

    def know_own_example(self) -> bool:
        """Return whether one of its own examples has an answer unlike all other requests.

        It may not know our values, or be prepared for its examples: that is not proven.
        """
        rest = [row for row in self.rows if not row.get("literal") and text(row)]
        own = [row for row in self.own if row.get("literal") and self.said(row)]
        return any(all(not self._are_same(row, other) for other in rest) for row in own)

    def differ(self, a: JsonObject, b: JsonObject) -> bool:
        one, other = self.said(a, b), self.said(b, a)
        return bool(one) and bool(other) and one != other

    def _are_same(self, a: JsonObject, b: JsonObject) -> bool:
        return self.said(a, b) == self.said(b, a)
