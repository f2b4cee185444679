"""`ttlMs` has elapsed and the host has no room for a whole visit: three requests look again."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from assay.evaluation.signals.sandbox import RECHECK_REQUESTS
from tests.gate.test_gate_budget_http import (
    hosted,
    send_often,
    triggered,
    use_up,
)
from tests.support.live_service import TestService, start_test_service
from tests.support.raw_server import RawServer

REQUESTS_A_MINUTE = 60


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[TestService]:
    """The service with budgets for loopback too."""
    async with start_test_service(tmp_path / "data", egress_budget_private=True) as opened:
        yield opened


async def leave(service: TestService, server: RawServer, requests: int) -> None:
    """A minute in which others leave the host so many requests."""
    service.clock.move(61)
    await send_often(service, server.url("/x"), REQUESTS_A_MINUTE - requests)
    service.clock.move(1)


async def asked(service: TestService, headers: dict[str, str]) -> dict[str, Any]:
    answer = await service.gate(headers, ttlMs=1)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_three_requests_do_where_a_whole_visit_has_no_room(strict: TestService) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        before = await asked(strict, headers)
        assert "recheck" not in before
        await leave(strict, server, 5)
        seen = len(server.requests)
        told = await asked(strict, headers)
        assert 1 <= len(server.requests) - seen <= RECHECK_REQUESTS
        assert (told["sandboxRan"], told["cached"], told["recheck"]) == (True, False, True)
        assert "ttlFloor" not in told
        assert "cachedReason" not in told
        assert told["evaluatedAt"] > before["evaluatedAt"]
        assert (told["score"], told["tier"]) == (before["score"], before["tier"])
        assert told["ladder"] == before["ladder"]


async def test_without_room_for_these_either_the_newest_evaluation_answers(
    strict: TestService,
) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        before = await asked(strict, headers)
        strict.clock.move(61)
        await use_up(strict, server)
        told = await asked(strict, headers)
        assert (told["sandboxRan"], told["cached"], told["ttlFloor"]) == (False, True, True)
        assert told["evaluatedAt"] == before["evaluatedAt"]


async def test_a_re_check_stands_for_a_day_and_a_whole_visit_for_seven(strict: TestService) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        before = await asked(strict, headers)
        assert before["validUntil"].startswith("2026-03-08")
        await leave(strict, server, 5)
        assert (await asked(strict, headers))["validUntil"].startswith("2026-03-02")


async def test_nobody_there_lowers_nothing(
    strict: TestService,
) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        before = await asked(strict, headers)
        await leave(strict, server, 5)
    told = await asked(strict, headers)
    assert (told["sandboxRan"], told["recheck"]) == (True, True)
    assert told["score"] == before["score"]


async def test_an_agent_of_which_nothing_is_known_is_not_re_checked(strict: TestService) -> None:
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        await leave(strict, server, 5)
        told = await asked(strict, headers)
        assert "recheck" not in told
        assert told["confidence"] < 0.5
        assert any("egress_budget" in reason for reason in told["reasons"])


async def test_who_asks_for_a_visit_gets_one_or_none(strict: TestService) -> None:
    """A trigger is no `ttlMs`: it says what was tested."""
    headers = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        await asked(strict, headers)
        await leave(strict, server, 5)
        told = await triggered(strict)
        assert (told["cached"], told["cachedReason"]) == (True, "egress_budget")
