"""Is a body of the wrong type refused?

Source: checks.md#http-services; RFC 9110, section 15.5.16.
"""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import answer_class, ask_class, canary, first, json_target


class HttpWrongType:
    """Where JSON is documented, a body in no known format is refused and crashes nothing."""

    name: ClassVar[str] = "http_wrong_type"
    family: ClassVar[str] = "http"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "http")
        if service is None:
            return None
        url, documented = await json_target(visit, service.service.endpoint)
        headers = {"content-type": "application/x-assay", "accept": "application/json"}
        body = canary(visit, "wrong type").encode()
        response = await ask_class(visit, OutboundRequest("POST", url, headers, body))
        return {"answer": answer_class(response), "documented": documented}

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer in {"broken", "timeout", "cut"}:
            return Finding("fail", "A body of an unknown type makes it crash or hang.")
        if answer == "ok" and seen["documented"]:
            return Finding("fail", "A body of an unknown type is taken where JSON is documented.")
        if answer == "refused":
            return Finding("pass", "A body of an unknown type is refused.")
        return Finding("not_tested", "What it does with a body of an unknown type is not known.")


PROBE: Final[Probe] = HttpWrongType()
