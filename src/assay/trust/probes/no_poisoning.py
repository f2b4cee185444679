"""Are descriptions free of orders to the model that reads them? Source: facts, "poisoning"."""

from collections.abc import Iterable
from typing import ClassVar, Final

from assay.kit.json import JsonObject, JsonValue, is_array, is_object
from assay.trust.asking import first
from assay.trust.poisoning import find_alike, find_poison
from assay.trust.ports import AgentCallFailed, Finding, McpTool, Probe, Severity, Visit

DEPTH_MAX = 24


class NoPoisoning:
    """Registration, agent card and tools hold no hidden text and no orders to their reader.

    Kept is what kind of thing was found where, never the words: they are aimed at whoever reads.
    """

    name: ClassVar[str] = "no_poisoning"
    family: ClassVar[str] = "poisoning"
    severity: ClassVar[Severity] = Severity.CRITICAL

    async def collect(self, visit: Visit) -> JsonObject | None:
        found = {
            "registration": await _registration(visit),
            "agent card": await _card(visit),
            "tools": await _tools(visit),
        }
        read = {where: sorted(what) for where, what in found.items() if what is not None}
        return read or None

    def weigh(self, seen: JsonObject) -> Finding:
        poisoned = [
            f"{where} ({', '.join(str(kind) for kind in what)})"
            for where, what in sorted(seen.items())
            if is_array(what) and what
        ]
        if poisoned:
            return Finding("fail", f"Descriptions are poisoned: {'; '.join(poisoned)}.")
        return Finding("pass", "Descriptions hold no hidden text and no instructions.")


async def _registration(visit: Visit) -> frozenset[str] | None:
    agent = visit.subject.agent
    if agent is None or agent.registration is None:
        return None
    return await visit.slices.run(find_poison(_strings(agent.registration.raw, DEPTH_MAX)))


async def _card(visit: Visit) -> frozenset[str] | None:
    service = first(visit, "a2a")
    if service is None:
        return None
    try:
        async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
            return await visit.slices.run(find_poison(_strings(agent.card, DEPTH_MAX)))
    except AgentCallFailed:
        return None


async def _tools(visit: Visit) -> frozenset[str] | None:
    service = first(visit, "mcp")
    if service is None:
        return None
    try:
        async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
            tools = await server.list_tools()
    except AgentCallFailed:
        return None
    texts = (text for tool in tools for text in _described(tool))
    found = await visit.slices.run(find_poison(texts))
    alike = await visit.slices.run(find_alike(tool.name for tool in tools))
    return found | {"look-alike name"} if alike else found


def _described(tool: McpTool) -> Iterable[str]:
    yield tool.name
    yield tool.description
    yield from _strings(tool.input_schema, DEPTH_MAX)


def _strings(value: JsonValue, depth: int) -> Iterable[str]:
    """Every string of a JSON value, the names of members included."""
    if isinstance(value, str):
        yield value
    elif depth and is_object(value):
        for name, member in value.items():
            yield name
            yield from _strings(member, depth - 1)
    elif depth and is_array(value):
        for item in value:
            yield from _strings(item, depth - 1)


PROBE: Final[Probe] = NoPoisoning()
