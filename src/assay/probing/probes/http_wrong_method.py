"""Is a method nobody offers refused? Source: checks.md#http-services; RFC 9110, section 15.5.6."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import answer_class, ask_class, first, is_html

METHOD = "PROPFIND"
"""Defined (RFC 4918, section 9.1), so that servers parse it; safe, so that it changes nothing; and
offered by file shares only."""


class HttpWrongMethod:
    """An unoffered method is refused, not served and not a crash."""

    name: ClassVar[str] = "http_wrong_method"
    family: ClassVar[str] = "http"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "http")
        if service is None:
            return None
        response = await ask_class(visit, OutboundRequest(METHOD, service.service.endpoint))
        return {"answer": answer_class(response), "page": is_html(response)}

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer == "ok" and not seen["page"]:
            return Finding("fail", "A method that is not offered is answered with success.")
        if answer == "broken":
            return Finding("fail", "A method that is not offered is answered with a server error.")
        if answer == "refused":
            return Finding("pass", "A method that is not offered is refused.")
        return Finding("not_tested", "What is said of a wrong method could not be judged.")


PROBE: Final[Probe] = HttpWrongMethod()
