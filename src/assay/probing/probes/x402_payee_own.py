"""Is the agent itself paid? Source: facts, "x402 / payment"."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.x402_reader import asked


class X402PayeeOwn:
    """The payee is the agent's owner or wallet. Another payee is told, and no fault of its own."""

    name: ClassVar[str] = "x402_payee_own"
    family: ClassVar[str] = "payment"
    severity: ClassVar[Severity] = Severity.INFO

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        found, agent = await asked(visit), visit.subject.agent
        if found is None or not found.is_valid or agent is None:
            return None
        return {"own": all(offer.pay_to in agent.controllers for offer in found.offers)}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["own"]:
            return Finding("pass", "Payments go to the agent's own wallet or its owner's.")
        return Finding("not_tested", "Payments go to an address the registry does not know.")


PROBE: Final[Probe] = X402PayeeOwn()
