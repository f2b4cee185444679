"""Does a service with TLS stay there? Source: checks.md#domain-and-tls (no downgrade)."""

from typing import ClassVar, Final
from urllib.parse import urljoin

from assay.common.json import JsonObject
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import answer_class, ask


class NoDowngrade:
    """No https endpoint sends its callers on to plain http."""

    name: ClassVar[str] = "no_downgrade"
    family: ClassVar[str] = "domain"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        urls = [v.service.endpoint for v in visit.services]
        secure = [url for url in urls if url.lower().startswith("https://")][:3]
        if not secure:
            return None
        response = [(url, await ask(visit, OutboundRequest("GET", url))) for url in secure]
        moved = [
            _target(url, reply) for url, reply in response if isinstance(reply, EgressResponse)
        ]
        answered = sum(
            answer_class(reply) not in {"timeout", "unreachable"} for _, reply in response
        )
        return {"answered": answered, "down": sum(t.startswith("http://") for t in moved)}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["down"]:
            return Finding("fail", "A service with TLS sends its callers on to plain http.")
        if not seen["answered"]:
            return Finding("not_tested", "No service with TLS answered.")
        return Finding("pass", "No service with TLS sends its callers to plain http.")


def _target(url: str, reply: EgressResponse) -> str:
    location = reply.header("location")
    if not location or answer_class(reply) != "redirect":
        return ""
    try:
        return urljoin(url, location).lower()
    except ValueError:  # brackets without an IPv6 address lead nowhere
        return ""


PROBE: Final[Probe] = NoDowngrade()
