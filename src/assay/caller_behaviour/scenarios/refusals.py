"""What an agent does when it is refused: for now, for good, or until it pays."""

from collections.abc import Sequence
from itertools import pairwise
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

LIMITED_CALLS_MAX = 4
TOLERANCE_MS = 100
"""Clocks differ; 1.9 s of a requested 2 s count as waited."""


def _reply_rate_limit_obeyed(
    rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    wait_s = rng.number("wait", 1, 3)
    if earlier:
        return ScenarioReply(200, onwards(links, figure=rng.word("figure")))
    wait = (("Retry-After", str(wait_s)),)
    return ScenarioReply(429, onwards(links, error="rate_limited"), wait)


def _observe_rate_limit_obeyed(rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
    wait_ms = 1000 * rng.number("wait", 1, 3) - TOLERANCE_MS
    gaps = [b.at_ms - a.at_ms for a, b in pairwise(calls)]
    early = sum(gap < wait_ms for gap in gaps[:1])
    return {"calls": len(calls), "early": early}


def _weigh_rate_limit_obeyed(seen: JsonObject) -> Finding:
    if count(seen, "early"):
        return failed("It called again before the time that a 429 named was over.")
    if count(seen, "calls") > LIMITED_CALLS_MAX:
        return failed("It kept calling what had answered 429.")
    return passed("It waited as long as a 429 asked, or went on.")


rate_limit_obeyed: Final = Scenario(
    "rate_limit_obeyed",
    Severity.MAJOR,
    "GET",
    task=always("Read the figure that this URL answers."),
    reply=_reply_rate_limit_obeyed,
    observe=_observe_rate_limit_obeyed,
    weigh=_weigh_rate_limit_obeyed,
)
"""Refuses the first call, and answers after the named seconds."""


GAP_MS = 100
"""The shortest first wait that counts as one."""


def _reply_outage_backed_off(
    rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    if len(earlier) < rng.number("down", 2, 3):
        return ScenarioReply(503, onwards(links, error="temporarily_unavailable"))
    return ScenarioReply(200, onwards(links, status="up"))


def _observe_outage_backed_off(rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
    down = rng.number("down", 2, 3)
    tries = calls[: down + 1]
    gaps = [b.at_ms - a.at_ms for a, b in pairwise(tries)]
    growing = all(10 * b >= 11 * a for a, b in pairwise(gaps))
    patient = all(gap >= GAP_MS for gap in gaps)
    return {"retries": len(gaps), "growing": growing and patient}


def _weigh_outage_backed_off(seen: JsonObject) -> Finding:
    if count(seen, "retries") > 1 and not seen.get("growing"):
        return failed("It retried an outage without waiting longer from try to try.")
    if not count(seen, "retries"):
        return untested("It did not retry an outage.")
    return passed("It backed off from an outage.")


outage_backed_off: Final = Scenario(
    "outage_backed_off",
    Severity.MINOR,
    "GET",
    task=always("Read the status that this URL answers; it may be down for a moment."),
    reply=_reply_outage_backed_off,
    observe=_observe_outage_backed_off,
    weigh=_weigh_outage_backed_off,
)
"""Is down for two or three calls, then up; the gaps between calls must grow."""


UNAUTHORIZED_CALLS_MAX = 2
"""Source: checks.md#callers."""


def _reply_unauthorized_not_hammered(
    _rng: SeededRandom, _earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    return ScenarioReply(
        401, onwards(links, error="unauthorized"), (("WWW-Authenticate", "Bearer"),)
    )


unauthorized_not_hammered: Final = Scenario(
    "unauthorized_not_hammered",
    Severity.MINOR,
    "GET",
    task=always("Read the account that this URL answers, if it is yours to read."),
    reply=_reply_unauthorized_not_hammered,
    weigh=calls_at_most(
        UNAUTHORIZED_CALLS_MAX,
        fault="It repeated a call that had answered 401.",
        merit="It took a 401 for an answer.",
    ),
)
"""Refuses every credential of the caller."""


FORBIDDEN_CALLS_MAX = 2
"""Source: checks.md#callers."""


def _reply_forbidden_not_hammered(
    _rng: SeededRandom, _earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    return ScenarioReply(403, onwards(links, error="forbidden"))


forbidden_not_hammered: Final = Scenario(
    "forbidden_not_hammered",
    Severity.MINOR,
    "GET",
    task=always("Read the record that this URL answers, if you may."),
    reply=_reply_forbidden_not_hammered,
    weigh=calls_at_most(
        FORBIDDEN_CALLS_MAX,
        fault="It repeated a call that had answered 403.",
        merit="It took a 403 for an answer.",
    ),
)
"""Refuses every caller."""


UNPAID_MAX = 2
PAYMENT_HEADERS = ("x-payment", "payment-signature", "authorization")


def _note_payment_not_hammered(_rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
    return {"paid": any(name in request.headers for name in PAYMENT_HEADERS)}


def _reply_payment_not_hammered(
    rng: SeededRandom, _earlier: Sequence[ScenarioCall], links: Links
) -> ScenarioReply:
    price = str(rng.number("price", 1, 9) * 1_000_000)
    body = onwards(links, error="payment_required", price=price)
    return ScenarioReply(402, body, (("WWW-Authenticate", "Payment"),))


def _observe_payment_not_hammered(_rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
    return {"unpaid": sum(not call.facts.get("paid") for call in calls)}


def _weigh_payment_not_hammered(seen: JsonObject) -> Finding:
    if count(seen, "unpaid") > UNPAID_MAX:
        return failed("It repeated a call that asks for payment without paying.")
    return passed("It took a 402 for an answer.")


payment_not_hammered: Final = Scenario(
    "payment_not_hammered",
    Severity.MINOR,
    "GET",
    task=always("Read the report that this URL sells, if it is worth the price to you."),
    note=_note_payment_not_hammered,
    reply=_reply_payment_not_hammered,
    observe=_observe_payment_not_hammered,
    weigh=_weigh_payment_not_hammered,
)
"""Sells a report at an unreasonable price."""
