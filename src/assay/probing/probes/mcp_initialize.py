"""Can a stock client connect to the MCP server? Source: MCP specification, lifecycle."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import AgentCallFailed, Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import failure_class, first


class McpInitialize:
    """The official client connects and agrees on a protocol version."""

    name: ClassVar[str] = "mcp_initialize"
    family: ClassVar[str] = "mcp"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "mcp")
        if service is None:
            return None
        try:
            async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
                return {"answer": "ok", "version": server.protocol_version}
        except AgentCallFailed as error:
            return {"answer": failure_class(error), "version": None}

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer == "ok":
            return Finding("pass", "A stock MCP client can connect.")
        if answer in {"closed", "busy"}:
            return Finding("not_tested", "The MCP server wants credentials, payment or time first.")
        return Finding("fail", "A stock MCP client cannot connect.")


PROBE: Final[Probe] = McpInitialize()
