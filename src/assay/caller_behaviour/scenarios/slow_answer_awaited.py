"""An answer that takes five seconds."""

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

CALLS_MAX = 3


class SlowAnswerAwaited:
    """Four or five seconds; a second call meanwhile is one too many."""

    name: ClassVar[str] = "slow_answer_awaited"
    severity: ClassVar[Severity] = Severity.MINOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the forecast that this URL answers; it takes a few seconds."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        return nothing(rng, request)

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        del earlier
        return ScenarioReply(
            200, onwards(links, forecast=rng.word("forecast")), delay_s=rng.number("slow", 4, 5)
        )

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del rng
        spans = [(c.at_ms, c.ended_ms if c.ended_ms is not None else c.at_ms) for c in calls]
        parallel = sum(other[0] < one[1] for n, one in enumerate(spans) for other in spans[n + 1 :])
        return {"calls": len(calls), "parallel": parallel}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "parallel"):
            return failed("It asked a second time while the first answer was on its way.")
        if count(seen, "calls") > CALLS_MAX:
            return failed("It kept asking for an answer that takes its time.")
        return passed("It waited for a slow answer, or gave it up cleanly.")


SCENARIO: Final[Scenario] = SlowAnswerAwaited()
