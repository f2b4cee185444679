"""A stock MCP server and a stock A2A server behind a wrapper, called by the stock clients."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.types import Message, Part, Role, SendMessageRequest
from google.protobuf.json_format import MessageToDict
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.support.fakes.agents import Agent, entry_of, running
from tests.wrappers.test_wrap_repeats_http import Shop, opened


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    async with opened(tmp_path) as made:
        yield made


@asynccontextmanager
async def wrapped(shop: Shop, agent: Agent) -> AsyncGenerator[str]:
    """Where the agent is reached through a wrapper."""
    await shop.wrap("/*", targetUrl=agent.base)
    yield f"http://127.0.0.1:{shop.port}/wrap/{shop.operator_id}"


async def test_an_mcp_session_is_held_through_a_wrapper(shop: Shop) -> None:
    sessions: set[str | None] = set()

    async def note(request: httpx2.Request) -> None:
        sessions.add(request.headers.get("mcp-session-id"))

    async with (
        running() as agent,
        wrapped(shop, agent) as url,
        httpx2.AsyncClient(event_hooks={"request": [note]}, timeout=10) as client,
        streamable_http_client(f"{url}/mcp", http_client=client) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        assert "look_up" in [tool.name for tool in (await session.list_tools()).tools]
        result: Any = await session.call_tool("look_up", {"word": "lamp"})
        assert result.content[0].text == entry_of("lamp")
    [held] = sessions - {None}  # given in an answer's header, and sent back ever after
    assert held
    assert re.fullmatch(r"[0-9a-f-]{32,36}", held)


async def test_an_a2a_agent_is_talked_to_through_a_wrapper(shop: Shop) -> None:
    async with (
        running() as agent,
        wrapped(shop, agent) as url,
        httpx.AsyncClient(trust_env=False, timeout=10) as client,
    ):
        found = await client.get(f"{url}/.well-known/agent-card.json")
        text = found.text.replace(agent.base, url)
        assert found.headers["etag"] or found.headers["cache-control"]
        card = parse_agent_card(httpx.Response(200, text=text).json())
        made = ClientFactory(ClientConfig(streaming=False, httpx_client=client)).create(card)
        said = Message(message_id="1", role=Role.ROLE_USER, parts=[Part(text="lamp")])
        events = [event async for event in made.send_message(SendMessageRequest(message=said))]
    assert "I look up words" in str(MessageToDict(events[0]))
