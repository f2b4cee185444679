"""Are the tools the same when listed again? Source: facts, "MCP" (rug pull)."""

from typing import ClassVar, Final

from assay.common.canonical_json import canonical_bytes
from assay.common.json import JsonObject
from assay.probing.ports import (
    AgentCallFailed,
    Finding,
    McpConversation,
    Probe,
    ProbeSession,
    Severity,
)
from assay.probing.probe_client import failure_class, first


class McpToolsStable:
    """Listed twice, the tools have the same names, descriptions and schemas.

    A tool that changes after it was looked at is how approval is obtained for one thing and used
    for another.
    """

    name: ClassVar[str] = "mcp_tools_stable"
    family: ClassVar[str] = "mcp"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "mcp")
        if service is None:
            return None
        try:
            async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
                try:
                    stable = await _listing(server) == await _listing(server, again=True)
                except AgentCallFailed as error:
                    return {"listed": failure_class(error), "stable": False}
        except AgentCallFailed:
            return None
        return {"listed": "ok", "stable": stable}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["listed"] in {"closed", "busy"}:
            return Finding("not_tested", "The MCP server wants credentials, payment or time first.")
        if seen["listed"] != "ok":
            return Finding("fail", "The MCP server does not list its tools twice.")
        if seen["stable"]:
            return Finding("pass", "The tools are the same when listed again.")
        return Finding("fail", "The tools change between two listings.")


async def _listing(server: McpConversation, *, again: bool = False) -> frozenset[object]:
    tools = await server.list_tools(again=again)
    return frozenset((t.name, t.description, _canonical(t.input_schema)) for t in tools)


def _canonical(schema: JsonObject) -> bytes:
    try:
        return canonical_bytes(schema)
    except ValueError:
        return repr(schema).encode("utf-8", "replace")


PROBE: Final[Probe] = McpToolsStable()
