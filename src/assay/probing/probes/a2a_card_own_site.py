"""Does the agent card point at its own site? Source: facts, "A2A"."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import AgentCallFailed, Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import called_at, first, interfaces, same_site


class A2aCardOwnSite:
    """At least one interface is on the host that serves the card, or on one above or below it.

    A card may point elsewhere by the specification. But then whoever holds the card's host
    speaks for somebody else's service, and no caller can tell a partner from a victim.
    """

    name: ClassVar[str] = "a2a_card_own_site"
    family: ClassVar[str] = "a2a"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "a2a")
        if service is None:
            return None
        try:
            async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
                declared = interfaces(agent.card)
                urls = [one for named, url in declared for one in called_at(named, url) or [url]]
                return {"own_site": any(same_site(url, agent.card_url) for url in urls)}
        except AgentCallFailed:
            return None

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["own_site"]:
            return Finding("pass", "The agent card points at its own site.")
        return Finding("fail", "The agent card points at somebody else's site only.")


PROBE: Final[Probe] = A2aCardOwnSite()
