"""MCP over its older transport: stock servers, and streams that are not what they say."""

import asyncio

import pytest
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from assay.common.clock import SystemClock
from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import EgressResponse, Limits, OutboundRequest
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import AgentCallFailed
from assay.probing.session import VisitHttp
from tests.support.fakes import working_agents as agents
from tests.support.raw_server import RawServer, sends, serving

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


async def dialled(http: GuardedHttp, url: str) -> str:
    async with StockDialers().mcp(url, http) as server:
        return server.server_name


async def failure(http: GuardedHttp, *pieces: bytes | float) -> tuple[AgentCallFailed, RawServer]:
    async with serving(sends(STREAM, *pieces)) as server:
        with pytest.raises(AgentCallFailed) as raised:
            await dialled(http, server.url("/sse"))
    return raised.value, server


def older(server: MCPServer, path: str = "/sse") -> agents.ASGIApp:
    anybody = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.sse_app(sse_path=path, transport_security=anybody)


@pytest.mark.parametrize("path", ["/sse", "/mcp"], ids=["by its path", "after a refused POST"])
async def test_a_stock_server_of_the_older_transport_is_spoken_to(
    http: GuardedHttp, path: str
) -> None:
    server = agents.working_tools()
    async with (
        agents.serving(lambda _: older(server, path)) as base,
        StockDialers().mcp(base + path, http) as conversation,
    ):
        names = [tool.name for tool in await conversation.list_tools()]
        assert "list_articles" in names
        found = await conversation.call_tool("list_articles", {}, wait_s=10)
        assert found["content"]


async def test_messages_go_to_the_origin_of_the_stream_only(
    http: GuardedHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.probing.clients.mcp.DIAL_S", 1.0)
    async with serving(sends(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")) as other:
        endpoint = f"event: endpoint\r\ndata: {other.url('/messages')}\r\n\r\n"
        error, server = await failure(http, endpoint.encode(), 1.0)
        assert error.kind in {"protocol", "timeout"}
        assert [request.method for request in server.requests] == ["GET"]
        assert other.requests == []


async def test_a_stream_of_what_no_parser_should_read_is_left(http: GuardedHttp) -> None:
    deep = b"event: message\ndata: " + b"[" * 5000 + b"\n\n"
    error, _ = await failure(http, b"event: endpoint\ndata: /messages\n\n", deep)
    assert error.kind in {"protocol", "timeout"}


async def test_a_page_is_no_stream(http: GuardedHttp) -> None:
    async with serving(sends(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")) as server:
        with pytest.raises(AgentCallFailed) as raised:
            await dialled(http, server.url("/sse"))
    assert raised.value.kind == "protocol"


async def test_hanging_up_closes_the_stream(http: GuardedHttp) -> None:
    closed = asyncio.Event()
    server = agents.working_tools()
    app = older(server)

    async def watched(scope: agents.Scope, receive: agents.Receive, send: agents.Send) -> None:
        await app(scope, receive, send)
        if scope["path"] == "/sse":
            closed.set()

    async with agents.serving(lambda _: watched) as base:
        await dialled(http, base + "/sse")
        await asyncio.wait_for(closed.wait(), 10)


class _Counting:
    """Counts what goes to the guard."""

    def __init__(self, http: GuardedHttp) -> None:
        self._http, self.sent = http, list[OutboundRequest]()

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        self.sent.append(request)
        return await self._http.send(request, limits)


async def test_a_stream_is_counted_and_signed_like_every_request_of_a_visit(
    http: GuardedHttp,
) -> None:
    counting = _Counting(http)
    visit = VisitHttp(counting, SystemClock(), 60, 20)
    server = agents.working_tools()
    async with (
        agents.serving(lambda _: older(server)) as base,
        StockDialers().mcp(base + "/sse", visit),
    ):
        pass
    assert visit.sent == len(counting.sent) >= 2
    assert all(request.headers["user-agent"].startswith("Assay/") for request in counting.sent)
