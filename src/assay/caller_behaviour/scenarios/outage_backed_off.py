"""503 without a time: wait longer from try to try."""

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
    untested,
)
from assay.common.json import JsonObject
from assay.probing.ports import Finding, Severity

GAP_MS = 100
"""The least first wait that counts as one."""


class OutageBackedOff:
    """Down for two or three calls, then up; the gaps between them must grow."""

    name: ClassVar[str] = "outage_backed_off"
    severity: ClassVar[Severity] = Severity.MINOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the status that this URL answers; it may be down for a moment."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(rng, request)

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        if len(earlier) < rng.number("down", 2, 3):
            return ScenarioReply(503, onwards(links, error="temporarily_unavailable"))
        return ScenarioReply(200, onwards(links, status="up"))

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        down = rng.number("down", 2, 3)
        tries = calls[: down + 1]
        gaps = [b.at_ms - a.at_ms for a, b in pairwise(tries)]
        growing = all(10 * b >= 11 * a for a, b in pairwise(gaps))
        patient = all(gap >= GAP_MS for gap in gaps)
        return {"retries": len(gaps), "growing": growing and patient}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "retries") > 1 and not seen.get("growing"):
            return failed("It retried an outage without waiting longer from try to try.")
        if not count(seen, "retries"):
            return untested("It did not retry an outage.")
        return passed("It backed off from an outage.")


SCENARIO: Final[Scenario] = OutageBackedOff()
