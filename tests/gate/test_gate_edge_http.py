"""What the edge promises holds in the gate's lane too, which the framework never sees."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import never
from tests.support.live_service import TestService, refused, start_test_service


async def chunks(size: int, sent: list[int]) -> AsyncIterator[bytes]:
    """Ten megabytes in pieces; `sent` says how much of them was ever asked for."""
    for _ in range(10 * 2**20 // size):
        sent.append(size)
        yield b" " * size


async def test_413_what_is_too_large_is_not_read_to_its_end(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    sent: list[int] = []
    body = chunks(2**16, sent)
    answer = await service.http.post("/operator/gate/7", headers=headers, content=body)
    refused(answer, 413, "payload_too_large")
    assert sum(sent) <= 2**20 + 2 * 2**16


async def test_413_a_length_that_says_too_much_is_refused_unread(service: TestService) -> None:
    headers = (
        await service.operator() | await service.session() | {"content-length": str(10 * 2**20)}
    )
    sent: list[int] = []
    body = chunks(2**16, sent)
    answer = await service.http.post("/operator/gate/7", headers=headers, content=body)
    refused(answer, 413, "payload_too_large")
    assert sent == []


async def test_401_nobody_unknown_makes_us_read_a_body(service: TestService) -> None:
    sent: list[int] = []
    body = chunks(2**16, sent)
    refused(await service.http.post("/operator/gate/7", content=body), 401, "unauthorized")
    assert sent == []


async def test_408_a_body_that_never_comes(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.server.request_context.BODY_S", 0.05)
    headers = await service.operator() | await service.session()

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await never()

    answer = await service.http.post("/operator/gate/7", headers=headers, content=slow())
    refused(answer, 408, "request_timeout")


async def test_500_a_fault_of_ours_says_nothing_of_the_inside(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = await service.operator() | await service.session()

    def broken(*_: object) -> object:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(type(service.app.decision_tokens), "issue", broken)
    answer = await service.gate(headers)
    refused(answer, 500, "internal_error")
    assert "inside" not in answer.text


async def test_429_an_operator_out_of_breath_is_told_when_to_come_again(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, keyed_per_minute=2) as service:
        headers = await service.operator() | await service.session()
        answers = [await service.gate(headers) for _ in range(4)]
        assert [a.status_code for a in answers] == [200, 200, 429, 429]
        limits = [int(a.headers["ratelimit-limit"]) for a in answers]
        assert limits == [2, 2, 2, 2]
        refused(answers[3], 429, "rate_limited")
        service.clock.move(int(answers[3].headers["retry-after"]))
        assert (await service.gate(headers)).status_code == 200


async def test_429_of_traffic_is_no_call_of_the_monthly_allowance(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, keyed_per_minute=1) as service:
        headers = await service.operator() | await service.session()
        statuses = [(await service.gate(headers)).status_code for _ in range(5)]
        (operator,) = await service.app.operators.list_for_admin()
        assert statuses == [200, 429, 429, 429, 429]
        assert (await service.app.allowance.usage(operator)).used == 1


async def test_a_revoked_key_is_counted_as_a_guess_of_its_address(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, keyed_per_minute=7) as service:
        headers = await service.operator() | await service.session()
        await service.gate(headers)
        assert (await service.gate(headers)).headers["ratelimit-limit"] == "7"
        token = await service.token()
        (key,) = (await service.http.get("/operator/keys", headers=token)).json()
        await service.http.delete(f"/operator/keys/{key['id']}", headers=token)
        refusal = await service.gate(headers)
        refused(refusal, 401, "unauthorized")
        assert refusal.headers["ratelimit-limit"] == "60"


async def test_calls_at_once_never_pass_the_allowance_together(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    service.app.allowance._limit = 5
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(service.gate(headers)) for _ in range(20)]
    statuses = sorted(call.result().status_code for call in calls)
    assert statuses == [200] * 5 + [429] * 15


async def test_calls_at_once_share_one_evaluation(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(service.gate(headers)) for _ in range(10)]
    told: list[dict[str, Any]] = [call.result().json() for call in calls]
    assert {t["evaluatedAt"] for t in told} == {told[0]["evaluatedAt"]}
    newest = await service.http.get("/operator/agent/7/snapshot")
    assert newest.json()["previousHash"] == "0x0"
