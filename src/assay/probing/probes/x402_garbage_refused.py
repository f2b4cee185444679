"""Is a payment that is none refused? Source: facts, "x402 / payment"."""

import base64
import json
from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import answer_class, ask, canary, first
from assay.probing.x402_reader import asked


class X402GarbageRefused:
    """A header that only looks like a payment buys nothing, and crashes nothing."""

    name: ClassVar[str] = "x402_garbage_refused"
    family: ClassVar[str] = "payment"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "http")
        if service is None or await asked(visit) is None:
            return None
        payment = {"x402Version": 1, "payload": {"signature": canary(visit, "payment")}}
        sent = base64.b64encode(json.dumps(payment).encode()).decode()
        request = OutboundRequest("GET", service.service.endpoint, {"x-payment": sent})
        return {"answer": answer_class(await ask(visit, request))}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["answer"] == "ok":
            return Finding("fail", "It takes a payment that is none: nobody's payment is checked.")
        if seen["answer"] in {"broken", "timeout", "cut"}:
            return Finding("fail", "A payment that is none makes it crash or hang.")
        if seen["answer"] in {"closed", "refused"}:
            return Finding("pass", "A payment that is none is refused.")
        return Finding("not_tested", "What it does with a bad payment could not be judged.")


PROBE: Final[Probe] = X402GarbageRefused()
