"""Parses results that A2A agents deliver to a callback (push notifications), untrusted. Pure.

A delivery is a task of 0.3, or an event of 1.0 (`task`, `statusUpdate`, `artifactUpdate`,
`message`). Source: A2A 0.3, section 9.5; A2A 1.0, section 4.3.3.
"""

import re
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject, is_object
from assay.probing.function.transcript import spoken
from assay.probing.probe_client import decode

BODY_BYTES_MAX: Final = 64 * 1024
"""A longer delivery is ignored."""

TEXT_CHARS_MAX: Final = 1_800
"""Characters kept of a delivery: about as much as a transcript keeps of an answer, and small enough
for a value of the shared state in any escaping."""

TASK_ID_CHARS_MAX: Final = 128

WORKING: Final = frozenset({"submitted", "working", "task_state_submitted", "task_state_working"})
"""States, in lower case, of an unfinished task. Source: A2A 1.0, section 4.1.3."""


@dataclass(frozen=True, slots=True)
class PushedResult:
    """The relevant content of one delivery."""

    task_id: str
    text: str
    is_end: bool
    """Whether the task is finished, as far as it says."""
    is_whole: bool
    """Whether it is the whole task, not a part of it."""


def read_delivery(body: bytes) -> PushedResult | None:
    """Return the task and content of a delivery; None if it is invalid."""
    document = decode(body) if len(body) <= BODY_BYTES_MAX else None
    if not is_object(document):
        return None
    result = document.get("result")
    event = result if is_object(result) else document
    for name in ("task", "statusUpdate", "artifactUpdate", "message"):
        inner = event.get(name)
        if is_object(inner) and "status" not in event:
            return _read(inner, is_message=name == "message")
    return _read(event, is_message=event.get("kind") == "message")


def _read(event: JsonObject, *, is_message: bool) -> PushedResult | None:
    is_whole = "status" in event and isinstance(event.get("id"), str)
    task_id = event.get("id") if is_whole else event.get("taskId")
    if not isinstance(task_id, str) or not 0 < len(task_id) <= TASK_ID_CHARS_MAX:
        return None
    state = _state_of(event)
    text = _plain(spoken(event))[:TEXT_CHARS_MAX]
    is_end = is_message or (state != "" and state not in WORKING)
    return PushedResult(_plain(task_id), text, is_end, is_whole)


def is_working(answer: JsonObject) -> bool:
    """Return whether an answer is an unfinished task."""
    task = answer.get("task")
    return is_object(task) and _state_of(task) in WORKING


def _state_of(task: JsonObject) -> str:
    """Return the state of a task or an event, in lower case; empty if it has none."""
    status = task.get("status")
    state = status.get("state") if is_object(status) else None
    return state.casefold() if isinstance(state, str) else ""


_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def _plain(text: str) -> str:
    """Drop control characters, and lone surrogates from JSON escapes."""
    return _CONTROLS.sub(" ", text).encode("utf-8", "replace").decode("utf-8")
