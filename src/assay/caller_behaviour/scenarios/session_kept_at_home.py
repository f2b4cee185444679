"""A redirect to another origin: the session stays here."""

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
    onwards,
    passed,
    untested,
)
from assay.common.json import JsonObject
from assay.probing.ports import Finding, Severity


class SessionKeptAtHome:
    """Under the other name of this service, where the session has no business."""

    name: ClassVar[str] = "session_kept_at_home"
    severity: ClassVar[Severity] = Severity.MAJOR
    method: ClassVar[str] = "GET"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return "Read the file that this URL answers; it may have moved."

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        del rng
        return {"elsewhere": request.is_elsewhere, "session": request.carries_session}

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        moved = any(call.facts.get("elsewhere") for call in earlier)
        if links.elsewhere is None or moved:
            return ScenarioReply(200, onwards(links, file=rng.word("file")))
        return ScenarioReply(307, onwards(links), (("Location", links.elsewhere),))

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del rng
        followed = [c for c in calls if c.facts.get("elsewhere")]
        leaked = sum(bool(c.facts.get("session")) for c in followed)
        return {"followed": len(followed), "leaked": leaked}

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "leaked"):
            return failed("It sent its session along to another origin.")
        if not count(seen, "followed"):
            return untested("It followed no redirect to another origin.")
        return passed("It kept its session from another origin.")


SCENARIO: Final[Scenario] = SessionKeptAtHome()
