"""Collects all that an agent's services answered in a visit, for checks of texts."""

from collections.abc import Sequence

from assay.common.json import JsonObject
from assay.probing.answers import named_data, parts_said
from assay.probing.carried_over_input import repeated_by_takers
from assay.probing.conversations import a2a_talk
from assay.probing.malformed_requests import LabelledReply, provoked
from assay.probing.ports import AgentCallFailed, BudgetExhausted, ProbeSession
from assay.probing.probe_client import first
from assay.probing.shared_dialers import SharedDialers
from assay.probing.text_inputs import taker_replies
from assay.probing.text_tools import handed, mistaken
from assay.probing.tool_listing import ListedOnce, ToolCall
from assay.probing.wrong_values import wrongly_asked


async def collected_texts(visit: ProbeSession) -> Sequence[LabelledReply]:
    """Return the answers to requests of all kinds, including those of the proof of function."""
    await repeated_by_takers(visit)
    first_ones = [*await provoked(visit), *await mistaken(visit), *(await handed(visit)).results]
    first_ones += await wrongly_asked(visit)
    return [*first_ones, *await taker_replies(visit), *await _called(visit)]


async def _called(visit: ProbeSession) -> Sequence[LabelledReply]:
    """Return the results of ordinary calls of tools."""
    service = first(visit, "mcp")
    if service is None:
        return []
    url = service.service.endpoint
    try:
        async with visit.dialers.mcp(url, visit.http) as server:
            calls = [*server.called] if isinstance(server, ListedOnce) else []
    except AgentCallFailed:
        return []
    return [_as_provoked(visit, url, call) for call in calls]


def _as_provoked(visit: ProbeSession, url: str, call: ToolCall) -> LabelledReply:
    async def again() -> str:
        try:
            async with visit.dialers.mcp(url, visit.http) as server:
                result = await server.call_tool(call.name, call.arguments)
        except (AgentCallFailed, BudgetExhausted):
            return ""
        return _text_of(result)

    return LabelledReply("tools/call", _text_of(call.result), again)


def _text_of(result: JsonObject) -> str:
    """Return a result's text, and the names of its members."""
    return "\n".join([*parts_said(result), *filter(None, [named_data(result)])])


async def said_by_agent(visit: ProbeSession) -> Sequence[str]:
    """Return what an A2A agent answered, also to the proof of function if the lines are shared."""
    talk = await a2a_talk(visit)
    if isinstance(visit.dialers, SharedDialers):
        return ["\n".join(parts_said(answer)) for answer in visit.dialers.answers]
    return talk.texts if talk else []
