"""Is an address in an argument called by a tool that does not fetch? Source: facts, "SSRF bait"."""

import asyncio
import re
from contextlib import suppress
from typing import ClassVar, Final

from assay.kit.json import JsonObject, JsonValue, is_array, is_object
from assay.trust.asking import first
from assay.trust.ports import AgentCallFailed, Finding, McpTool, Probe, Severity, Visit

WAIT_S = 0.3
"""How long a fetch may take to reach us after the tool has answered."""

_ADDRESS = re.compile(
    r"(?:^|_)(?:url|uri|link|href|image|avatar|callback|webhook)(?:_|$)", re.IGNORECASE
)
"""Names of arguments that are addresses."""

_FETCHES = re.compile(
    r"fetch|download|retriev|brows|crawl|scrap|visit|open|load|request|read|get|navigat|search|"
    r"preview|render|screenshot|ping|monitor|check",
    re.IGNORECASE,
)
"""What a tool that goes to an address says of itself, in its name or description. Generous: whoever
says so may fetch."""

_FILLERS: dict[str, JsonValue] = {"string": "assay", "integer": 1, "number": 1, "boolean": False}


class SsrfBait:
    """A read-only tool that says nothing of fetching leaves the address in its argument alone."""

    name: ClassVar[str] = "ssrf_bait"
    family: ClassVar[str] = "ssrf"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: Visit) -> JsonObject | None:
        service, bait = first(visit, "mcp"), visit.bait
        if service is None or bait is None:
            return None
        try:
            async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
                tools = sorted(await server.list_tools(), key=lambda tool: tool.name)
                found = next(((t, a) for t in tools if (a := _arguments(t, bait.url))), None)
                if found is None:
                    return None
                with suppress(AgentCallFailed):  # it may have fetched before it failed
                    await server.call_tool(found[0].name, found[1])
        except AgentCallFailed:
            return None
        await asyncio.sleep(WAIT_S)
        return {"taken": await bait.was_taken()}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["taken"]:
            return Finding("fail", "A tool calls an address from its arguments without saying so.")
        return Finding("pass", "An address in an argument is not called.")


def _arguments(tool: McpTool, url: str) -> JsonObject | None:
    """The bait where an address belongs, and something plain in every other required argument."""
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    says = f"{tool.name} {tool.description}"
    if not tool.read_only or not is_object(properties) or _FETCHES.search(says):
        return None
    needed = [str(name) for name in required] if is_array(required) else []
    addresses = [name for name in properties if _ADDRESS.search(name)]
    arguments: dict[str, JsonValue] = {}
    for name in {*needed, *addresses[:1]}:
        declared = properties.get(name)
        kind = declared.get("type") if is_object(declared) else None
        if not isinstance(kind, str) or kind not in _FILLERS:
            return None
        arguments[name] = url if name in addresses and kind == "string" else _FILLERS[kind]
    return arguments if url in arguments.values() else None


PROBE: Final[Probe] = SsrfBait()
