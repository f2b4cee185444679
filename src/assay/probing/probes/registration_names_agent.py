"""Does the registration file claim to be this agent's? Source: EIP-8004, `registrations`."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity


class RegistrationNamesAgent:
    """Its `registrations` name this id at this registry.

    A file that names only others belongs to somebody else: anybody can register a copy of it.
    One that names none says nothing: an id is not known before the file is first written. Neither
    does the id 0, which files carry until theirs is known, unless the agent is number 0.
    """

    name: ClassVar[str] = "registration_names_agent"
    family: ClassVar[str] = "registration"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        agent = visit.subject.agent
        if agent is None or agent.registration is None:
            return None
        here = visit.subject.network.agent_registry.lower()
        claims = agent.registration.registrations
        names = any(
            c.agent_id == agent.agent_id and c.agent_registry.lower() == here for c in claims
        )
        others = agent.agent_id == "0" or any(c.agent_id != "0" for c in claims)
        return {"claims": bool(claims) and others, "names_this": names}

    def weigh(self, seen: JsonObject) -> Finding:
        if not seen["claims"]:
            return Finding("not_tested", "The registration file names no registration.")
        if seen["names_this"]:
            return Finding("pass", "The registration file names this agent at this registry.")
        return Finding("fail", "The registration file names other agents and not this one.")


PROBE: Final[Probe] = RegistrationNamesAgent()
