"""Whether callers may be sent to a process, and what strangers learn of it."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.app.readiness import CHECKED_S, LAG_KEPT_S, LoopLag
from assay.common.errors import Unavailable
from tests.support.eventually import eventually_here
from tests.support.live_service import TestService, start_test_service

LAG_MAX_S = 60.0


@pytest.fixture(autouse=True)
def beside_other_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop of these tests may be late by seconds."""
    monkeypatch.setattr("assay.app.readiness.LAG_MAX_S", LAG_MAX_S)


def lose_database(service: TestService, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on the database does not answer; how often it was asked."""
    asked: list[int] = []

    async def gone() -> str:
        asked.append(1)
        await asyncio.sleep(0)
        raise Unavailable("The database cannot be used now.")

    monkeypatch.setattr(service.app.database, "revision", gone)
    return asked


async def later(service: TestService) -> None:
    service.clock.move(CHECKED_S)


async def test_a_process_that_works_is_alive_and_ready(service: TestService) -> None:
    for path in ("/livez", "/readyz"):
        answer = await service.http.get(path)
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert "degraded" not in (await service.http.get("/operator/health")).json()


async def test_503_without_a_database_and_200_once_it_is_back(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        lose_database(service, patched)
        await later(service)
        answer = await service.http.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert "database" not in answer.text  # a stranger learns that, and no more
        assert (await service.http.get("/livez")).status_code == 200
        health = await service.http.get("/operator/health")
        assert (health.status_code, health.json()["degraded"]) == (200, ["database"])
    await later(service)
    assert (await service.http.get("/readyz")).status_code == 200


async def test_a_database_that_goes_leaves_a_process_ready_as_long_as_it_serves_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_test_service(tmp_path, grace_s=60) as service:
        assert (await service.http.get("/readyz")).status_code == 200
        lose_database(service, monkeypatch)
        await later(service)
        assert (await service.http.get("/readyz")).status_code == 200
        assert (await service.http.get("/operator/health")).json()["degraded"] == ["database"]
        service.clock.move(60)
        assert (await service.http.get("/readyz")).status_code == 503
        assert (await service.http.get("/operator/health")).json()["degraded"] == ["database"]


async def test_however_many_ask_the_database_is_asked_once_a_second(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = lose_database(service, monkeypatch)
    for _ in range(3):
        await later(service)
        async with asyncio.TaskGroup() as group:
            for _ in range(40):
                group.create_task(service.http.get("/readyz"))
    assert len(asked) == 3


async def test_a_database_that_hangs_delays_the_answer_by_a_second_at_most(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs() -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr("assay.app.readiness.DATABASE_S", 0.01)
    monkeypatch.setattr(service.app.database, "revision", hangs)
    await later(service)
    assert (await service.http.get("/readyz")).status_code == 503


async def test_503_while_it_stops_though_calls_are_still_answered(service: TestService) -> None:
    service.app.readiness.drain()
    assert (await service.http.get("/readyz")).status_code == 503
    assert (await service.http.get("/livez")).status_code == 200
    assert (await service.http.get("/api")).status_code == 200


async def test_a_blocked_loop_is_unready_until_it_has_kept_up_for_a_while(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.app.readiness.lag, "most_s", lambda: LAG_MAX_S + 0.1)
    assert (await service.http.get("/readyz")).status_code == 503
    monkeypatch.setattr(service.app.readiness.lag, "most_s", lambda: LAG_MAX_S)
    assert (await service.http.get("/readyz")).status_code == 200


async def test_the_lag_of_a_loop_is_measured_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    lag, loop = LoopLag(), asyncio.get_running_loop()
    monkeypatch.setattr("assay.app.readiness._SAMPLE_S", 0.01)
    measuring = loop.create_task(lag.measure_forever())
    await asyncio.sleep(0)
    time.sleep(0.2)  # noqa: ASYNC251 - that is the fault
    await eventually_here(lag.most_s, lambda most_s: most_s > 0.1)
    lag.forget()
    assert lag.most_s() < 0.1
    time.sleep(0.2)  # noqa: ASYNC251 - that is the fault
    await eventually_here(lag.most_s, lambda most_s: most_s > 0.1)
    now_s = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now_s + LAG_KEPT_S + 1)
    assert lag.most_s() == 0
    monkeypatch.undo()
    measuring.cancel()


@pytest.mark.parametrize(
    ("open_breakers", "names"), [([True, True], ["rpc:local"]), ([True, False], []), ([], [])]
)
async def test_a_network_is_lost_with_its_last_node(
    service: TestService, monkeypatch: pytest.MonkeyPatch, open_breakers: list[bool], names: Any
) -> None:
    for number, is_open in enumerate(open_breakers):
        breaker = SimpleNamespace(is_open=is_open)
        endpoint: Any = SimpleNamespace(breaker=breaker)
        monkeypatch.setitem(service.app.rpc.endpoints, ("local", str(number)), endpoint)
    answer = await service.http.get("/operator/health")
    assert answer.json().get("degraded", []) == names
    assert (await service.http.get("/readyz")).status_code == 200


async def test_a_newer_schema_is_shown_and_served(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes may be coming up beside this one."""

    async def newer() -> str:
        return "9999"

    monkeypatch.setattr(service.app.database, "revision", newer)
    await later(service)
    assert (await service.http.get("/readyz")).status_code == 200
    assert (await service.http.get("/operator/health")).json()["degraded"] == ["schema"]


async def test_a_facilitator_that_is_gone_is_shown(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = SimpleNamespace(problem="it does not answer")
    monkeypatch.setattr(service.app.settling, "facilitator_seen", gone)
    assert (await service.http.get("/operator/health")).json()["degraded"] == ["facilitator"]


async def test_the_revision_is_the_databases(tmp_path: Path) -> None:
    async with start_test_service(tmp_path / "data") as service:
        async with service.app.database.write() as connection:
            await connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0000'")
        await later(service)
        health = (await service.http.get("/operator/health")).json()
        assert health["degraded"] == ["schema"]
