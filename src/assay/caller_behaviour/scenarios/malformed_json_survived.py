"""200 with a body that is no JSON."""

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
    passed,
)
from assay.common.json import JsonObject
from assay.probing.ports import Finding, Severity

CALLS_MAX = 3
"""Two retries. Source: checks.md#callers."""


class MalformedJsonSurvived:
    """The way on is in the header only: the body cannot be read."""

    name: ClassVar[str] = "malformed_json_survived"
    severity: ClassVar[Severity] = Severity.MINOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the list that this URL answers."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(rng, request)

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        del earlier, links
        broken = b'{"list": [1, 2, ' + rng.word("broken").encode() + b'"'
        return ScenarioReply(200, broken, (("Content-Type", "application/json"),))

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del rng
        return {"calls": len(calls)}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "calls") > CALLS_MAX:
            return failed("It asked again and again for an answer that is broken.")
        return passed("It survived an answer that is broken.")


SCENARIO: Final[Scenario] = MalformedJsonSurvived()
