"""MCP conversations through the official client library, over guarded egress.

MCP's older transport (HTTP with server-sent events), over guarded egress.

The stream is one request through the visit's `EgressClient`: its address is checked, and its bytes
and its time are bounded and counted like those of any other answer.
Source: MCP 2024-11-05, transports.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import httpx2
import mcp_types as types
from mcp.client import Client, Transport
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import BaseModel, TypeAdapter
from typing_extensions import override

from assay.common.json import JsonObject
from assay.net.egress.guarded_transport import SafeHttpTransport2, plain_headers
from assay.net.egress.ports import EgressClient, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.clients.transport import (
    LIMITS,
    RecordingTransport,
    TransportLog,
    failed,
    is_readable,
    note_call,
)
from assay.probing.ports import AgentCallFailed, BudgetExhausted, McpTool
from assay.probing.unannounced import PAUSE_S_MAX

STREAM_LIMITS = Limits(connect_s=2.0, total_s=120.0, body_bytes_max=1024 * 1024)
"""Limits of one stream. A visit ends it sooner."""

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


def _sse_transport(url: str, http: EgressClient) -> Transport:
    """Return the official client's transport, for its `Client`.

    Messages are sent only to the stream's own origin, each through `http`.
    """

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=_StreamTransport(http),
            trust_env=False,
            headers=headers,
            timeout=timeout,
            auth=auth,
        )

    return sse_client(url, httpx_client_factory=client)


class _StreamTransport(httpx2.AsyncBaseTransport):
    """Streams the body of an event stream, and returns every other reply whole."""

    def __init__(self, http: EgressClient) -> None:
        self._wire = RecordingTransport(http)
        self._whole = SafeHttpTransport2(self._wire, LIMITS)

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            return await self._whole.handle_async_request(request)
        events = _Events()
        outgoing = OutboundRequest("GET", str(request.url), dict(request.headers), tap=events)
        reading = asyncio.get_running_loop().create_task(self._wire.send(outgoing, STREAM_LIMITS))
        reading.add_done_callback(lambda _: events.end())
        try:
            status, headers = await events.head_of(reading)
        except BaseException:
            reading.cancel()
            raise
        return httpx2.Response(
            status, headers=headers, stream=_Body(events, reading), request=request
        )


class _Events:
    """A `Tap` that passes on whole events, which the libraries' parsers can handle safely."""

    def __init__(self) -> None:
        self._head: asyncio.Future[tuple[int, list[tuple[str, str]]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._open = b""
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        if not self._head.done():
            self._head.set_result((status, plain_headers(headers)))

    def add(self, piece: bytes) -> None:
        *whole, self._open = _BLANK_LINE.split(self._open + piece)
        for event in whole:
            if not is_readable(event):
                self.end()
                return
            self._queue.put_nowait(event + b"\n\n")

    def end(self) -> None:
        """Signal the end."""
        self._queue.put_nowait(None)

    async def head_of(
        self, reading: "asyncio.Task[EgressResponse]"
    ) -> tuple[int, list[tuple[str, str]]]:
        """Return status and headers.

        The host's, or those of a reply that represents its failure.
        """
        await asyncio.wait([self._head, reading], return_when=asyncio.FIRST_COMPLETED)
        if self._head.done():
            return self._head.result()
        reply = reading.result()
        return reply.status, plain_headers(reply.headers)

    async def next(self) -> bytes | None:
        """Return the next event; None at the end."""
        return await self._queue.get()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, events: _Events, reading: "asyncio.Task[EgressResponse]") -> None:
        self._events, self._reading = events, reading

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (event := await self._events.next()) is not None:
            yield event

    @override
    async def aclose(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])


PAGES_MAX = 10
"""Pages of tools/list that are read: more tools than any model is given."""

TOOLS_MAX = 500

DIAL_S = 6.0
"""Longest wait for a connection: two answers of usual duration, and some margin."""

CALL_S = LIMITS.total_s + 1.0
"""Longest wait for one answer, including reconnections that the server requests."""


_ANSWERS: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class StockMcp:
    """An initialised session; implements `McpConversation`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.protocol_version = client.protocol_version
        self.server_name = client.server_info.name[:200] if client.server_info else ""
        self.instructions = client.instructions or ""
        self._resources: list[types.Resource] | None = None
        self._prompts: list[types.Prompt] | None = None

    async def list_tools(self, *, again: bool = False) -> Sequence[McpTool]:
        del again  # Nothing is remembered here.
        log = note_call()
        tools: list[McpTool] = []
        cursor: str | None = None
        try:
            for _ in range(PAGES_MAX):
                page = await self._client.list_tools(cursor=cursor)
                tools += [
                    McpTool(
                        name=tool.name,
                        description=tool.description or "",
                        input_schema=tool.input_schema,
                        read_only=_reads(tool) is True,
                        changes=_reads(tool) is False,
                        output_schema=tool.output_schema,
                        more=_more(tool),
                    )
                    for tool in page.tools
                ]
                cursor = page.next_cursor
                if cursor is None or len(tools) > TOOLS_MAX:
                    break
        except Exception as error:  # Hostile answers raise undeclared errors.
            raise _failed(log, error) from error
        return tools[:TOOLS_MAX]

    async def call_tool(
        self, name: str, arguments: JsonObject, wait_s: float | None = None
    ) -> JsonObject:
        log = note_call(wait_s)
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=name, arguments=dict(arguments))
        )
        try:
            # Not Client.call_tool: that validates the answer by the server's own JSON Schema, whose
            # patterns are regular expressions a hostile server chooses.
            result = await self._client.session.send_request(
                request,
                _ANSWERS,
                request_read_timeout_seconds=None if wait_s is None else wait_s + PAUSE_S_MAX + 1.0,
            )
        except Exception as error:  # Hostile answers raise undeclared errors.
            raise _failed(log, error) from error
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def read_first(self) -> JsonObject | None:
        log = note_call()
        offers = self._client.server_capabilities
        try:
            if self._resources is None:
                await self._list_resources(offered=bool(offers.resources))
            if self._resources:
                found = await self._client.read_resource(str(self._resources[0].uri))
                return found.model_dump(mode="json", by_alias=True, exclude_none=True)
            if self._prompts is None:
                await self._list_prompts(offered=bool(offers.prompts))
            prompts = self._prompts or []
            plain = [p for p in prompts if not any(a.required for a in p.arguments or [])]
            if plain:
                prompt = await self._client.get_prompt(plain[0].name)
                return prompt.model_dump(mode="json", by_alias=True, exclude_none=True)
        except Exception as error:  # Hostile answers raise undeclared errors.
            raise _failed(log, error) from error
        return None

    async def list_texts(self) -> Sequence[JsonObject]:
        log = note_call()
        offered = self._client.server_capabilities
        try:
            await self._list_prompts(offered=bool(offered.prompts))
            await self._list_resources(offered=bool(offered.resources))
        except Exception as error:  # Hostile answers raise undeclared errors.
            raise _failed(log, error) from error
        pages: list[BaseModel] = [*(self._prompts or ()), *(self._resources or ())]
        return [_as_json(page) for page in pages[:TOOLS_MAX]]

    async def _list_prompts(self, *, offered: bool) -> None:
        self._prompts = (await self._client.list_prompts()).prompts if offered else []

    async def _list_resources(self, *, offered: bool) -> None:
        self._resources = (await self._client.list_resources()).resources if offered else []


def _more(tool: types.Tool) -> JsonObject:
    """Return what a model may read of a tool besides its description and input."""
    read = ("name", "description", "inputSchema")
    return {name: value for name, value in _as_json(tool).items() if name not in read}


def _as_json(model: BaseModel) -> JsonObject:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


@asynccontextmanager
async def dial_mcp(
    url: str, http: EgressClient, client_name: str | None
) -> AsyncGenerator[StockMcp]:
    """Connect and initialise; raises `AgentCallFailed` or `BudgetExhausted`.

    Uses streamable HTTP, else the older transport with server-sent events, like a client that
    supports both; for an address that ends in `/sse` only the older one. Without a `client_name`
    the client uses the library's own name, and may pause between its requests.
    """
    _hush()
    older = url.partition("?")[0].rstrip("/").endswith("/sse")
    log = note_call()
    async with AsyncExitStack() as stack:
        try:
            way = _over_events if older else _over_http
            server = await stack.enter_async_context(way(url, http, client_name, log))
        except AgentCallFailed:
            if older or log.status not in _NO_POST:
                raise
            log = note_call()
            server = await stack.enter_async_context(_over_events(url, http, client_name, log))
        yield server


_NO_POST = frozenset({400, 404, 405})
"""Statuses with which a server of the older transport answers a POST. Source: MCP, backwards
compatibility."""


@asynccontextmanager
async def _over_http(
    url: str, http: EgressClient, client_name: str | None, log: TransportLog
) -> AsyncGenerator[StockMcp]:
    async with httpx2.AsyncClient(
        transport=SafeHttpTransport2(RecordingTransport(http), LIMITS), trust_env=False
    ) as sender:
        transport = streamable_http_client(url, http_client=sender)
        async with _opened(transport, client_name, log) as server:
            yield server


@asynccontextmanager
async def _over_events(
    url: str, http: EgressClient, client_name: str | None, log: TransportLog
) -> AsyncGenerator[StockMcp]:
    async with _opened(_sse_transport(url, http), client_name, log) as server:
        yield server


@asynccontextmanager
async def _opened(
    transport: Transport, client_name: str | None, log: TransportLog
) -> AsyncGenerator[StockMcp]:
    paused_s = PAUSE_S_MAX if client_name is None else 0.0
    raised: AgentCallFailed | BudgetExhausted | None = None
    patience = asyncio.timeout(DIAL_S + 2 * paused_s)
    try:
        async with patience:
            session = Client(
                transport,
                read_timeout_seconds=CALL_S + paused_s,
                client_info=_named(client_name),
                cache=None,
            )
            async with session as client:
                patience.reschedule(None)
                try:
                    yield StockMcp(client)
                except (AgentCallFailed, BudgetExhausted) as failure:
                    raised = failure  # The library's task groups would wrap it.
    except TimeoutError as error:
        raise AgentCallFailed("timeout", f"no connection within {DIAL_S} s") from error
    except Exception as error:  # Hostile answers raise undeclared errors.
        raise _failed(log, error) from error
    if raised is not None:
        raise raised


def _failed(log: TransportLog, error: Exception) -> AgentCallFailed | BudgetExhausted:
    """Classify like `failed`; a missing answer on an open stream is a timeout."""
    if isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT and log.failure is None:
        log.failure = Failure.TIMEOUT
    return failed(log, error, _code(error))


def _named(client_name: str | None) -> types.Implementation | None:
    return None if client_name is None else types.Implementation(name=client_name, version="1")


def _reads(tool: types.Tool) -> bool | None:
    """Return whether the tool only reads, if its server says so."""
    hints = tool.annotations
    if hints is None or hints.read_only_hint is not None:
        return None if hints is None else hints.read_only_hint
    return False if hints.destructive_hint else None


def _code(error: Exception) -> int | None:
    """Return the number of the protocol error that the agent answered with."""
    if isinstance(error, ExceptionGroup):
        inside = cast("ExceptionGroup[Exception]", error).exceptions
        return _code(inside[0]) if len(inside) == 1 else None
    if isinstance(error, MCPError) and error.code not in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
        return error.code
    return None


def _hush() -> None:
    """Silence the library: it logs what agents send, verbatim, and our logs must not."""
    logger = logging.getLogger("mcp.client")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
