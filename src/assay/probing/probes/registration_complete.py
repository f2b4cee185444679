"""Has the registration file what the EIP requires? Source: EIP-8004, registration-v1."""

from collections.abc import Iterable
from typing import ClassVar, Final

from assay.common.json import JsonObject, is_array
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import host_of
from assay.registries.model import RegistrationFile
from assay.registries.registration import TYPE

_CALLED = frozenset({"a2a", "mcp", "web", "api", "http", "https", "openapi", "rest"})


class RegistrationComplete:
    """It is plain JSON with type, name and description, and its services have addresses."""

    name: ClassVar[str] = "registration_complete"
    family: ClassVar[str] = "registration"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        agent = visit.subject.agent
        if agent is None or agent.registration is None:
            return None
        return {"wrong": sorted(_wrong(agent.registration))}

    def weigh(self, seen: JsonObject) -> Finding:
        wrong = seen["wrong"]
        if is_array(wrong) and wrong:
            listed = ", ".join(str(field) for field in wrong)
            return Finding("fail", f"The registration file lacks or misstates: {listed}.")
        return Finding("pass", "The registration file has every required field.")


def _wrong(registration: RegistrationFile) -> Iterable[str]:
    if any(problem.where == "file" for problem in registration.problems):
        yield "format"
    if registration.raw.get("type") != TYPE:
        yield "type"
    if not registration.name.strip():
        yield "name"
    if not registration.description.strip():
        yield "description"
    called = [s for s in registration.services if s.name.strip().lower() in _CALLED]
    if not all(_is_web(s.endpoint) for s in called):
        yield "services"


def _is_web(endpoint: str) -> bool:
    return endpoint.lower().startswith(("http://", "https://")) and bool(host_of(endpoint))


PROBE: Final[Probe] = RegistrationComplete()
