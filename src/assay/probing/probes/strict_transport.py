"""Does a domain promise to stay on TLS? Source: RFC 6797; checks.md#domain-and-tls (info)."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import ask


class StrictTransport:
    """`Strict-Transport-Security` on the first https endpoint: good to have, nobody's fault."""

    name: ClassVar[str] = "strict_transport"
    family: ClassVar[str] = "domain"
    severity: ClassVar[Severity] = Severity.INFO

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        urls = [v.service.endpoint for v in visit.services]
        secure = next((url for url in urls if url.lower().startswith("https://")), None)
        response = None if secure is None else await ask(visit, OutboundRequest("GET", secure))
        if not isinstance(response, EgressResponse):
            return None
        return {"promised": response.header("strict-transport-security") is not None}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["promised"]:
            return Finding("pass", "Its domain promises to stay on TLS.")
        return Finding("not_tested", "Its domain does not promise to stay on TLS.")


PROBE: Final[Probe] = StrictTransport()
