"""Requests that make a service show how it fails, shared by the probes of leaks.

Malformed ones (broken JSON, an unknown tool), well-formed ones for things that do not exist, and
paths that no service means to serve (`/.env`, `/.git/config`). Each can be repeated: a finding
counts when it is seen twice. They cost at most 5 HTTP, 1 A2A and 1 MCP request, and are made only
in announced visits.
"""

import json
from asyncio import TaskGroup
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urljoin, urlsplit

from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.ports import AgentCallFailed, BudgetExhausted, ProbeSession
from assay.probing.probe_client import (
    MALFORMED_JSON,
    MALFORMED_RPC,
    answer_class,
    ask,
    canary,
    failure_class,
    first,
    is_html,
    json_target,
    post_json,
    rpc_url,
    text_of,
    unknown_url,
)
from assay.probing.session import VisitHttp

ENVIRONMENT = "GET /.env"
REPOSITORY = "GET /.git/config"
FORWARDING = "GET with an address of another host in its parameters"

FORWARDED = "forwarding"
"""The purpose of its random word."""

SPLIT_HEADER = "x-assay-split"
"""The header that a split response would contain."""

_FORWARDS = ("next", "url", "redirect", "return_to", "continue", "id", "lang")
_OK = 200
_NO_ANSWER = frozenset({"timeout", "unreachable", "busy", "cut"})


@dataclass(frozen=True, slots=True)
class LabelledReply:
    """A request's label, the answer as text, and how to repeat it."""

    request: str
    text: str
    again: Callable[[], Awaitable[str]]
    is_answered: bool = True
    """Whether there was any answer other than a demand to wait."""


async def provoked(visit: ProbeSession) -> list[LabelledReply]:
    """Return each declared service's answers to such requests; called once a visit."""
    asked = await visit.asked.get("provoked", lambda: _provoked(visit))
    return [one for kind in asked.values() for one in kind if one.text]


async def unanswered_kinds(visit: ProbeSession) -> list[str]:
    """Return the kinds of services that answered none of them."""
    asked = await visit.asked.get("provoked", lambda: _provoked(visit))
    return [k for k, rows in asked.items() if rows and not any(one.is_answered for one in rows)]


async def public_pages(visit: ProbeSession) -> list[str]:
    """Return the HTTP service's public pages: the declared address and its host's first page."""
    service = first(visit, "http")
    if service is None:
        return []
    endpoint = service.service.endpoint
    urls = dict.fromkeys([endpoint, urljoin(endpoint, "/")])
    response = [await ask(visit, OutboundRequest("GET", url)) for url in urls]
    return [
        text_of(page)
        for page in response
        if isinstance(page, EgressResponse) and page.status == _OK
    ]


def forwarding_request(visit: ProbeSession, endpoint: str) -> OutboundRequest:
    """Return a well-formed request with another host and a line break in a value's place.

    The host is in `.invalid`, so nobody is called (RFC 2606).
    """
    word = canary(visit, FORWARDED)
    values = dict.fromkeys(_FORWARDS[:5], f"https://{word}.invalid/")
    values |= {"id": word, "lang": f"en\r\n{SPLIT_HEADER}: {word}"}
    bare = urlsplit(endpoint)._replace(query=urlencode(values), fragment="")
    return OutboundRequest("GET", bare.geturl())


async def _provoked(visit: ProbeSession) -> Mapping[str, list[LabelledReply]]:
    if not visit.announced:
        return {}
    sources = {"http": _from_http, "a2a": _from_a2a, "mcp": _from_mcp}
    async with TaskGroup() as group:
        asked = {kind: group.create_task(provoke(visit)) for kind, provoke in sources.items()}
    return {kind: task.result() for kind, task in asked.items()}


async def _from_http(visit: ProbeSession) -> list[LabelledReply]:
    service = first(visit, "http")
    if service is None:
        return []
    endpoint = service.service.endpoint
    target, _ = await json_target(visit, endpoint)
    requests: Mapping[str, OutboundRequest] = {
        "GET an unknown path": OutboundRequest("GET", unknown_url(visit, endpoint)),
        "POST broken JSON": post_json(target, MALFORMED_JSON),
        FORWARDING: forwarding_request(visit, endpoint),
        ENVIRONMENT: OutboundRequest("GET", urljoin(endpoint, "/.env")),
        REPOSITORY: OutboundRequest("GET", urljoin(endpoint, "/.git/config")),
    }
    asked: list[LabelledReply] = []
    for label, request in requests.items():
        try:
            asked.append(await _asked(visit, label, request))
        except BudgetExhausted:
            if not asked:
                raise
            break  # What was seen before counts.
    return asked


async def _from_a2a(visit: ProbeSession) -> list[LabelledReply]:
    service = first(visit, "a2a")
    url = None if service is None else await rpc_url(visit, service)
    if url is None:
        return []
    return [await _asked(visit, "POST broken JSON-RPC", post_json(url, MALFORMED_RPC))]


async def _asked(visit: ProbeSession, label: str, request: OutboundRequest) -> LabelledReply:
    async def again() -> str:
        headers = {**request.headers, **VisitHttp.FRESH}
        try:
            return _shown(label, await ask(visit, _with(request, headers)))
        except BudgetExhausted:
            return ""

    response = await ask(visit, request)
    is_answered = answer_class(response) not in _NO_ANSWER
    return LabelledReply(label, _shown(label, response), again, is_answered)


def _with(request: OutboundRequest, headers: Mapping[str, str]) -> OutboundRequest:
    return OutboundRequest(request.method, request.url, headers, request.body)


def _shown(label: str, response: EgressResponse | object) -> str:
    """Return the text of an answer; for a path that should not exist, only a file, not a page."""
    if not isinstance(response, EgressResponse):
        return ""
    is_file = label in {ENVIRONMENT, REPOSITORY}
    return "" if is_file and (response.status != _OK or is_html(response)) else text_of(response)


async def _from_mcp(visit: ProbeSession) -> list[LabelledReply]:
    service = first(visit, "mcp")
    if service is None:
        return []

    is_answered = True

    async def call() -> str:
        nonlocal is_answered
        try:
            async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
                result = await server.call_tool(canary(visit, "unknown tool"), {})
        except AgentCallFailed as error:
            is_answered = failure_class(error) not in _NO_ANSWER
            return error.detail
        return json.dumps(result, ensure_ascii=False)

    return [LabelledReply("tools/call of an unknown tool", await call(), call, is_answered)]
