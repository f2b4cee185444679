"""Wrappers and their revisions are rows and bytes of the account that makes them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from assay.db.schema.everything import wrappers
from assay.wrappers import schemas as wire
from assay.wrappers.model import WrapperConfig
from assay.wrappers.routes_configs import AT_ONCE
from assay.wrappers.service import KEPT_MAX
from tests.support.live_service import TestService, refused, start_test_service
from tests.wrappers.test_endpoint_changes_http import PAID, change, made


async def test_429_who_creates_changes_and_stops_wrappers_over_and_over(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_rows=12) as service:
        await service.operator()
        token = await service.token()
        wrapper = await made(service, token, path="/kept")
        answers = [
            await change(service, token, wrapper["id"], description=f"version {n}")
            for n in range(20)
        ]
        statuses = [answer.status_code for answer in answers]
        assert statuses == sorted(statuses)
        assert set(statuses) == {200, 429}
        body = refused(answers[-1], 429, "quota_exceeded")
        assert body["quota"] == "rows"
        answer = await service.http.post("/operator/endpoints", json=PAID, headers=token)
        refused(answer, 429, "quota_exceeded")
        # It can be stopped all the same.
        stopped = await change(service, token, wrapper["id"], active=False)
        assert stopped.status_code == 200, stopped.text


async def test_429_revisions_count_by_their_bytes(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_disk_mib=1) as service:
        await service.operator()
        token = await service.token()
        wrapper = await made(service, token, path="/kept")
        secret = {"upstreamAuthHeader": "x-key"}
        for n in range(200):
            text = f"{n:03}" * 300
            answer = await change(
                service,
                token,
                wrapper["id"],
                description=text,
                **secret,
                upstreamAuthSecret=8 * text,
            )
            if answer.status_code != 200:
                break
        assert refused(answer, 429, "quota_exceeded")["quota"] == "disk_bytes"
        assert n > 80


async def test_400_stopped_wrappers_are_bounded_too_and_can_be_used_again(tmp_path: Path) -> None:
    """They are kept, for calls and payments name them, and one list holds all of an account."""
    async with start_test_service(tmp_path) as service:
        await service.operator()
        token = await service.token()
        wrapper = await made(service, token, path="/kept")
        stopped = await change(service, token, wrapper["id"], active=False)
        assert stopped.status_code == 200, stopped.text
        await copied(service, KEPT_MAX)
        answer = await service.http.post("/operator/endpoints", json=PAID, headers=token)
        body = refused(answer, 400, "invalid_request")
        assert "5,000 wrappers" in body["details"][0]["message"]
        again = await change(service, token, wrapper["id"], active=True, path="/another")
        assert again.status_code == 200, again.text


async def copied(service: TestService, count: int) -> None:
    """As many wrappers in all, each but one a copy."""
    async with service.app.database.write() as connection:
        names = wrappers.c.keys()
        values = ["'copy ' || n" if name == "id" else name for name in names]
        await connection.exec_driver_sql(
            "WITH RECURSIVE s(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM s"  # noqa: S608 - our own names
            f" WHERE n < {count}) INSERT INTO wrappers ({', '.join(names)})"
            f" SELECT {', '.join(values)} FROM wrappers, s"
        )


async def test_a_list_of_all_wrappers_of_an_account_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 of them took 120 ms, in which nobody else was answered."""
    turn, of_turns = 0, Counter[int]()
    written = wire.warned

    def counted(config: WrapperConfig, warnings: Sequence[str]) -> wire.WarnedEndpointResponse:
        of_turns[turn] += 1
        return written(config, warnings)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async with start_test_service(tmp_path) as service:
        await service.operator()
        token = await service.token()
        wrapper = await made(service, token, path="/kept")
        await change(service, token, wrapper["id"], active=False)
        [alone] = (await service.http.get("/operator/endpoints", headers=token)).json()
        await copied(service, 1_000)
        monkeypatch.setattr(wire, "warned", counted)
        async with asyncio.TaskGroup() as group:
            counting = group.create_task(others())
            listed = (await service.http.get("/operator/endpoints", headers=token)).json()
            counting.cancel()
        assert [one | {"id": wrapper["id"]} for one in listed] == 1_000 * [alone]
        assert of_turns.total() == 1_000
        assert max(of_turns.values()) <= AT_ONCE
