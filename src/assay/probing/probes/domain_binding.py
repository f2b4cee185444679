"""Do the domains of the services acknowledge the agent? Source: EIP-8004, domain verification."""

from ipaddress import ip_address
from typing import ClassVar, Final
from urllib.parse import urljoin

from assay.common.json import JsonObject
from assay.net.egress.ports import EgressResponse
from assay.probing.consent import WELL_KNOWN, binding_request, lists_agent
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import ask, host_of

DOMAINS_MAX = 3


class DomainBinding:
    """The domain's own file lists this agent, or the registration file is served from it.

    Optional in the EIP, so a domain without the file is not tested. A domain that lists agents,
    and not this one, contradicts the registration. Literal addresses have no domain to bind.
    """

    name: ClassVar[str] = "domain_binding"
    family: ClassVar[str] = "domain"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        agent = visit.subject.agent
        origins = {urljoin(v.service.endpoint, WELL_KNOWN) for v in visit.services}
        domains = sorted(url for url in origins if _is_name(host_of(url)))[:DOMAINS_MAX]
        if agent is None or not domains:
            return None
        home = host_of(agent.token_uri)
        says = {url: await _says(visit, url) for url in domains if host_of(url) != home}
        return {
            "bound": len(domains) - len(says) + sum(v is True for v in says.values()),
            "contradicted": sum(v is False for v in says.values()),
        }

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["contradicted"]:
            return Finding("fail", "A service's domain lists its agents, and this is none of them.")
        if seen["bound"]:
            return Finding("pass", "A service's domain acknowledges this agent.")
        return Finding("not_tested", "No service's domain says which agents it belongs to.")


async def _says(visit: ProbeSession, url: str) -> bool | None:
    """Whether the domain's file lists this agent; None when there is no such file."""
    response = await ask(visit, binding_request(url))
    return lists_agent(response, visit.subject) if isinstance(response, EgressResponse) else None


def _is_name(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host not in {"", "localhost"}
    return False


PROBE: Final[Probe] = DomainBinding()
