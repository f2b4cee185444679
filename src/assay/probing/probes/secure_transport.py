"""Are the services reached over TLS? Source: facts, "domain and TLS"."""

from ipaddress import ip_address
from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.address import classify
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import host_of


class SecureTransport:
    """Every declared endpoint is https. Addresses within one's own network are left out."""

    name: ClassVar[str] = "secure_transport"
    family: ClassVar[str] = "domain"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        endpoints = [v.service.endpoint for v in visit.services]
        public = [url for url in endpoints if not _is_inside(host_of(url))]
        if not public:
            return None
        return {"plain": sum(url.lower().startswith("http://") for url in public)}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["plain"]:
            return Finding(
                "fail", "A service is declared without TLS: anybody on the way can alter it."
            )
        return Finding("pass", "Every service is declared with TLS.")


def _is_inside(host: str) -> bool:
    try:
        return classify(ip_address(host)) is not None
    except ValueError:
        return host == "localhost"


PROBE: Final[Probe] = SecureTransport()
