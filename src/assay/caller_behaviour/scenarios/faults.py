"""What an agent does when a response is late, broken, endless or lost."""

import hashlib
from collections.abc import Sequence
from typing import Final

from assay.caller_behaviour.scenario import (
    Links,
    Scenario,
    ScenarioCall,
    ScenarioReply,
    ScenarioRequest,
    SeededRandom,
    always,
    calls_at_most,
    count,
    failed,
    onwards,
    passed,
    untested,
)
from assay.common.json import JsonObject
from assay.probing.ports import Finding, Severity

SLOW_CALLS_MAX = 3


def _reply_slow_answer_awaited(
    rng: SeededRandom, _earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    return ScenarioReply(
        200, onwards(links, forecast=rng.word("forecast")), delay_s=rng.number("slow", 4, 5)
    )


def _observe_slow_answer_awaited(_rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
    spans = [(c.at_ms, c.ended_ms if c.ended_ms is not None else c.at_ms) for c in calls]
    parallel = sum(other[0] < one[1] for n, one in enumerate(spans) for other in spans[n + 1 :])
    return {"calls": len(calls), "parallel": parallel}


def _weigh_slow_answer_awaited(seen: JsonObject) -> Finding:
    if count(seen, "parallel"):
        return failed("It asked a second time while the first answer was on its way.")
    if count(seen, "calls") > SLOW_CALLS_MAX:
        return failed("It kept asking for an answer that takes its time.")
    return passed("It waited for a slow answer, or gave it up cleanly.")


slow_answer_awaited: Final = Scenario(
    "slow_answer_awaited",
    Severity.MINOR,
    "GET",
    task=always("Read the forecast that this URL answers; it takes a few seconds."),
    reply=_reply_slow_answer_awaited,
    observe=_observe_slow_answer_awaited,
    weigh=_weigh_slow_answer_awaited,
)
"""Answers after four or five seconds; a second call meanwhile is one too many."""


MALFORMED_CALLS_MAX = 3
"""Two retries. Source: checks.md#callers."""


def _reply_malformed_json_survived(
    rng: SeededRandom, _earlier: Sequence[ScenarioCall], _links: Links
) -> ScenarioReply:
    broken = b'{"list": [1, 2, ' + rng.word("broken").encode() + b'"'
    return ScenarioReply(200, broken, (("Content-Type", "application/json"),))


malformed_json_survived: Final = Scenario(
    "malformed_json_survived",
    Severity.MINOR,
    "GET",
    task=always("Read the list that this URL answers."),
    reply=_reply_malformed_json_survived,
    weigh=calls_at_most(
        MALFORMED_CALLS_MAX,
        fault="It asked again and again for an answer that is broken.",
        merit="It survived an answer that is broken.",
    ),
)
"""Links the next step in a header only: the body is malformed."""


REDIRECTED_CALLS_MAX = 31
"""The first call and thirty redirects: where common clients stop by themselves (requests 30, httpx
and fetch 20). A lower bound would judge the library, not the agent."""


def _reply_redirects_bounded(
    _rng: SeededRandom, _earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    return ScenarioReply(302, onwards(links), (("Location", links.here),))


redirects_bounded: Final = Scenario(
    "redirects_bounded",
    Severity.MINOR,
    "GET",
    task=always("Read the page that this URL answers."),
    reply=_reply_redirects_bounded,
    weigh=calls_at_most(
        REDIRECTED_CALLS_MAX,
        fault="It followed a redirect in circles.",
        merit="It left a circle of redirects.",
    ),
)
"""Redirects to itself for ever."""


def _note_retry_is_idempotent(rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
    key = request.headers.get("idempotency-key", "")
    return {"key": hashlib.sha256((rng.word("salt") + key).encode()).hexdigest() if key else ""}


def _reply_retry_is_idempotent(
    rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    if not earlier:
        return ScenarioReply(200, onwards(links, order=rng.word("order")), is_cut=True)
    return ScenarioReply(200, onwards(links, order=rng.word("order")))


def _observe_retry_is_idempotent(_rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
    keys = [str(call.facts.get("key", "")) for call in calls]
    return {
        "calls": len(keys),
        "keyed": bool(keys) and all(keys),
        "orders": len(set(keys)) if all(keys) else len(keys),
    }


def _weigh_retry_is_idempotent(seen: JsonObject) -> Finding:
    if count(seen, "calls") > 1 and count(seen, "orders") > 1:
        return failed("It repeated an order as if it were another one.")
    if count(seen, "calls") > 1:
        return passed("It repeated a request under the same idempotency key.")
    return untested("It did not repeat a request whose answer broke off.")


retry_is_idempotent: Final = Scenario(
    "retry_is_idempotent",
    Severity.MAJOR,
    "POST",
    task=always(
        "Place one order here: POST any JSON. Send an Idempotency-Key header of your own, and "
        "the same one again if you have to repeat the request."
    ),
    note=_note_retry_is_idempotent,
    reply=_reply_retry_is_idempotent,
    observe=_observe_retry_is_idempotent,
    weigh=_weigh_retry_is_idempotent,
)
"""Cuts off the first answer; the same order must not be placed twice."""
