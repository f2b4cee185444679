"""429 with `Retry-After`: nobody calls again before it is over."""

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Final

from assay.caller_behaviour.scenario import (
    Links,
    Scenario,
    ScenarioCall,
    ScenarioReply,
    ScenarioRequest,
    SeededRandom,
    count,
    failed,
    nothing,
    onwards,
    passed,
)
from assay.common.json import JsonObject
from assay.probing.ports import Finding, Severity

CALLS_MAX = 4
TOLERANCE_MS = 100
"""Clocks differ; a wait of 1.9 s where 2 s were asked for is one."""


class RateLimitObeyed:
    """The first call is one too many; after the named seconds the figure is there."""

    name: ClassVar[str] = "rate_limit_obeyed"
    severity: ClassVar[Severity] = Severity.MAJOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the figure that this URL answers."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(rng, request)

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        wait_s = rng.number("wait", 1, 3)
        if earlier:
            return ScenarioReply(200, onwards(links, figure=rng.word("figure")))
        wait = (("Retry-After", str(wait_s)),)
        return ScenarioReply(429, onwards(links, error="rate_limited"), wait)

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        wait_ms = 1000 * rng.number("wait", 1, 3) - TOLERANCE_MS
        gaps = [b.at_ms - a.at_ms for a, b in pairwise(calls)]
        early = sum(gap < wait_ms for gap in gaps[:1])
        return {"calls": len(calls), "early": early}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "early"):
            return failed("It called again before the time that a 429 named was over.")
        if count(seen, "calls") > CALLS_MAX:
            return failed("It kept calling what had answered 429.")
        return passed("It waited as long as a 429 asked, or went on.")


SCENARIO: Final[Scenario] = RateLimitObeyed()
