"""Bad requests that make a service show how it fails, shared by the probes of error discipline."""

import json
from asyncio import TaskGroup

from assay.egress.ports import Outgoing
from assay.trust.asking import (
    MALFORMED_JSON,
    MALFORMED_RPC,
    ask,
    canary,
    first,
    json_target,
    post_json,
    rpc_url,
    text_of,
    unknown_url,
)
from assay.trust.ports import AgentCallFailed, Visit


async def provoked(visit: Visit) -> list[str]:
    """What each declared service says to requests that nobody sends in earnest."""
    async with TaskGroup() as group:
        asked = [
            group.create_task(provoke(visit)) for provoke in (_from_http, _from_a2a, _from_mcp)
        ]
    return [text for task in asked for text in task.result()]


async def _from_http(visit: Visit) -> list[str]:
    service = first(visit, "http")
    if service is None:
        return []
    endpoint = service.service.endpoint
    target, _ = await json_target(visit, endpoint)
    unknown = await ask(visit, Outgoing("GET", unknown_url(visit, endpoint)))
    malformed = await ask(visit, post_json(target, MALFORMED_JSON))
    return [text for text in (text_of(unknown), text_of(malformed)) if text]


async def _from_a2a(visit: Visit) -> list[str]:
    service = first(visit, "a2a")
    url = None if service is None else await rpc_url(visit, service)
    if url is None:
        return []
    text = text_of(await ask(visit, post_json(url, MALFORMED_RPC)))
    return [text] if text else []


async def _from_mcp(visit: Visit) -> list[str]:
    service = first(visit, "mcp")
    if service is None:
        return []
    try:
        async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
            try:
                result = await server.call_tool(canary(visit, "unknown tool"), {})
            except AgentCallFailed as error:
                return [error.detail]
    except AgentCallFailed:
        return []
    return [json.dumps(result, ensure_ascii=False)]
