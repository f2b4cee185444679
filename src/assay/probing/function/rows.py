"""Helpers that read transcripts for the rules of every kind of service. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from assay.common.json import JsonObject, JsonValue, is_array, is_object

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
