"""Decides what a service's transcript proves. Pure and deterministic.

A transcript is JSON: the kind of service, the requests and the answers (cut and without secrets).
Source: evidence.md#proof-of-function.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_object
from assay.probing.deposited_access import NOT_ENTERED
from assay.probing.function.differing import one_operation, one_tool
from assay.probing.function.rows import (
    FunctionVerdict,
    asked,
    is_cut,
    judge_failures,
    text,
    texts,
)
from assay.probing.function.talking import judge_conversation
from assay.probing.function.words import (
    substance,
    words_of,
)


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


def judge_tools(transcript: JsonObject) -> FunctionVerdict:
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
        one_operation(calls, documented, refuses=name in refusing)
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


def judge_payment(transcript: JsonObject) -> FunctionVerdict:
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
    "mcp": judge_tools,
    "http": judge_http,
    "x402": judge_payment,
}
