"""Does a parameter decide where a caller is sent, or which headers an answer has? CWE-601, -113."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.malformed_requests import SPLIT_HEADER, forwarding_request
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import ask, first, host_of
from assay.probing.session import VisitHttp

_REDIRECTS = range(300, 400)


class NoOpenRedirect:
    """An address in a parameter is redirected to by nobody, and a line break there adds no header.

    One request, which the probes of leaks make as well; it is repeated where it shows a fault.
    """

    name: ClassVar[str] = "no_open_redirect"
    family: ClassVar[str] = "ssrf"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "http")
        if service is None:
            return None
        request = forwarding_request(visit, service.service.endpoint)
        found = _faults(await ask(visit, request))
        if found is None:
            return None
        if found:
            again = OutboundRequest(request.method, request.url, VisitHttp.FRESH)
            found = sorted(set(found) & set(_faults(await ask(visit, again)) or ()))
        return {"redirects": "redirects" in found, "splits": "splits" in found}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["splits"]:
            return Finding("fail", "A line break in a parameter becomes a header of the answer.")
        if seen["redirects"]:
            return Finding("fail", "Callers are redirected to whatever host a parameter names.")
        return Finding("pass", "Parameters decide neither redirects nor headers.")


def _faults(response: EgressResponse | object) -> list[str] | None:
    if not isinstance(response, EgressResponse):
        return None
    target = host_of(response.header("location") or "") if response.status in _REDIRECTS else ""
    redirects = ["redirects"] if target.endswith(".invalid") else []
    return redirects + (["splits"] if response.header(SPLIT_HEADER) is not None else [])


PROBE: Final[Probe] = NoOpenRedirect()
