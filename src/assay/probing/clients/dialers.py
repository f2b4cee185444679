"""Opens conversations by the official client libraries; implements `AgentDialers`."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from assay.net.egress.ports import EgressClient
from assay.probing.ports import A2aConversation, McpConversation


class StockDialers:
    """Opens MCP and A2A conversations; all their requests go through the given `http`.

    The libraries take a second to import. The first call that needs them does so in a thread, so
    that the event loop continues meanwhile.
    """

    def __init__(self, client_name: str | None = "assay") -> None:
        """Create it; without a `client_name` clients are named as their libraries name them."""
        self._client_name = client_name
        self._parsing = asyncio.Lock()

    @asynccontextmanager
    async def mcp(self, url: str, http: EgressClient) -> AsyncGenerator[McpConversation]:
        dial = await asyncio.to_thread(_load_mcp)
        async with dial(url, http, self._client_name) as conversation:
            yield conversation

    @asynccontextmanager
    async def a2a(self, url: str, http: EgressClient) -> AsyncGenerator[A2aConversation]:
        dial = await asyncio.to_thread(_load_a2a)
        async with dial(url, http, self._parsing) as conversation:
            yield conversation


def _load_mcp() -> Callable[
    [str, EgressClient, str | None], AbstractAsyncContextManager[McpConversation]
]:
    from assay.probing.clients.mcp import dial_mcp  # noqa: PLC0415 - heavy, see the class

    return dial_mcp


def _load_a2a() -> Callable[
    [str, EgressClient, asyncio.Lock], AbstractAsyncContextManager[A2aConversation]
]:
    from assay.probing.clients.a2a import dial_a2a  # noqa: PLC0415 - heavy, see the class

    return dial_a2a
