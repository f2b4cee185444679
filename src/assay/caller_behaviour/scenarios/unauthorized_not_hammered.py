"""401: stop, or authenticate; not the same call over and over."""

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


class UnauthorizedNotHammered:
    """Nothing that the caller has opens it."""

    name: ClassVar[str] = "unauthorized_not_hammered"
    severity: ClassVar[Severity] = Severity.MINOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the account that this URL answers, if it is yours to read."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(rng, request)

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        del rng, earlier
        return ScenarioReply(
            401, onwards(links, error="unauthorized"), (("WWW-Authenticate", "Bearer"),)
        )

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del rng
        return {"calls": len(calls)}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "calls") > CALLS_MAX:
            return failed("It repeated a call that had answered 401.")
        return passed("It took a 401 for an answer.")


SCENARIO: Final[Scenario] = UnauthorizedNotHammered()
