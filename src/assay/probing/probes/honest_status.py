"""Is what does not exist said not to exist?

Source: checks.md#http-services; RFC 9110, section 15.5.5.
"""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import answer_class, ask, first, is_html, unknown_url


class HonestStatus:
    """An unknown path is not answered with success.

    A page for people is let off: single-page sites answer every path with themselves.
    """

    name: ClassVar[str] = "honest_status"
    family: ClassVar[str] = "http"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "http")
        if service is None:
            return None
        response = await ask(
            visit, OutboundRequest("GET", unknown_url(visit, service.service.endpoint))
        )
        return {"answer": answer_class(response), "page": is_html(response)}

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer == "ok" and not seen["page"]:
            return Finding("fail", "A path that does not exist is answered with success.")
        if answer == "broken":
            return Finding("fail", "A path that does not exist is answered with a server error.")
        if answer in {"refused", "redirect"}:
            return Finding("pass", "A path that does not exist is refused.")
        return Finding("not_tested", "What is said of an unknown path could not be judged.")


PROBE: Final[Probe] = HonestStatus()
