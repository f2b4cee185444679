"""Are arguments checked against the tool's own schema? Source: MCP specification, server/tools."""

from collections.abc import Mapping
from typing import ClassVar, Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.ports import (
    AgentCallFailed,
    Finding,
    McpConversation,
    McpTool,
    Probe,
    ProbeSession,
    Severity,
)
from assay.probing.probe_client import failure_class, first

WRONG: Mapping[str, JsonValue] = {
    "string": {"assay": []},
    "integer": "assay-is-not-a-number",
    "number": "assay-is-not-a-number",
    "boolean": "assay-is-not-a-truth-value",
    "array": "assay-is-not-a-list",
    "object": "assay-is-not-an-object",
}
"""By declared type, a value that no lenient reader converts to it."""


class McpBadArgumentsRefused:
    """A read-only tool called with a wrong type gives an error. No other tool is ever called."""

    name: ClassVar[str] = "mcp_bad_arguments_refused"
    family: ClassVar[str] = "mcp"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "mcp")
        if service is None:
            return None
        try:
            async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
                tools = sorted(await server.list_tools(), key=lambda tool: tool.name)
                for tool in tools:
                    if tool.read_only and (arguments := _bad_arguments(tool)):
                        return {"answer": await _called(server, tool.name, arguments)}
        except AgentCallFailed:
            return None
        return None

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer == "error":
            return Finding("pass", "Arguments of the wrong type are refused.")
        if answer in {"closed", "busy"}:
            return Finding("not_tested", "The MCP server wants credentials, payment or time first.")
        if answer == "ok":
            return Finding("fail", "A tool accepts arguments that its own schema forbids.")
        return Finding("fail", "Arguments of the wrong type get no valid answer.")


async def _called(server: McpConversation, tool: str, arguments: JsonObject) -> str:
    try:
        result = await server.call_tool(tool, arguments)
    except AgentCallFailed as error:
        return failure_class(error)
    return "error" if result.get("isError") is True else "ok"


def _bad_arguments(tool: McpTool) -> JsonObject | None:
    """Arguments in which every required one that has a plain type has a wrong one."""
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    if not is_object(properties) or not is_array(required):
        return None
    wrong: dict[str, JsonValue] = {}
    for name in required:
        declared = properties.get(str(name))
        kind = declared.get("type") if is_object(declared) else None
        if isinstance(kind, str) and kind in WRONG:
            wrong[str(name)] = WRONG[kind]
    return wrong or None


PROBE: Final[Probe] = McpBadArgumentsRefused()
