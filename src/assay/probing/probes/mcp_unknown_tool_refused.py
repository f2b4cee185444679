"""Is a tool that does not exist refused? Source: MCP specification, tools (error handling)."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import AgentCallFailed, Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import canary, failure_class, first


class McpUnknownToolRefused:
    """Calling it gives a protocol error, or a result marked as an error."""

    name: ClassVar[str] = "mcp_unknown_tool_refused"
    family: ClassVar[str] = "mcp"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "mcp")
        if service is None:
            return None
        try:
            async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
                try:
                    result = await server.call_tool(canary(visit, "unknown tool"), {})
                except AgentCallFailed as error:
                    return {"answer": failure_class(error)}
        except AgentCallFailed:
            return None
        return {"answer": "error" if result.get("isError") is True else "ok"}

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer == "error":
            return Finding("pass", "A tool that does not exist is refused.")
        if answer in {"closed", "busy"}:
            return Finding("not_tested", "The MCP server wants credentials, payment or time first.")
        if answer == "ok":
            return Finding("fail", "A tool that does not exist is answered with success.")
        return Finding("fail", "Calling a tool that does not exist gets no valid answer.")


PROBE: Final[Probe] = McpUnknownToolRefused()
