"""What a transcript of a service proves. Pure: the same transcript, the same verdict.

A transcript is JSON: the kind of service, what was asked and what came back (cut and without
secrets). Source: the design of evidence, section 2.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from typing import Final

from assay.kit.json import JsonObject, JsonValue, is_object
from assay.probing.asking import decode
from assay.probing.function.arranged import arranged_in, given_of, values_of
from assay.probing.function.rows import (
    Verdict,
    asked,
    is_cut,
    judge_failures,
    text,
    texts,
)
from assay.probing.function.steadiness import Answered, comes_again
from assay.probing.function.talking import judge_conversation
from assay.probing.function.words import (
    COUNTING,
    counts_in,
    identifiers,
    leaves,
    reorders,
    substance,
    words_of,
)


def judge(transcript: JsonObject) -> Verdict:
    """The verdict on what was seen of one service."""
    end = transcript.get("end")
    if isinstance(end, str) and end in _ENDS:
        return _ENDS[end]
    rule = _RULES.get(str(transcript.get("kind")), judge_failures)
    verdict, talk = rule(transcript), transcript.get("talk")
    if verdict.state == "functional" or not is_object(talk):
        return verdict
    return judge_conversation(talk)


def judge_tools(transcript: JsonObject) -> Verdict:
    """An MCP server: tools that answer by their input, or resources and prompts to read."""
    rows = asked(transcript)
    if transcript.get("listed") is None:
        return judge_failures(transcript)
    if not transcript.get("listed") and not transcript.get("readable"):
        return Verdict("not_functional", "nothing_offered")
    known = frozenset(texts(transcript.get("known")))
    valid = [row for row in rows if row["class"] == "ok" and row.get("valid") and text(row)]
    if any(row["role"] == "read" and substance(text(row), known) for row in valid):
        return Verdict("functional", "resource_read")
    by_tool: dict[str, list[JsonObject]] = {}
    for row in valid:
        by_tool.setdefault(str(row.get("tool")), []).append(row)
    verdicts = [_one_tool(calls, known) for calls in by_tool.values()]
    return _best_tool(verdicts, rows, transcript)


def _best_tool(verdicts: Sequence[str], rows: Sequence[JsonObject], seen: JsonObject) -> Verdict:
    if "varies" in verdicts:
        return Verdict("functional", "results_vary")
    if "no_input" in verdicts and "same" not in verdicts:
        return Verdict("functional", "valid_result")
    if is_cut(rows) or seen.get("cut"):
        return Verdict("unfinished", "answers_missing")
    if "same" in verdicts and _knows_some(rows):
        return Verdict("unfinished", "inputs_unknown")
    if "same" in verdicts or "unsteady" in verdicts:
        return Verdict("not_functional", "same_answer" if "same" in verdicts else "made_up")
    return _no_tool(rows, seen)


def _knows_some(rows: Sequence[JsonObject]) -> bool:
    """Whether one tool found what one input names, and nothing for another input."""
    found = {str(row.get("tool")) for row in rows if row["class"] == "ok" and row.get("input")}
    return any(
        row["class"] == "not_found" and row["role"] == "call" and str(row.get("tool")) in found
        for row in rows
    )


def _no_tool(rows: Sequence[JsonObject], seen: JsonObject) -> Verdict:
    """No result counts for or against it."""
    if any(row["class"] == "invalid" for row in rows):
        return Verdict("not_functional", "invalid_result")
    if rows and all(row["class"] in {"ok", "not_found", "error"} for row in rows):
        return Verdict("unfinished", "inputs_unknown")
    return judge_failures(seen) if rows else Verdict("unfinished", "no_safe_request")


def _one_tool(calls: Sequence[JsonObject], known: frozenset[str]) -> str:
    """`varies`, `same`, `no_input`, `unsteady` or, where nothing can be said, `unknown`.

    Identifiers and the order of what was given count where the same call was answered the same
    twice: they were not made up.
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
        Answered(str(row.get("asked")), text(row), result)
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


def _numbered(calls: Sequence[JsonObject]) -> frozenset[str]:
    """Numbers as long as identifiers of the same tool: a hexadecimal one may be all digits."""
    said = [frozenset(words_of(text(row))) for row in calls]
    lengths = {len(name) for row in calls for name in identifiers(text(row))}
    long = [word for words in said for word in words if len(word) >= IDENTIFIER_MIN]
    return frozenset(word for word in long if word.isdigit() and len(word) in lengths)


IDENTIFIER_MIN = 6


def _counts_of(row: JsonObject) -> frozenset[str]:
    """Counts of each text that a call was given, and of all of them together."""
    given = given_of(row)
    found = counts_in(given).union(*(counts_in(text) for text in leaves(decode(given.encode()))))
    return found | {str(len(given)), str(len(given.encode("utf-8", "replace")))}


def _is_unsteady(places: Sequence[int], said: Sequence[Answered]) -> bool:
    """Whether an answer that was asked for more than once did not come again."""
    first, *again = [said[place] for place in places]
    others = [one for one in said if one.asked != first.asked]
    return any(not comes_again(first, one, others) for one in again)


def _is_worked_out(calls: Sequence[JsonObject], by_input: Mapping[str, Sequence[int]]) -> bool:
    """Whether answers hold other identifiers for each input, or its words in another order."""
    asked_once = [calls[places[0]] for places in by_input.values()]
    made = {identifiers(text(row)) - identifiers(str(row.get("asked"))) for row in asked_once}
    if len(made) > 1 and all(made):
        return True
    return sum(any(reorders(text(r), v) for v in values_of(r)) for r in asked_once) > 1


def judge_http(transcript: JsonObject) -> Verdict:
    """Documented operations that answer as documented, and differently for different inputs."""
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
    verdicts = {_one_tool(calls, documented) for calls in by_operation.values()}
    if "varies" in verdicts:
        return Verdict("functional", "results_vary")
    if is_cut(rows) or transcript.get("cut"):
        return Verdict("unfinished", "answers_missing")
    plain = [
        substance(text(c[0]), documented) for c in by_operation.values() if not c[0].get("input")
    ]
    if transcript.get("documented") and "same" not in verdicts and len(set(plain)) > 1:
        return Verdict("functional", "operations_differ")
    if "same" in verdicts and _knows_some(rows):
        return Verdict("unfinished", "inputs_unknown")
    return _no_operation(verdicts)


def _no_operation(verdicts: AbstractSet[str]) -> Verdict:
    """No operation answers as its inputs differ."""
    if not verdicts or "same" in verdicts:
        return Verdict("not_functional", "same_answer")
    if "unknown" in verdicts:
        return Verdict("unfinished", "inputs_unknown")
    return Verdict("not_functional", "made_up" if "unsteady" in verdicts else "nothing_varies")


def _nothing_valid(transcript: JsonObject, rows: Sequence[JsonObject]) -> Verdict:
    if transcript.get("end") == "page":
        return Verdict("not_callable", "web_page")
    if any(row["class"] == "invalid" for row in rows):
        return Verdict("not_functional", "invalid_result")
    if transcript.get("documented") and any(row["class"] == "not_found" for row in rows):
        return Verdict("unfinished", "inputs_unknown")
    control = next((text(row) for row in rows if row["role"] == "unknown_path"), None)
    declared = [r for r in rows if r["class"] == "not_found" and r["role"] != "unknown_path"]
    if control is not None and any(not _repeats(row, control) for row in declared):
        return Verdict("unfinished", "inputs_unknown")  # something is there, that wants to be asked
    return judge_failures(transcript)


def _repeats(row: JsonObject, control: str | None) -> bool:
    """Whether an operation answers as an address does that cannot exist."""
    return control is not None and words_of(text(row)) == words_of(control)


_ENDS: Final[Mapping[str, Verdict]] = {
    "page": Verdict("not_callable", "web_page"),
    "not_http": Verdict("not_callable", "no_web_address"),
    "not_spoken": Verdict("not_functional", "protocol_not_spoken"),
    "grpc": Verdict("unfinished", "grpc_not_asked"),
    "opted_out": Verdict("refuses", "opted_out"),
    "unasked": Verdict("unfinished", "waiting_for_budget"),
}


def judge_payment(transcript: JsonObject) -> Verdict:
    """A demand for payment that a client can pay, and what is given without one.

    What a payment buys stays unseen: who paid is for the ladder to say, by the chain. A service of
    which no demand was heard is judged by what was.
    """
    if "valid" not in transcript:
        return judge_failures(transcript)
    for member, why in (
        ("valid", "challenge_invalid"),
        ("known_asset", "unknown_asset"),
        ("sane", "amount_out_of_proportion"),
        ("payee", "payee_not_controlled"),
    ):
        if not transcript.get(member):
            return Verdict("not_functional", why)
    for member, why in (("steady", "price_moves"), ("as_advertised", "dearer_than_advertised")):
        if transcript.get(member) is False:
            return Verdict("not_functional", why)
    given = judge_http(transcript) if asked(transcript) else None
    if given is not None and given.state == "functional":
        return Verdict("functional", "free_operations")
    sold = _judge_settlements(transcript.get("settled"))
    if sold.state != "functional" and given is not None and given.why == "answers_missing":
        return given
    return sold


def _judge_settlements(fact: JsonValue) -> Verdict:
    """Whether enough independent payers settled; what chains did not say is neither good nor bad.

    Without the fact nobody looked.
    """
    seen: JsonObject = fact if is_object(fact) else {}
    needs = seen.get("needs")
    wanted: JsonObject = needs if is_object(needs) else {}
    if wanted and all(_number(seen.get(name)) >= _number(least) for name, least in wanted.items()):
        return Verdict("functional", "settled")
    if seen.get("unread"):
        return Verdict("unfinished", "settlements_unread")
    return Verdict("closed", "payment_needed")


def _number(value: JsonValue) -> Decimal:
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return Decimal(0)
    return found if found.is_finite() else Decimal(0)


_RULES: Final = {
    "a2a": judge_conversation,
    "mcp": judge_tools,
    "http": judge_http,
    "x402": judge_payment,
}
