"""Stock clients over the guarded door, the official MCP client in both of its reply forms."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import httpx2
import pytest
import uvicorn
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer

from assay.net.egress.client import GuardedHttp
from assay.net.egress.guarded_transport import SafeHttpTransport, SafeHttpTransport2
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from tests.support.raw_server import Respond, keeps_open, plain, sends, serving

QUICK = Limits(connect_s=1.0, total_s=3.0, body_bytes_max=100_000)
Client = httpx.AsyncClient | httpx2.AsyncClient


@pytest.fixture
async def http() -> AsyncIterator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()


@pytest.fixture(params=["httpx", "httpx2"])
async def client(request: pytest.FixtureRequest, http: GuardedHttp) -> AsyncIterator[Client]:
    if request.param == "httpx":
        async with httpx.AsyncClient(transport=SafeHttpTransport(http, QUICK)) as opened:
            yield opened
    else:
        async with httpx2.AsyncClient(transport=SafeHttpTransport2(http, QUICK)) as opened2:
            yield opened2


async def test_a_request_and_its_reply_go_through(client: Client) -> None:
    async with serving(keeps_open(plain(b'{"a":1}', "201 Created", "X-One: 1"))) as server:
        reply = await client.post(server.url("/x?y=z"), json={"b": 2}, headers={"X-Mine": "3"})
        assert (reply.status_code, reply.json(), reply.headers["x-one"]) == (201, {"a": 1}, "1")
        [request] = server.requests
        assert (request.method, request.target, request.body) == ("POST", "/x?y=z", b'{"b":2}')
        assert request.headers["x-mine"] == "3"
        assert request.headers["host"] == f"127.0.0.1:{server.port}"


async def test_a_compressed_reply_is_decoded_once(client: Client) -> None:
    import gzip  # noqa: PLC0415 - the one test that needs it

    sent = plain(gzip.compress(b"hello"), "200 OK", "Content-Encoding: gzip")
    async with serving(keeps_open(sent)) as server:
        assert (await client.get(server.url())).text == "hello"


async def test_a_reply_can_be_streamed_by_the_client(client: Client) -> None:
    events = b"event: message\ndata: one\n\nevent: message\ndata: two\n\n"
    async with serving(
        keeps_open(plain(events, "200 OK", "Content-Type: text/event-stream"))
    ) as server:
        if isinstance(client, httpx2.AsyncClient):
            async with client.stream("POST", server.url()) as reply:
                lines = [line async for line in reply.aiter_lines()]
        else:
            async with client.stream("POST", server.url()) as reply:
                lines = [line async for line in reply.aiter_lines()]
    assert [line for line in lines if line.startswith("data")] == ["data: one", "data: two"]


async def test_a_reply_that_was_cut_is_an_error_and_not_half_a_message(client: Client) -> None:
    async with serving(keeps_open(plain(b"x" * 200_000))) as server:
        with pytest.raises((httpx.RemoteProtocolError, httpx2.RemoteProtocolError)):
            await client.get(server.url())


class Failing:
    """A door that is shut for one reason."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    async def send(self, request: OutboundRequest, limits: Limits = QUICK) -> EgressResponse:
        del request, limits
        raise EgressError(self._failure, "shut")


@pytest.mark.parametrize("failure", list(Failure))
async def test_every_failure_is_one_the_client_libraries_know(failure: Failure) -> None:
    shut = Failing(failure)
    async with httpx.AsyncClient(transport=SafeHttpTransport(shut, QUICK)) as one:
        with pytest.raises(httpx.TransportError) as raised:
            await one.get("http://agent.example/")
    async with httpx2.AsyncClient(transport=SafeHttpTransport2(shut, QUICK)) as two:
        with pytest.raises(httpx2.TransportError) as raised2:
            await two.get("http://agent.example/")
    for error, timeout in ((raised, httpx.TimeoutException), (raised2, httpx2.TimeoutException)):
        assert isinstance(error.value, timeout) == (failure is Failure.TIMEOUT)
        assert isinstance(error.value.__cause__, EgressError)


@pytest.mark.parametrize("respond", [sends(30.0)], ids=["a stream that never ends"])
async def test_listening_for_server_messages_costs_nothing(
    client: Client, respond: Respond
) -> None:
    async with serving(respond) as server:
        listening = {"accept": "text/event-stream"}
        assert (await client.get(server.url(), headers=listening)).status_code == 405
        assert server.requests == []


async def test_an_interrupted_answer_can_be_resumed(client: Client) -> None:
    async with serving(keeps_open(plain(b"data: rest\n\n"))) as server:
        resuming = {"accept": "text/event-stream", "last-event-id": "7"}
        assert (await client.get(server.url(), headers=resuming)).text == "data: rest\n\n"


@asynccontextmanager
async def mcp_server(*, as_json: bool) -> AsyncIterator[str]:
    server = MCPServer("sums")

    @server.tool()
    def add(a: int, b: int) -> int:  # pyright: ignore[reportUnusedFunction]
        return a + b

    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app(json_response=as_json)
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(running.serve(sockets=[listener]))
        while not running.started:  # noqa: ASYNC110 - uvicorn offers no event
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            await task


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "event stream"])
async def test_the_official_mcp_client_converses_over_the_guarded_door(
    http: GuardedHttp,
    as_json: bool,  # noqa: FBT001 - a column of the table
) -> None:
    async with (
        mcp_server(as_json=as_json) as url,
        httpx2.AsyncClient(transport=SafeHttpTransport2(http, QUICK)) as client,
        streamable_http_client(url, http_client=client) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = await session.list_tools()
        assert [tool.name for tool in tools.tools] == ["add"]
        result = await session.call_tool("add", {"a": 2, "b": 3})
        assert result.content[0].text == "5"  # type: ignore[union-attr]
