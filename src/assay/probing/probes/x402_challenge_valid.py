"""Is a demand for payment one that a client can pay? Source: x402 specification, 1 and 2."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.x402_reader import as_json, asked


class X402ChallengeValid:
    """Every offer names scheme, network, asset, amount and payee, the same in both versions."""

    name: ClassVar[str] = "x402_challenge_valid"
    family: ClassVar[str] = "payment"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        found = await asked(visit)
        return None if found is None else as_json(found)

    def weigh(self, seen: JsonObject) -> Finding:
        if not seen["valid"]:
            return Finding("fail", "Its demand for payment lacks what a client needs to pay.")
        if not seen["consistent"]:
            return Finding("fail", "It asks different prices or payees for one and the same call.")
        return Finding("pass", "Its demand for payment is well-formed.")


PROBE: Final[Probe] = X402ChallengeValid()
