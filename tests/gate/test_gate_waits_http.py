"""Slow calls of strangers lower nobody's grade: what waits for this service is no evidence."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.gate.test_gate_budget_http import agent, hosted, triggered
from tests.support.live_service import TestService, start_test_service
from tests.support.raw_server import Request, serving


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[TestService]:
    """The service with budgets for loopback too."""
    async with start_test_service(tmp_path / "data", egress_budget_private=True) as opened:
        yield opened


@asynccontextmanager
async def strangers_call(
    service: TestService, url: str, arrive: asyncio.Semaphore
) -> AsyncGenerator[None]:
    """Two Free accounts make two calls each, and none of them ends."""
    tokens: list[dict[str, str]] = []
    for email in ("x@example.com", "y@example.com"):
        await service.operator(email)
        tokens.append(await service.token(email))
    body = {"path": url, "agentId": "8", "method": "GET"}
    async with asyncio.TaskGroup() as group:
        calls = [
            group.create_task(service.http.post("/operator/playground", headers=t, json=body))
            for t in tokens
            for _ in range(2)
        ]
        for _ in tokens:
            await arrive.acquire()
        yield
        for call in calls:
            call.cancel()


async def test_held_slots_of_an_address_lower_no_grade(strict: TestService) -> None:
    arrived = asyncio.Semaphore(0)

    async def hold(request: Request, writer: asyncio.StreamWriter) -> None:
        del request, writer
        arrived.release()
        await asyncio.Event().wait()

    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server, serving(hold) as evil:
        strict.chain.agents["7"] = agent("7", server.url(host="localhost"))
        before = (await strict.gate(headers)).json()
        strict.clock.move(61)
        async with strangers_call(strict, evil.url("/x"), arrived):
            fresh = (await strict.gate(headers, ttlMs=1)).json()
            assert (fresh["sandboxRan"], fresh["score"]) == (True, before["score"])
            told = await triggered(strict)
            assert told["cachedReason"] == "egress_budget"
            assert (told["cached"], told["score"]) == (True, before["score"])
        after = (await strict.gate(headers)).json()
        assert (after["allow"], after["score"]) == (before["allow"], before["score"])
        assert after["evaluatedAt"] == fresh["evaluatedAt"]
