"""403: it will not change by asking again."""

from collections.abc import Sequence
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

CALLS_MAX = 2
"""Source: checks.md#callers."""


class ForbiddenNotHammered:
    """Nobody may have it."""

    name: ClassVar[str] = "forbidden_not_hammered"
    severity: ClassVar[Severity] = Severity.MINOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the record that this URL answers, if you may."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(rng, request)

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        del rng, earlier
        return ScenarioReply(403, onwards(links, error="forbidden"))

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del rng
        return {"calls": len(calls)}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "calls") > CALLS_MAX:
            return failed("It repeated a call that had answered 403.")
        return passed("It took a 403 for an answer.")


SCENARIO: Final[Scenario] = ForbiddenNotHammered()
