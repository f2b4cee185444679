"""The official clients against servers that are not what they say: every failure is typed."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.net.egress.client import GuardedHttp
from assay.net.egress.ports import EgressResponse, Limits, OutboundRequest
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import AgentCallFailed, BudgetExhausted
from tests.support.fakes.agents import entry_of, running

pytestmark = pytest.mark.slow

CARD = {
    "name": "Words",
    "description": "Looks words up.",
    "version": "1",
    "capabilities": {},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [],
}


@asynccontextmanager
async def serving(answer: Callable[[Request, bytes], Response]) -> AsyncGenerator[str]:
    """A server that answers everything by one function; gives its address."""

    async def endpoint(request: Request) -> Response:
        return answer(request, await request.body())

    app = Starlette(routes=[Route("/{path:path}", endpoint, methods=["GET", "POST", "DELETE"])])
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    sock = config.bind_socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[sock]))
        while not server.started:  # noqa: ASYNC110 - uvicorn offers no event
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True


async def test_an_mcp_conversation_lists_and_calls(http: GuardedHttp) -> None:
    async with running() as agent, StockDialers().mcp(agent.services["MCP"], http) as server:
        tools = {tool.name: tool for tool in await server.list_tools()}
        result = await server.call_tool("look_up", {"word": "lamp"})
        assert server.server_name == "words"
        assert (tools["look_up"].read_only, tools["forget_everything"].read_only) == (True, False)
        assert tools["look_up"].input_schema["required"] == ["word"]
        assert entry_of("lamp") in json.dumps(result)


async def test_an_a2a_conversation_sends_text(http: GuardedHttp) -> None:
    async with running() as agent, StockDialers().a2a(agent.services["A2A"], http) as client:
        answer = await client.send_text("lamp?")
        assert client.card["name"] == "Words"
        assert client.card_url == agent.services["A2A"]
        assert "I heard: lamp?" in json.dumps(answer)


async def test_a_card_is_found_below_or_at_the_host_of_a_declared_address(
    http: GuardedHttp,
) -> None:
    async with running() as agent:
        for declared in (agent.base, agent.base + "/", agent.base + "/a2a"):
            async with StockDialers().a2a(declared, http) as client:
                assert client.card["name"] == "Words"


def oddity(kind: str) -> Callable[[Request, bytes], Response]:
    answers: dict[str, Response] = {
        "html": Response("<h1>Hello</h1>", media_type="text/html"),
        "empty": Response(b""),
        "not json": Response(b"{", media_type="application/json"),
        "wrong json": JSONResponse(["x"]),
        "deep json": Response(b"[" * 100_000, media_type="application/json"),
        "deep utf-16": Response(("[" * 100_000).encode("utf-16"), media_type="application/json"),
        "endless stream": Response(b": hi\n\n", media_type="text/event-stream"),
        "patient stream": Response(
            b"id: 1\nretry: 3600000\ndata:\n\n", media_type="text/event-stream"
        ),
        "error": JSONResponse({}, 500),
        "redirect": Response(status_code=307, headers={"location": "http://169.254.169.254/"}),
        "too long": Response(b" " * 2_000_000, media_type="application/json"),
        "accepted": Response(status_code=202),
    }
    return lambda _request, _body: answers[kind]


ODDITIES = [
    *("html", "empty", "not json", "wrong json", "deep json", "deep utf-16", "endless stream"),
    *("patient stream", "error", "redirect", "too long", "accepted"),
]


@pytest.mark.parametrize("kind", ODDITIES)
@pytest.mark.parametrize("protocol", ["mcp", "a2a"])
async def test_whatever_a_server_sends_the_failure_is_typed_and_soon(
    http: GuardedHttp, kind: str, protocol: str
) -> None:
    async with serving(oddity(kind)) as base, asyncio.timeout(12):
        dial = getattr(StockDialers(), protocol)
        with pytest.raises(AgentCallFailed) as caught:
            async with dial(base + "/x", http) as conversation:
                await (conversation.list_tools() if protocol == "mcp" else None)
    assert caught.value.kind in {"protocol", "error", "timeout"}


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, "error", 401),
        (402, "error", 402),
        (429, "error", 429),
        (503, "error", 503),
        (502, "unreachable", None),
        (504, "unreachable", None),
        (500, "protocol", None),
    ],
)
@pytest.mark.parametrize("protocol", ["mcp", "a2a"])
async def test_a_status_that_says_more_than_an_error_is_kept(
    http: GuardedHttp, protocol: str, status: int, kind: str, code: int | None
) -> None:
    async with serving(lambda _r, _b: JSONResponse({}, status)) as base:
        with pytest.raises(AgentCallFailed) as caught:
            async with getattr(StockDialers(), protocol)(base, http):
                raise AssertionError
    assert (caught.value.kind, caught.value.code) == (kind, code)


@pytest.mark.parametrize("protocol", ["mcp", "a2a"])
async def test_nobody_there_is_unreachable(http: GuardedHttp, protocol: str) -> None:
    with pytest.raises(AgentCallFailed) as caught:
        async with getattr(StockDialers(), protocol)("http://127.0.0.1:1024", http):
            raise AssertionError
    assert caught.value.kind == "unreachable"


class Spent:
    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        del request, limits
        raise BudgetExhausted


@pytest.mark.parametrize("protocol", ["mcp", "a2a"])
async def test_a_spent_budget_is_no_failure_of_the_agent(protocol: str) -> None:
    with pytest.raises(BudgetExhausted):
        async with getattr(StockDialers(), protocol)("http://127.0.0.1:1024", Spent()):
            raise AssertionError


class SpentAfter:
    """Lets the first requests through."""

    def __init__(self, http: GuardedHttp, requests: int) -> None:
        self.http, self.left = http, requests

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        self.left -= 1
        if self.left < 0:
            raise BudgetExhausted
        return await self.http.send(request, limits)


async def test_a_budget_spent_within_a_conversation_ends_the_call_and_not_the_line(
    http: GuardedHttp,
) -> None:
    async with running() as agent:
        limited = SpentAfter(http, 1)
        async with StockDialers().mcp(agent.services["MCP"], limited) as server:
            with pytest.raises(BudgetExhausted):
                await server.list_tools()
            limited.left = 10
            assert await server.list_tools()


async def test_an_exception_of_the_caller_comes_out_as_it_went_in(http: GuardedHttp) -> None:
    async with running() as agent:
        with pytest.raises(AgentCallFailed, match="mine"):
            async with StockDialers().mcp(agent.services["MCP"], http):
                raise AgentCallFailed("protocol", "mine")


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32005, "message": "no"}}, "error", -32005),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}, "error", -32603),
        ({"jsonrpc": "2.0", "id": 1, "error": "no"}, "protocol", None),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "protocol", None),
        ({"jsonrpc": "2.0", "id": 1, "result": {"message": {"parts": 7}}}, "protocol", None),
        ({"hello": "world"}, "protocol", None),
    ],
)
async def test_an_a2a_error_keeps_its_number(
    http: GuardedHttp, answer: object, kind: str, code: int | None
) -> None:
    def told(request: Request, body: bytes) -> Response:
        del body
        if request.method == "GET":
            url = str(request.base_url) + "rpc"
            interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            return JSONResponse({**CARD, "supportedInterfaces": [interface]})
        return JSONResponse(answer)

    async with serving(told) as base, StockDialers().a2a(base, http) as client:
        with pytest.raises(AgentCallFailed) as caught:
            await client.send_text("hello")
    assert (caught.value.kind, caught.value.code) == (kind, code)


async def test_a_card_of_the_older_protocol_is_spoken_to(http: GuardedHttp) -> None:
    """A2A 0.3: `url` in the card, `message/send` on the wire."""
    methods: list[str] = []

    def told(request: Request, body: bytes) -> Response:
        if request.method == "GET":
            url = str(request.base_url) + "rpc"
            return JSONResponse({**CARD, "url": url, "protocolVersion": "0.3.0"})
        asked = json.loads(body)
        methods.append(asked["method"])
        part = {"kind": "text", "text": "hi"}
        message = {"kind": "message", "messageId": "1", "role": "agent", "parts": [part]}
        return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": message})

    async with serving(told) as base, StockDialers().a2a(base, http) as client:
        assert "hi" in json.dumps(await client.send_text("hello"))
    assert methods == ["message/send"]
