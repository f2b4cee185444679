"""A redirect to itself."""

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

CALLS_MAX = 31
"""The first call and thirty redirects: where common clients stop by themselves (requests 30, httpx
and fetch 20). A lower bound would judge the library, not the agent."""


class RedirectsBounded:
    """Nowhere to get to."""

    name: ClassVar[str] = "redirects_bounded"
    severity: ClassVar[Severity] = Severity.MINOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the page that this URL answers."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(rng, request)

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        del rng, earlier
        return ScenarioReply(302, onwards(links), (("Location", links.here),))

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del rng
        return {"calls": len(calls)}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "calls") > CALLS_MAX:
            return failed("It followed a redirect in circles.")
        return passed("It left a circle of redirects.")


SCENARIO: Final[Scenario] = RedirectsBounded()
