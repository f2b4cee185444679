"""Does the same call cost the same a moment later? Source: facts, "x402 / payment"."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.session import VisitHttp
from assay.probing.x402_reader import asked


class X402PriceStable:
    """Price and payee are those of the call before."""

    name: ClassVar[str] = "x402_price_stable"
    family: ClassVar[str] = "payment"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        before = await asked(visit)
        if before is None or not before.is_valid:
            return None
        after = await asked(visit, VisitHttp.FRESH)
        return {"stable": after is not None and after.offers == before.offers}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["stable"]:
            return Finding("pass", "The same call costs the same a moment later.")
        return Finding("fail", "Price or payee change from one call to the next.")


PROBE: Final[Probe] = X402PriceStable()
