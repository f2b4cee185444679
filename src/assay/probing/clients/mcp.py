"""MCP conversations through the official client library, over guarded egress."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import httpx2
import mcp_types as types
from mcp.client import Client, Transport
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import BaseModel, TypeAdapter

from assay.common.json import JsonObject
from assay.net.egress.guarded_transport import SafeHttpTransport2
from assay.net.egress.ports import EgressClient, Failure
from assay.probing.clients.sse import sse_transport
from assay.probing.clients.transport import (
    LIMITS,
    RecordingTransport,
    TransportLog,
    failed,
    note_call,
)
from assay.probing.ports import AgentCallFailed, BudgetExhausted, McpTool
from assay.probing.unannounced import PAUSE_S_MAX

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
    async with _opened(sse_transport(url, http), client_name, log) as server:
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
