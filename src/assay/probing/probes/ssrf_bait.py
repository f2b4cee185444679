"""Is an address called by a tool or an agent that does not say it fetches?

Source: evidence.md#leaks; checks.md#server-side-requests.
"""

import asyncio
import re
from contextlib import suppress
from typing import ClassVar, Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.answers import says_it_fetches
from assay.probing.conversations import a2a_talk
from assay.probing.ports import (
    AgentCallFailed,
    Finding,
    McpTool,
    OutOfBandUrl,
    Probe,
    ProbeSession,
    Severity,
)
from assay.probing.probe_client import first
from assay.probing.text_tools import listed_tools

WAIT_S = 0.3
"""How long a fetch may take to reach us after the tool has answered."""

_ADDRESS = re.compile(
    r"(?:^|_)(?:url|uri|link|href|image|avatar|callback|webhook)(?:_|$)", re.IGNORECASE
)
"""Names of arguments that are addresses."""

_FILLERS: dict[str, JsonValue] = {"string": "assay", "integer": 1, "number": 1, "boolean": False}


class SsrfBait:
    """An address in an argument, or in a text that is data, is left alone.

    A read-only tool is asked, and an A2A agent, if neither says anything of fetching.
    """

    name: ClassVar[str] = "ssrf_bait"
    family: ClassVar[str] = "ssrf"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        out_of_band_url = visit.out_of_band_url
        if out_of_band_url is None:
            return None
        talk = await a2a_talk(visit)
        given = [talk is not None and talk.has_address, await _is_given(visit, out_of_band_url)]
        if not any(given):
            return None
        await asyncio.sleep(WAIT_S)
        return {"taken": await out_of_band_url.was_taken()}

    def weigh(self, seen: JsonObject) -> Finding:
        if seen["taken"]:
            return Finding("fail", "An address in data or an argument is called without saying so.")
        return Finding("pass", "An address in data or an argument is not called.")


async def _is_given(visit: ProbeSession, out_of_band_url: OutOfBandUrl) -> bool:
    """Whether a tool was given the address as an argument."""
    service = first(visit, "mcp")
    if service is None:
        return False
    try:
        async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
            tools = sorted(await listed_tools(visit) or (), key=lambda tool: tool.name)
            found = next(((t, a) for t in tools if (a := _arguments(t, out_of_band_url.url))), None)
            if found is None:
                return False
            with suppress(AgentCallFailed):  # it may have fetched before it failed
                await server.call_tool(found[0].name, found[1])
    except AgentCallFailed:
        return False
    return True


def _arguments(tool: McpTool, url: str) -> JsonObject | None:
    """The bait where an address belongs, and something plain in every other required argument."""
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    says = f"{tool.name} {tool.description}"
    if not tool.read_only or not is_object(properties) or says_it_fetches(says):
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
