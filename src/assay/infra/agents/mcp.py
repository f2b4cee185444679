"""MCP conversations through the official client library (streamable HTTP), over guarded egress."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import TypeAdapter

from assay.egress.ports import SafeHttp
from assay.infra.agents.wire import LIMITS, Wire, failed, note_call
from assay.infra.http.guarded_transport import SafeHttpTransport2
from assay.kit.json import JsonObject
from assay.trust.ports import AgentCallFailed, BudgetExhausted, McpTool

PAGES_MAX = 10
"""Pages of tools/list that are read: more tools than any model is given."""

TOOLS_MAX = 500

DIAL_S = 6.0
"""Longest wait for a connection: two answers of ordinary slowness, and a bit."""

CALL_S = LIMITS.total_s + 1.0
"""Longest wait for one answer, reconnections the server may ask for included."""


_ANSWERS: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class StockMcp:
    """An initialised session. Implements `McpConversation`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.protocol_version = client.protocol_version
        self.server_name = client.server_info.name[:200] if client.server_info else ""

    async def list_tools(self) -> Sequence[McpTool]:
        noted = note_call()
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
                        read_only=bool(tool.annotations and tool.annotations.read_only_hint),
                    )
                    for tool in page.tools
                ]
                cursor = page.next_cursor
                if cursor is None or len(tools) > TOOLS_MAX:
                    break
        except Exception as error:  # hostile answers break the library in ways it does not declare
            raise failed(noted, error, _code(error)) from error
        return tools[:TOOLS_MAX]

    async def call_tool(self, name: str, arguments: JsonObject) -> JsonObject:
        noted = note_call()
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=name, arguments=dict(arguments))
        )
        try:
            # Not Client.call_tool: that validates the answer by the server's own JSON Schema, whose
            # patterns are regular expressions a hostile server chooses.
            result = await self._client.session.send_request(request, _ANSWERS)
        except Exception as error:  # hostile answers break the library in ways it does not declare
            raise failed(noted, error, _code(error)) from error
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)


@asynccontextmanager
async def dial_mcp(url: str, http: SafeHttp) -> AsyncGenerator[StockMcp]:
    """Connect and initialise; raises `AgentCallFailed` or `BudgetExhausted`."""
    _hush()
    noted = note_call()
    raised: AgentCallFailed | BudgetExhausted | None = None
    patience = asyncio.timeout(DIAL_S)
    try:
        async with (
            patience,
            httpx2.AsyncClient(
                transport=SafeHttpTransport2(Wire(http), LIMITS), trust_env=False
            ) as sender,
        ):
            session = Client(
                streamable_http_client(url, http_client=sender),
                read_timeout_seconds=CALL_S,
                client_info=types.Implementation(name="assay", version="1"),
                cache=None,
            )
            async with session as client:
                patience.reschedule(None)
                try:
                    yield StockMcp(client)
                except (AgentCallFailed, BudgetExhausted) as failure:
                    raised = failure  # the library's task groups would wrap it
    except TimeoutError as error:
        raise AgentCallFailed("timeout", f"no connection within {DIAL_S} s") from error
    except Exception as error:  # hostile answers break the library in ways it does not declare
        raise failed(noted, error, _code(error)) from error
    if raised is not None:
        raise raised


def _code(error: Exception) -> int | None:
    """The number of the protocol error the agent answered with."""
    if isinstance(error, ExceptionGroup):
        inside = cast("ExceptionGroup[Exception]", error).exceptions
        return _code(inside[0]) if len(inside) == 1 else None
    if isinstance(error, MCPError) and error.code not in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
        return error.code
    return None


def _hush() -> None:
    """The library logs what agents send, in their words; our log lines name no such text."""
    logger = logging.getLogger("mcp.client")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
