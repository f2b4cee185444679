"""Decides what a transcript proves of an agent that takes messages in words. Pure.

Helpers that read transcripts for the rules of every kind of service.

Detects answers that rearrange their input, which a template cannot do.

A reference, a name card or a date in another notation may contain only words of the request. Parts
of a value in another order, and initials in place of names, still cannot result from inserting
values into a text.

Evaluates one answer of a conversation against its own request.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final, Literal, cast

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.generated_texts import Checkable, is_right
from assay.probing.function.text_variation import TEXTS
from assay.probing.function.variation import LONG_QUOTED
from assay.probing.function.words import (
    COUNTING,
    counts_in,
    declines,
    leaves,
    replaced,
    selected,
    substance,
    words_of,
)
from assay.probing.probe_client import decode

State = Literal[
    "functional",
    "not_functional",
    "refuses",
    "unreachable",
    "unfinished",
    "not_callable",
    "closed",
]


@dataclass(frozen=True, slots=True)
class FunctionVerdict:
    """What is proven of a service, and the reason as a slug."""

    state: State
    why: str


def judge_failures(transcript: JsonObject) -> FunctionVerdict:
    """Return the verdict on a service without valid answers, from its mildest failure."""
    rows = asked(transcript)
    classes = {str(row["class"]) for row in rows} | set(texts(transcript.get("greeting")))
    if "cut" in classes or transcript.get("cut") or "busy_for" in classes:
        return FunctionVerdict("unfinished", "answers_missing")
    if "closed" in classes:
        if transcript.get("security"):
            return FunctionVerdict("closed", "credentials_needed")
        return FunctionVerdict("refuses", "refuses_everything")
    for wanted, verdict in _FAILURES.items():
        if wanted in classes:
            return verdict
    return FunctionVerdict("not_functional", "no_valid_answer")


_FAILURES: Final[Mapping[str, FunctionVerdict]] = {
    "no_grpc": FunctionVerdict("unfinished", "grpc_extra_missing"),
    "no_callback": FunctionVerdict("unfinished", "no_callback_address"),
    "ok": FunctionVerdict("not_functional", "no_valid_answer"),
    "timeout": FunctionVerdict("unfinished", "no_answer_in_time"),
    "broken": FunctionVerdict("not_functional", "server_errors"),
    "busy": FunctionVerdict("refuses", "refuses_everything"),
    "not_found": FunctionVerdict("refuses", "refuses_everything"),
    "refused": FunctionVerdict("refuses", "refuses_everything"),
    "protocol": FunctionVerdict("not_functional", "protocol_not_spoken"),
    "error": FunctionVerdict("not_functional", "protocol_errors"),
    "unreachable": FunctionVerdict("unreachable", "no_connection"),
}


def asked(transcript: JsonObject) -> list[JsonObject]:
    """Return the requests in order."""
    rows = transcript.get("asked")
    return [row for row in rows if is_object(row)] if is_array(rows) else []


def is_cut(rows: Sequence[JsonObject]) -> bool:
    """Return whether our time, requests or means ended before an answer came."""
    return any(row["class"] in _CUT for row in rows)


_CUT: Final = frozenset({"cut", "timeout", "busy", "busy_for", "broken", "no_grpc", "no_callback"})


def text(row: JsonObject) -> str:
    """Return an answer's text; empty if there was none."""
    return cast("str", row.get("answer")) if isinstance(row.get("answer"), str) else ""


def texts(value: JsonValue) -> list[str]:
    """Return a list's members as texts; none for anything else."""
    return [str(item) for item in value] if is_array(value) else []


VALUE_WORDS_MAX: Final = 12


def initials_in(answer: str, given: str) -> frozenset[str]:
    """Return initials beside their original neighbour word, where names were left out.

    `Doe, J.` of `Jane Doe`; each is marked, because it is not literal.
    """
    had, said = words_of(given), words_of(answer)
    pairs = {frozenset(pair) for pair in pairwise(said)}
    return frozenset(
        f"~{first[0]} {last}"
        for first, last in pairwise(had)
        if len(first) > 1 < len(last)
        and first not in said
        and first[0].isalpha()
        and frozenset((first[0], last)) in pairs
    )


def rearranged(answer: str, value: str) -> frozenset[str]:
    """Return the words of one value as they occur together in an answer, if only reordered."""
    own, said = words_of(value), words_of(answer)
    count = len(own)
    if not 1 < count <= VALUE_WORDS_MAX or len(set(own)) < count:
        return frozenset()
    runs = [said[n : n + count] for n in range(len(said) - count + 1)]
    if own in runs:
        return frozenset()
    return frozenset("~" + " ".join(run) for run in runs if sorted(run) == sorted(own))


def given_of(row: JsonObject) -> str:
    """Return what a call was given, as it stands in a transcript after the call's name."""
    return str(row.get("asked")).partition(" ")[2]


def values_of(row: JsonObject) -> list[str]:
    """Return each argument of a call, with everything in it."""
    given = decode(given_of(row).encode())
    return [" ".join(leaves(v)) for v in given.values()] if is_object(given) else []


def arranged_in(row: JsonObject) -> frozenset[str]:
    """Return what an answer made of its arguments and does not say in other words."""
    found: set[str] = set()
    for value in values_of(row):
        found |= rearranged(text(row), value) | initials_in(text(row), value)
    return frozenset(found)


DENIES: Final = re.compile(
    r"\b(?:not?|n[’']t|isn.t|invalid|false|wrong|incorrect|fail\w*|bad|mismatch|nicht|nein|falsch"  # noqa: RUF001
    r"|ungültig|kein\w*|non?|faux|invalide|incorrecte?|inválid[oa]|incorrect[oa]|não|errad[oa]|nie"
    r"|niepoprawn\w+|nieprawid\w+|błędn\w+|ongeldig|niet|geçersiz|yanlış|değil|non valido|errato"  # noqa: RUF001 - Turkish
    r"|sbagliato|не|нет|ні|неверн\w*|неправильн\w*|недейств\w*|недійсн\w*|хибн\w*)\b"
    r"|无效|不正确|错误|不|無効|正しくない|誤り|ません|غير|خطأ|ليس|유효하지|잘못|अमान्य|नहीं|ไม่",
    re.IGNORECASE,
)

PICKED_MIN = 2
"""Least words picked from a text, and least answers that pick some."""

KIN_SHARE = 0.6
"""Least share of an example's words that a similar request keeps."""


def _replaced_in(row: JsonObject) -> frozenset[str]:
    """Return what an answer replaced in its input; marked, because it is not literal."""
    given = str(row.get("asked"))
    words = frozenset(f"-{word}" for word in replaced(text(row), given))
    return words | initials_in(text(row), given)


def _keeps_most(row: JsonObject) -> bool:
    """Return whether a request keeps most words of the example that it is made of."""
    example = frozenset(words_of(str(row.get("family"))))
    return len(example.intersection(words_of(str(row["asked"])))) >= KIN_SHARE * len(example)


def _picks_own(row: JsonObject) -> bool:
    """Return whether it has words of the agent's own text, and none of ours beside it."""
    own, ours = frozenset(words_of(str(row["own"]))), frozenset(words_of(str(row["ours"])))
    said = frozenset(words_of(text(row)))
    return len(said & (own - ours)) >= PICKED_MIN and not said & (ours - own)


def _is_right_row(row: JsonObject) -> bool:
    """Return whether the right answer is known and was given."""
    expected, excluded = texts(row.get("expected")), texts(row.get("excluded"))
    if not expected:
        return False
    request = Checkable(str(row.get("sort")), "", tuple(expected), tuple(excluded))
    return is_right(request, text(row))


KEPT_SHARE = 0.4
"""Share of the words unique to a request's answer that its rewording must get again."""

KIN_MIN = 5
"""Messages made of two examples of one skill that must be distinguished."""

LABEL_WORDS_MAX = 6
"""Words of an answer that may be the name of a kind."""

CHECKS_MIN = 5
"""Numbers distinguished by their check digits: fewer could be guessed."""

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
        right = any(_is_right_row(row) or "fits" in row for row in rows)
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
        self._gaps = {id(row): _replaced_in(row) for row in self.rows}
        self._asked = {id(row): self._known_of(str(row.get("asked"))) for row in self.rows}

    def _known_of(self, request: str) -> frozenset[str]:
        words = frozenset(words_of(request))
        return words if self._card & COUNTING else words | counts_in(request)

    def said(self, row: JsonObject, *others: JsonObject) -> frozenset[str]:
        """Return what an answer says beyond the words of the card, its request and the others'."""
        if _is_right_row(row):
            return frozenset(texts(row.get("expected")))
        known = self._card.union(self._asked[id(row)], *(self._asked[id(o)] for o in others))
        return substance(text(row), known) | self._gaps[id(row)]

    def checks(self) -> list[bool]:
        """Return for each number with check digits whether the answer was right."""
        rows = [row for row in self.own if isinstance(row.get("fits"), bool)]
        return [bool(DENIES.search(text(row))) is not row["fits"] for row in rows]

    def sort(self) -> bool:
        """Return whether texts of two sorts are distinguished, beyond the words of each request.

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
            if isinstance(row.get("skill"), int) and not row.get("literal") and _keeps_most(row):
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
        return len(begin) > 1 and len(mixed) > PICKED_MIN and all(map(_picks_own, mixed))

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
        return _is_right_row(row) or (bool(again) and all(self._keeps(row, r) for r in again))

    def is_spoilt(self, row: JsonObject) -> bool:
        """Return whether the same request in other words got another answer."""
        return any(not self._keeps(row, again) for again in self._again(row))

    def any_spoilt(self) -> bool:
        """Return whether any request in other words got another answer."""
        return any(self.is_spoilt(row) for row in self.own)

    def any_right(self) -> bool:
        """Return whether an answer was checked, and is right."""
        return any(_is_right_row(row) for row in self.own)

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
