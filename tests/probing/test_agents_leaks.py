"""Whole visits to agents that leak, and to their honest twins: what is found, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from assay.evaluation.signals.sandbox import REQUESTS_MAX
from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import OutboundRequest
from tests.probing.test_agents_sandbox import declaring, failed, visit
from tests.support.fakes.leaking_talk import BRIEFING, asked_for_rules
from tests.support.fakes.leaking_tools import SERVICES, TEXTS
from tests.support.fakes.working_agents import CONVERT, a2a_app, converts, mcp_app, serving

MESSAGES_MAX = 8
CARD = "/.well-known/agent-card.json"


@dataclass
class Counting:
    """How many messages a guide was sent, which says its briefing when asked, or does not."""

    leaks: bool
    messages: int = 0

    async def answer(self, text: str) -> str:
        self.messages += 1
        if asked_for_rules(text):
            return BRIEFING if self.leaks else "I do not talk about my instructions."
        return await converts(text)


@pytest.mark.parametrize("leaks", [True, False])
async def test_a_guide_that_tells_its_briefing(http: GuardedHttp, *, leaks: bool) -> None:
    guide = Counting(leaks)
    async with serving(a2a_app(guide.answer, CONVERT)) as base:
        evidence = await visit(http, declaring(base, [("A2A", CARD)]), 20.0)
    assert ("no_leaked_secrets" in failed(evidence)) == leaks
    assert guide.messages <= MESSAGES_MAX
    assert evidence.interactions <= REQUESTS_MAX


def tool(name: str) -> MCPServer:
    server, work = MCPServer("texts", log_level="CRITICAL"), TEXTS[name].make()

    @server.tool(
        description="Gets the short form of a text.",
        annotations=ToolAnnotations(read_only_hint=True),
    )
    def shorten(text: str) -> str:
        return work(text)

    return server


@pytest.mark.parametrize(
    ("name", "leaks"),
    [
        ("keeps slugs by four letters", True),
        ("keeps counts by ten letters", True),
        ("keeps by the whole text", False),
        ("keeps counts by the whole text", False),
    ],
)
async def test_a_tool_with_a_cache(http: GuardedHttp, name: str, *, leaks: bool) -> None:
    server = tool(name)
    async with serving(mcp_app(server), server) as base:
        evidence = await visit(http, declaring(base, [("MCP", "/mcp")]), 20.0)
    assert ("no_cross_talk" in failed(evidence)) == leaks
    assert evidence.interactions <= REQUESTS_MAX


def service(name: str) -> Callable[[str], ASGIApp]:
    react = SERVICES[name].make()

    async def answer(request: Request) -> Response:
        sent = OutboundRequest(request.method, str(request.url), dict(request.headers))
        reply = react(sent)
        return Response(reply.body, reply.status, dict(reply.headers))

    return lambda _: Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])


@pytest.mark.parametrize(
    ("name", "leaks"),
    [
        ("tells of the last request in base64", True),
        ("tells of it in errors", True),
        ("tells of the request itself", False),
        ("is plain", False),
    ],
)
async def test_a_service_that_tells_of_requests(
    http: GuardedHttp, name: str, *, leaks: bool
) -> None:
    """Other requests of a visit may come in between ours; not in three visits."""
    found = False
    for _ in range(3):
        async with serving(service(name)) as base:
            evidence = await visit(http, declaring(base, [("web", "/")]), 20.0)
        assert evidence.interactions <= REQUESTS_MAX
        found = found or "no_cross_talk" in failed(evidence)
        if found == leaks:
            break
    assert found == leaks
