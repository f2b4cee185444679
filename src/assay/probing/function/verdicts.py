"""Decides what a service's transcript proves. Pure and deterministic.

Checks whether a repeated call gets the same answer: invented answers change.

Decides whether the answers of one tool or operation vary with its inputs.

Source: evidence.md#operations.

A transcript is JSON: the kind of service, the requests and the answers (cut and without secrets).
Source: evidence.md#proof-of-function.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_object
from assay.probing.deposited_access import NOT_ENTERED
from assay.probing.function.talking import (
    KEPT_SHARE,
    FunctionVerdict,
    arranged_in,
    asked,
    given_of,
    is_cut,
    judge_conversation,
    judge_failures,
    text,
    texts,
    values_of,
)
from assay.probing.function.words import (
    COUNTING,
    TEXT_CHARS_MAX,
    counts_in,
    identifiers,
    leaves,
    reorders,
    substance,
    words_of,
)
from assay.probing.probe_client import decode

LONG_WORDS = 12
"""Number of words unique to an answer from which fewer need to be repeated: a model rewords."""

LONG_KEPT_SHARE = 0.2
NEAR_SHARE = 0.1
"""How far a figure may move, relative to its distance from other calls' answers."""

_FIGURE: Final = re.compile(r"(?<![\w.])-?\d{1,15}(?:[.,]\d{1,15})?(?!\w)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SteadyAnswer:
    """An answer of a tool or operation."""

    asked: str
    said: str
    substance: frozenset[str]
    """Its content beyond the words of all requests."""


def _comes_again(first: SteadyAnswer, again: SteadyAnswer, others: Sequence[SteadyAnswer]) -> bool:
    """Return whether `again` repeats what only `first` had among the answers.

    Words are repeated; figures are repeated or close, as prices and clocks move.
    """
    if not first.substance:
        return True
    own = first.substance.difference(*(other.substance for other in others))
    if not own:
        return bool(first.substance & again.substance)
    if all(word.isdigit() for word in own):
        return _are_near(first, again, others)  # Parts of figures are equal by chance.
    kept = len(own & again.substance) / len(own)
    if kept >= KEPT_SHARE:
        return True
    theirs = [other.substance - first.substance for other in others]
    strayed = max((len(t & again.substance) / len(t) for t in theirs if t), default=0.0)
    if len(own) >= LONG_WORDS and kept >= max(LONG_KEPT_SHARE, 2 * strayed):
        return True
    return _are_near(first, again, others)


def _are_near(first: SteadyAnswer, again: SteadyAnswer, others: Sequence[SteadyAnswer]) -> bool:
    """Return whether most figures that differ between calls stayed close."""
    given = frozenset(_figures(first.asked)).union(*(_figures(other.said) for other in others))
    here, there = _figures(first.said), _figures(again.said)
    apart = [f for o in others if len(f := _figures(o.said)) == len(here)]
    if first.said == again.said:
        return True
    if len(here) != len(there) or not apart:
        return bool(set(here) & set(there) - given)
    moved: list[bool] = []
    for place, figure in enumerate(here):
        distances = [abs(figure - other[place]) for other in apart if other[place] != figure]
        if distances and figure not in given:
            moved.append(abs(there[place] - figure) <= NEAR_SHARE * min(distances))
    if not moved:
        return bool(first.substance & again.substance)
    return sum(moved) >= KEPT_SHARE * len(moved)


def _figures(text: str) -> list[float]:
    return [float(f.replace(",", ".")) for f in _FIGURE.findall(text[:TEXT_CHARS_MAX])]


def one_tool(calls: Sequence[JsonObject], known: frozenset[str]) -> str:
    """Return `varies`, `same`, `no_input`, `unsteady` or, if undecidable, `unknown`.

    Identifiers and the order of the input count if the same call was answered identically twice:
    then they were not invented.
    """
    sent = known | frozenset(word for row in calls for word in words_of(str(row.get("asked"))))
    if not known & COUNTING:
        sent |= frozenset(count for row in calls for count in _counts_of(row))
    results = [substance(text(row), sent) - _numbered(calls) | arranged_in(row) for row in calls]
    if all(not row.get("input") for row in calls):
        return "no_input" if any(substance(text(row), known) for row in calls) else "same"
    by_input: dict[str, list[int]] = {}
    for place, row in enumerate(calls):
        by_input.setdefault(str(row.get("asked")), []).append(place)
    again = [places for places in by_input.values() if len(places) > 1]
    said = [
        SteadyAnswer(str(row.get("asked")), text(row), result)
        for row, result in zip(calls, results, strict=True)
    ]
    if any(_is_unsteady(places, said) for places in again):
        return "unsteady"
    if len(by_input) == 1:
        return "unknown"
    if len(set(results)) > 1 and any(results):
        return "varies"
    is_steady = any(len({text(calls[place]) for place in places}) == 1 for places in again)
    return "varies" if is_steady and _is_worked_out(calls, by_input) else "same"


def _one_operation(calls: Sequence[JsonObject], known: frozenset[str], *, refuses: bool) -> str:
    """Like `one_tool`; `unknown` if only the owner's shown inputs have answers of their own.

    If other values are refused, as by a service that knows few things, the shown ones count.
    """
    found = one_tool(calls, known)
    own = [row for row in calls if row["role"] != "shown"]
    if found != "varies" or len(own) == len(calls):
        return found
    if len({str(row.get("asked")) for row in own}) > 1:
        varies = one_tool(own, known)
        return "unknown" if varies == "same" else varies
    return found if refuses else "unknown"


def _numbered(calls: Sequence[JsonObject]) -> frozenset[str]:
    """Return numbers as long as identifiers of the tool: a hexadecimal one may be all digits."""
    said = [frozenset(words_of(text(row))) for row in calls]
    lengths = {len(name) for row in calls for name in identifiers(text(row))}
    long = [word for words in said for word in words if len(word) >= IDENTIFIER_MIN]
    return frozenset(word for word in long if word.isdigit() and len(word) in lengths)


IDENTIFIER_MIN = 6


def _counts_of(row: JsonObject) -> frozenset[str]:
    """Return counts of each text of a call, of all of them together, and of its request."""
    sizes = frozenset(texts(row.get("sizes")))
    given = given_of(row)
    found = counts_in(given).union(*(counts_in(text) for text in leaves(decode(given.encode()))))
    return found | sizes | {str(len(given)), str(len(given.encode("utf-8", "replace")))}


def _is_unsteady(places: Sequence[int], said: Sequence[SteadyAnswer]) -> bool:
    """Return whether an answer that was requested again was different."""
    first, *again = [said[place] for place in places]
    others = [one for one in said if one.asked != first.asked]
    return any(not _comes_again(first, one, others) for one in again)


def _is_worked_out(calls: Sequence[JsonObject], by_input: Mapping[str, Sequence[int]]) -> bool:
    """Return whether answers have other identifiers, or reordered words, for each input."""
    asked_once = [calls[places[0]] for places in by_input.values()]
    made = {identifiers(text(row)) - identifiers(str(row.get("asked"))) for row in asked_once}
    if len(made) > 1 and all(made):
        return True
    return sum(any(reorders(text(r), v) for v in values_of(r)) for r in asked_once) > 1


def judge(transcript: JsonObject) -> FunctionVerdict:
    """Return the verdict on one service."""
    end, talk = transcript.get("end"), transcript.get("talk")
    if isinstance(end, str) and end in _ENDS:
        said = judge_conversation(talk) if end == "page" and is_object(talk) else _ENDS[end]
        return said if said.state == "functional" else _ENDS[end]
    rule = _RULES.get(str(transcript.get("kind")), judge_failures)
    verdict = rule(transcript)
    if verdict.state == "functional" or not is_object(talk):
        return verdict
    return judge_conversation(talk)


def _judge_tools(transcript: JsonObject) -> FunctionVerdict:
    """Judge an MCP server: tools that answer by their input, or resources and prompts to read."""
    rows = asked(transcript)
    if transcript.get("listed") is None:
        return judge_failures(transcript)
    if not transcript.get("listed") and not transcript.get("readable"):
        return FunctionVerdict("not_functional", "nothing_offered")
    known = frozenset(texts(transcript.get("known")))
    valid = [row for row in rows if row["class"] == "ok" and row.get("valid") and text(row)]
    if any(row["role"] == "read" and substance(text(row), known) for row in valid):
        return FunctionVerdict("functional", "resource_read")
    by_tool: dict[str, list[JsonObject]] = {}
    for row in valid:
        by_tool.setdefault(str(row.get("tool")), []).append(row)
    verdicts = [one_tool(calls, known) for calls in by_tool.values()]
    return _best_tool(verdicts, rows, transcript)


def _best_tool(
    verdicts: Sequence[str], rows: Sequence[JsonObject], seen: JsonObject
) -> FunctionVerdict:
    if "varies" in verdicts:
        return FunctionVerdict("functional", "results_vary")
    if "no_input" in verdicts and "same" not in verdicts:
        return FunctionVerdict("functional", "valid_result")
    if is_cut(rows) or seen.get("cut"):
        return FunctionVerdict("unfinished", "answers_missing")
    if "same" in verdicts and _knows_some(rows):
        return FunctionVerdict("unfinished", "inputs_unknown")
    if "same" in verdicts or "unsteady" in verdicts:
        return FunctionVerdict("not_functional", "same_answer" if "same" in verdicts else "made_up")
    return _no_tool(rows, seen)


def _knows_some(rows: Sequence[JsonObject]) -> bool:
    """Return whether one tool found what one input names, and nothing for another input."""
    found = {str(row.get("tool")) for row in rows if row["class"] == "ok" and row.get("input")}
    return any(
        row["class"] == "not_found" and row["role"] == "call" and str(row.get("tool")) in found
        for row in rows
    )


def _no_tool(rows: Sequence[JsonObject], seen: JsonObject) -> FunctionVerdict:
    """Return the verdict if no result counts for or against it."""
    if any(row["class"] == "invalid" for row in rows):
        return FunctionVerdict("not_functional", "invalid_result")
    if rows and all(row["class"] in {"ok", "not_found", "error"} for row in rows):
        return FunctionVerdict("unfinished", "inputs_unknown")
    return judge_failures(seen) if rows else FunctionVerdict("unfinished", "no_safe_request")


def judge_http(transcript: JsonObject) -> FunctionVerdict:
    """Judge documented operations: they answer as documented, and differently by input."""
    rows = asked(transcript)
    valid = [row for row in rows if row["class"] == "ok" and row.get("valid") and text(row)]
    if not valid:
        return _nothing_valid(transcript, rows)
    control = next((text(row) for row in rows if row["role"] == "unknown_path"), None)
    by_operation: dict[str, list[JsonObject]] = {}
    for row in valid:
        if row["role"] != "unknown_path" and not _repeats(row, control):
            by_operation.setdefault(str(row.get("tool")), []).append(row)
    documented = frozenset(texts(transcript.get("known")))
    refusing = {str(row.get("tool")) for row in rows if row["class"] == "not_found"}
    verdicts = {
        _one_operation(calls, documented, refuses=name in refusing)
        for name, calls in by_operation.items()
    }
    if "varies" in verdicts:
        return FunctionVerdict("functional", "results_vary")
    if is_cut(rows) or transcript.get("cut"):
        return FunctionVerdict("unfinished", "answers_missing")
    plain = [
        substance(text(c[0]), documented) for c in by_operation.values() if not c[0].get("input")
    ]
    if transcript.get("documented") and "same" not in verdicts and len(set(plain)) > 1:
        return FunctionVerdict("functional", "operations_differ")
    if "same" in verdicts and _knows_some(rows):
        return FunctionVerdict("unfinished", "inputs_unknown")
    return _no_operation(verdicts)


def _no_operation(verdicts: AbstractSet[str]) -> FunctionVerdict:
    """Return the verdict if no operation's answers vary with its inputs."""
    if not verdicts or "same" in verdicts:
        return FunctionVerdict("not_functional", "same_answer")
    if "unknown" in verdicts:
        return FunctionVerdict("unfinished", "inputs_unknown")
    return FunctionVerdict(
        "not_functional", "made_up" if "unsteady" in verdicts else "nothing_varies"
    )


def _nothing_valid(transcript: JsonObject, rows: Sequence[JsonObject]) -> FunctionVerdict:
    if transcript.get("end") == "page":
        return FunctionVerdict("not_callable", "web_page")
    if any(row["class"] == "invalid" for row in rows):
        return FunctionVerdict("not_functional", "invalid_result")
    if transcript.get("documented") and any(row["class"] == "not_found" for row in rows):
        return FunctionVerdict("unfinished", "inputs_unknown")
    control = next((text(row) for row in rows if row["role"] == "unknown_path"), None)
    declared = [r for r in rows if r["class"] == "not_found" and r["role"] != "unknown_path"]
    if control is not None and any(not _repeats(row, control) for row in declared):
        return FunctionVerdict("unfinished", "inputs_unknown")  # It exists, and requires input.
    return judge_failures(transcript)


def _repeats(row: JsonObject, control: str | None) -> bool:
    """Return whether an operation answers like an impossible address."""
    return control is not None and words_of(text(row)) == words_of(control)


_ENDS: Final[Mapping[str, FunctionVerdict]] = {
    "page": FunctionVerdict("not_callable", "web_page"),
    "not_http": FunctionVerdict("not_callable", "no_web_address"),
    "not_spoken": FunctionVerdict("not_functional", "protocol_not_spoken"),
    "grpc": FunctionVerdict("unfinished", "grpc_not_asked"),
    "opted_out": FunctionVerdict("refuses", "opted_out"),
    "unasked": FunctionVerdict("unfinished", "waiting_for_budget"),
    NOT_ENTERED: FunctionVerdict("unfinished", NOT_ENTERED),
}


def _judge_payment(transcript: JsonObject) -> FunctionVerdict:
    """Judge a demand that a client can pay, and what is free without paying.

    What a payment buys is not seen here: the ladder decides by who paid on chain. A service without
    a seen demand is judged by its other answers.
    """
    if "valid" not in transcript:
        return judge_failures(transcript)
    for member, why in _SOUND:
        if not transcript.get(member):
            return FunctionVerdict("not_functional", why)
    for member, why in (("steady", "price_moves"), ("as_advertised", "dearer_than_advertised")):
        if transcript.get(member) is False:
            return FunctionVerdict("not_functional", why)
    given = judge_http(transcript) if asked(transcript) else _NOT_BOUGHT
    if given.state == "functional":
        return FunctionVerdict("functional", "free_operations")
    bought = transcript.get("bought")
    had = judge_bought(bought) if is_object(bought) else _NOT_BOUGHT
    sold = _judge_settlements(transcript.get("settled"))
    listed = (had, given if given.why == "answers_missing" else _NOT_BOUGHT, sold)
    proven = [one for one in listed if one.state == "functional"]
    return next((one for one in (*proven, *listed) if one != _NOT_BOUGHT), _NOT_BOUGHT)


_SOUND: Final = (
    ("valid", "challenge_invalid"),
    ("known_asset", "unknown_asset"),
    ("sane", "amount_out_of_proportion"),
    ("payee", "payee_not_controlled"),
)


def judge_bought(transcript: JsonObject) -> FunctionVerdict:
    """Judge paid answers like those of other HTTP services, but only differing ones prove it.

    A call that did not answer, without taking the money, only means that it was not bought.
    """
    found = judge_http(transcript)
    if found.why == "results_vary":
        return FunctionVerdict("functional", "bought")
    answers = [row for row in asked(transcript) if row["class"] in {"ok", "invalid"}]
    inputs = {str(row.get("asked")) for row in answers}
    if found.state == "not_functional" and len(inputs) > 1:
        return found
    if not answers and _number(transcript.get("taken")) > 0:
        return FunctionVerdict("not_functional", "paid_for_nothing")
    return _NOT_BOUGHT


_NOT_BOUGHT: Final = FunctionVerdict("closed", "payment_needed")


def _judge_settlements(fact: JsonValue) -> FunctionVerdict:
    """Return whether enough independent payers settled; unread chains count neither way.

    Without the fact nobody checked.
    """
    seen: JsonObject = fact if is_object(fact) else {}
    needs = seen.get("needs")
    wanted: JsonObject = needs if is_object(needs) else {}
    if wanted and all(_number(seen.get(name)) >= _number(least) for name, least in wanted.items()):
        return FunctionVerdict("functional", "settled")
    if seen.get("unread"):
        return FunctionVerdict("unfinished", "settlements_unread")
    return FunctionVerdict("closed", "payment_needed")


def _number(value: JsonValue) -> Decimal:
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return Decimal(0)
    return found if found.is_finite() else Decimal(0)


_RULES: Final = {
    "a2a": judge_conversation,
    "mcp": _judge_tools,
    "http": judge_http,
    "x402": _judge_payment,
}
