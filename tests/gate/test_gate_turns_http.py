"""Visits to one host that begin at once: as many as it has room for are whole, no other begins."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.gate.test_gate_budget_http import HOST_FILE, hosted, triggered
from tests.support.live_service import TestService, start_test_service

pytestmark = pytest.mark.slow

AGENTS = tuple("23456789")
SHARED, ALL = 30, 60
"""Requests a minute that a host gets: of what anybody triggers, and in all."""


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[TestService]:
    """The service with budgets for loopback too, and time enough on a loaded machine."""
    settings = {"gate_evaluation_s": 60, "sandbox_evaluation_s": 60}
    async with start_test_service(
        tmp_path / "data", egress_budget_private=True, **settings
    ) as opened:
        yield opened


async def gated(service: TestService, headers: dict[str, str], agent_id: str) -> dict[str, Any]:
    answer = await service.gate(headers, agent_id, ttlMs=1)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_of_visits_triggered_at_once_as_many_are_whole_as_the_budget_holds(
    strict: TestService,
) -> None:
    async with hosted(strict, *AGENTS) as server:
        assert is_tested(await triggered(strict, "7"))
        visit = len(server.requests)
        strict.clock.move(61)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(triggered(strict, name)) for name in AGENTS]
        answers = [task.result() for task in asked]
        whole = [one for one in answers if not one["cached"] and is_tested(one)]
        assert len(whole) >= SHARED // visit >= 1
        assert all(one["testSummary"]["unfinished"] == 0 for one in whole)
        more = len(server.requests) - visit * (1 + len(whole))
        assert 0 <= more <= HOST_FILE  # nothing was sent for the others
        others = [one for one in answers if one not in whole]
        assert {one["cachedReason"] for one in others} == {"egress_budget"}


def is_tested(told: dict[str, Any]) -> bool:
    return told["testSummary"]["status"] == "tested"


@pytest.mark.parametrize("accounts", [1, 8])
async def test_gates_at_once_are_answered_and_lower_no_grade(
    strict: TestService, accounts: int
) -> None:
    session = await strict.session()
    keys = [await strict.operator(f"{number}@e.com") for number in range(accounts)]
    callers = [keys[number % accounts] | session for number in range(len(AGENTS))]
    async with hosted(strict, *AGENTS) as server:
        before: list[float] = []
        for caller, name in zip(callers, AGENTS, strict=True):
            told = await gated(strict, caller, name)
            assert told["sandboxRan"] is True
            before.append(told["score"])
            strict.clock.move(61)
        session = await strict.session()
        callers = [caller | session for caller in callers]
        seen = len(server.requests)
        visit = seen // len(AGENTS)
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(gated(strict, caller, name))
                for caller, name in zip(callers, AGENTS, strict=True)
            ]
        answers = [task.result() for task in asked]
        ran = [told for told in answers if told["sandboxRan"] and "recheck" not in told]
        assert len(ran) >= (ALL - HOST_FILE) // visit >= 2
        # The host's file takes a request of the last visit that would have been whole, once; on a
        # busy machine that visit ends for another reason.
        assert 0 <= len(server.requests) - seen - visit * len(ran) <= visit
        assert [told["score"] for told in answers] == before
        others = [told for told in answers if not told["sandboxRan"]]
        assert {told["cachedReason"] for told in others} <= {"egress_budget"}
        assert len(server.requests) - seen <= ALL
