"""A connection that breaks after the work was done."""

import hashlib
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


class RetryIsIdempotent:
    """The first answer is cut off; the same order must not be placed twice."""

    name: ClassVar[str] = "retry_is_idempotent"
    severity: ClassVar[Severity] = Severity.MAJOR
    method: ClassVar[str] = "POST"

    def task(self, rng: SeededRandom) -> str:
        del rng
        return (
            "Place one order here: POST any JSON. Send an Idempotency-Key header of your own, and "
            "the same one again if you have to repeat the request."
        )

    def note(self, rng: SeededRandom, request: ScenarioRequest) -> JsonObject:
        key = request.headers.get("idempotency-key", "")
        return {"key": hashlib.sha256((rng.word("salt") + key).encode()).hexdigest() if key else ""}

    def reply(
        self, rng: SeededRandom, earlier: Sequence[ScenarioCall], links: Links
    ) -> ScenarioReply:
        if not earlier:
            return ScenarioReply(200, onwards(links, order=rng.word("order")), is_cut=True)
        return ScenarioReply(200, onwards(links, order=rng.word("order")))

    def observe(self, rng: SeededRandom, calls: Sequence[ScenarioCall]) -> JsonObject:
        del rng
        keys = [str(call.facts.get("key", "")) for call in calls]
        return {
            "calls": len(keys),
            "keyed": bool(keys) and all(keys),
            "orders": len(set(keys)) if all(keys) else len(keys),
        }

    def weigh(self, seen: JsonObject) -> Finding:
        if count(seen, "calls") > 1 and count(seen, "orders") > 1:
            return failed("It repeated an order as if it were another one.")
        if count(seen, "calls") > 1:
            return passed("It repeated a request under the same idempotency key.")
        return untested("It did not repeat a request whose answer broke off.")


SCENARIO: Final[Scenario] = RetryIsIdempotent()
