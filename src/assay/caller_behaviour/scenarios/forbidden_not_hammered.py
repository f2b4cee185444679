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
"""Source: facts, security 2."""


class ForbiddenNotHammered:
    """Nobody may have it."""

    name: ClassVar[str] = "forbidden_not_hammered"
    severity: ClassVar[Severity] = Severity.MINOR
    method: ClassVar[str] = "GET"

    def task(self, dice: SeededRandom) -> str:
        del dice
        return "Read the record that this URL answers, if you may."

    def note(self, dice: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(dice, request)

    def reply(
        self, dice: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        del dice, earlier
        return ScenarioReply(403, onwards(links, error="forbidden"))

    def observe(self, dice: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del dice
        return {"calls": len(calls)}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "calls") > CALLS_MAX:
            return failed("It repeated a call that had answered 403.")
        return passed("It took a 403 for an answer.")


OBSTACLE: Final[Scenario] = ForbiddenNotHammered()
