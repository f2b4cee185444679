"""What changes while a call is half-way through is not undone by what that call remembers."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from assay.accounts.store_operators import SqlApiKeyStore
from assay.db.state import SqlSharedState
from assay.evaluation.store_evaluations import SqlEvaluationStore
from tests.support.live_service import OWNER_KEY, TestService, address, refused

Hold = Callable[[type, str], tuple[asyncio.Event, asyncio.Event]]


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Hold:
    """Stops the first call of a store's method after it has read and before it answers."""

    def held(store: type, method: str) -> tuple[asyncio.Event, asyncio.Event]:
        has_read, go_on = asyncio.Event(), asyncio.Event()
        real: Any = getattr(store, method)

        async def slow(*args: Any) -> Any:
            answer = await real(*args)
            if not has_read.is_set():
                has_read.set()
                await go_on.wait()
            return answer

        monkeypatch.setattr(store, method, slow)
        return has_read, go_on

    return held


async def overtaken(
    call: asyncio.Task[httpx2.Response],
    events: tuple[asyncio.Event, asyncio.Event],
    change: Callable[[], Any],
) -> httpx2.Response:
    """The answer of a call during which something else happened."""
    has_read, go_on = events
    await asyncio.wait_for(has_read.wait(), 5)
    assert (await change()).status_code == 200
    go_on.set()
    return await call


async def test_a_key_revoked_while_it_was_being_looked_up_is_not_remembered(
    service: TestService, hold: Hold
) -> None:
    headers, token = await service.operator() | await service.session(), await service.token()
    (key,) = (await service.http.get("/operator/keys", headers=token)).json()
    events = hold(SqlApiKeyStore, "find_by_hash")
    async with asyncio.TaskGroup() as group:
        call = group.create_task(service.gate(headers))
        await overtaken(
            call, events, lambda: service.http.delete(f"/operator/keys/{key['id']}", headers=token)
        )
    refused(await service.gate(headers), 401, "unauthorized")


async def test_a_session_ended_while_it_was_being_checked_is_not_remembered(
    service: TestService, hold: Hold
) -> None:
    op, session = await service.operator(), await service.session()
    path = f"/operator/key/{address(OWNER_KEY)}/session"
    events = hold(SqlSharedState, "get")
    async with asyncio.TaskGroup() as group:
        call = group.create_task(service.gate(op | session))
        await overtaken(call, events, lambda: service.http.delete(path, headers=session))
    refused(await service.gate(op | session), 401, "challenge_required")


async def test_an_evaluation_made_while_an_older_one_was_read_is_the_one_remembered(
    service: TestService, hold: Hold
) -> None:
    headers = await service.operator() | await service.session()
    await service.http.post("/operator/trigger-sandbox/7")
    service.clock.move(5)
    events = hold(SqlEvaluationStore, "newest")
    async with asyncio.TaskGroup() as group:
        call = group.create_task(service.gate(headers))
        older = await overtaken(
            call, events, lambda: service.http.post("/operator/trigger-sandbox/7")
        )
    newer = await service.gate(headers)
    assert newer.json()["evaluatedAt"] > older.json()["evaluatedAt"]
