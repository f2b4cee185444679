"""Is there a registration file, and can it be read? Source: EIP-8004, "Agent URI"."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity


class RegistrationReadable:
    """The file behind the agent's URI was fetched and parses."""

    name: ClassVar[str] = "registration_readable"
    family: ClassVar[str] = "registration"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        agent = visit.subject.agent
        return None if agent is None else {"readable": agent.registration is not None}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["readable"]:
            return Finding("pass", "The registration file can be read.")
        return Finding("fail", "The registration file cannot be fetched or is not JSON.")


PROBE: Final[Probe] = RegistrationReadable()
