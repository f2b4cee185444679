"""Does every declared service answer? Source: checks.md#reachability."""

from typing import ClassVar, Final

from assay.common.json import JsonObject, is_array, is_object
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import (
    AgentCallFailed,
    Finding,
    Probe,
    ProbeSession,
    Severity,
    VisitedService,
)
from assay.probing.probe_client import answer_class, ask, failure_class
from assay.probing.session import VisitHttp

ATTEMPTS = 2
"""One lost packet is not an outage."""

_SILENT = frozenset({"timeout", "unreachable", "cut", "broken", "busy"})


class Reachable:
    """Something of the declared kind answers at each endpoint, be it a demand for credentials."""

    name: ClassVar[str] = "reachable"
    family: ClassVar[str] = "reachability"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        if not visit.services:
            return None
        return {
            "services": [
                {"kind": service.kind, "answers": await _answers(visit, service)}
                for service in visit.services
            ]
        }

    def weigh(self, seen: JsonObject) -> Finding:
        rows = seen["services"]
        services = [row for row in rows if is_object(row)] if is_array(rows) else []
        silent = sorted({str(row["kind"]) for row in services if not row["answers"]})
        if silent:
            return Finding("fail", f"A declared service does not answer: {', '.join(silent)}.")
        return Finding("pass", "Every declared service answers.")


async def _answers(visit: ProbeSession, visited: VisitedService) -> bool:
    url = visited.service.endpoint
    for attempt in range(ATTEMPTS):
        if visited.kind == "http":
            headers = VisitHttp.FRESH if attempt else {}
            response = answer_class(await ask(visit, OutboundRequest("GET", url, headers)))
        else:
            response = await _dialled(visit, visited)
        if response not in _SILENT:
            return True
    return False


async def _dialled(visit: ProbeSession, visited: VisitedService) -> str:
    dial = visit.dialers.mcp if visited.kind == "mcp" else visit.dialers.a2a
    try:
        async with dial(visited.service.endpoint, visit.http):
            return "ok"
    except AgentCallFailed as error:
        return failure_class(error)


PROBE: Final[Probe] = Reachable()
