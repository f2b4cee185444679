"""The monthly allowance at `GET /operator/me`, and the moment at which a month ends."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_service import TestService, refused, start_test_service


async def allowance(service: TestService) -> dict[str, Any]:
    me = await service.http.get("/operator/me", headers=await service.token())
    assert me.status_code == 200, me.text
    return me.json()["allowance"]


def limit_to(service: TestService, calls: int) -> None:
    limited: Any = service.app.allowance
    limited._limit = calls


async def test_a_new_account_has_used_nothing(service: TestService) -> None:
    await service.operator()
    assert await allowance(service) == {
        "used": 0,
        "limit": 100_000,
        "resetsAt": "2026-04-01T00:00:00.000Z",
    }


async def test_it_counts_answered_gates_and_nothing_else(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    for _ in range(3):
        assert (await service.gate(headers)).status_code == 200
    for wrong in ("999", "abc"):
        assert (await service.gate(headers, wrong)).status_code in {400, 404}
    await service.http.get("/operator/agent/7", headers=headers)
    assert (await allowance(service))["used"] == 3
    await service.app.flush()
    assert (await allowance(service))["used"] == 3


async def test_what_it_says_is_what_the_refusal_says(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    limit_to(service, 2)
    statuses = [(await service.gate(headers)).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    body = refused(await service.gate(headers), 429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")
    assert await allowance(service) == {name: body[name] for name in ("used", "limit", "resetsAt")}


async def test_pro_has_no_limit_and_is_counted_all_the_same(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await service.gate(headers)
    await service.pro()
    await service.gate(headers)
    shown = await allowance(service)
    assert (shown["used"], shown["limit"]) == (2, None)


async def test_a_new_name_is_answered_with_it_too(service: TestService) -> None:
    await service.operator()
    token = await service.token()
    changed = await service.http.patch("/operator/me", headers=token, json={"name": "Ada"})
    assert changed.json()["allowance"] == await allowance(service)


async def test_it_is_each_accounts_own(service: TestService) -> None:
    mine = await service.operator() | await service.session()
    await service.gate(mine)
    await service.operator("other@example.com")
    theirs = await service.http.get(
        "/operator/me", headers=await service.token("other@example.com")
    )
    assert theirs.json()["allowance"]["used"] == 0


async def test_another_process_says_the_same_once_it_is_written_down(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with start_test_service(folder) as one, start_test_service(folder) as other:
        headers = await one.operator() | await one.session()
        assert (await allowance(other))["used"] == 0
        for _ in range(4):
            await one.gate(headers)
        await one.app.flush()
        assert (await allowance(other))["used"] == 4
        elsewhere = {**headers, **await other.session()}
        await other.gate(elsewhere)
        assert (await allowance(other))["used"] == 5
        assert (await allowance(one))["used"] in {4, 5}  # it writes down by itself as well
        await other.app.flush()
        assert (await allowance(one))["used"] == 5


MONTHS = [
    (datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)),
    (datetime(2026, 12, 31, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
    (datetime(2027, 2, 10, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)),
    (datetime(2028, 2, 28, tzinfo=UTC), datetime(2028, 3, 1, tzinfo=UTC)),
    (datetime(2100, 2, 28, tzinfo=UTC), datetime(2100, 3, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize(("within", "end"), MONTHS, ids=[f"{m[1]:%Y-%m}" for m in MONTHS])
async def test_the_last_microsecond_of_a_month_is_its_own_and_the_next_is_free(
    service: TestService, within: datetime, end: datetime
) -> None:
    key, moment = await service.operator(), timedelta(microseconds=1)
    limit_to(service, 2)
    service.clock.set(within)
    first = key | await service.session()
    assert (await service.gate(first)).status_code == 200
    service.clock.set(end - moment)
    last = key | await service.session()
    assert (await service.gate(last)).status_code == 200
    refusal = await service.gate(last)
    body = refused(refusal, 429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")
    assert body["resetsAt"] == f"{end:%Y-%m-%dT%H:%M:%S}.000Z"
    assert refusal.headers["retry-after"] == "1"
    assert (await allowance(service))["used"] == 2
    service.clock.move(1e-6)
    assert service.clock.now() == end
    shown = await allowance(service)
    assert shown["used"] == 0
    assert shown["resetsAt"].startswith(f"{end + timedelta(days=31):%Y-%m}-01T00:00:00")
    assert (await service.gate(last)).status_code == 200
    assert (await allowance(service))["used"] == 1


async def test_a_leap_days_calls_are_februarys(service: TestService) -> None:
    key = await service.operator()
    service.clock.set(datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC))
    assert (await service.gate(key | await service.session())).status_code == 200
    shown = await allowance(service)
    assert (shown["used"], shown["resetsAt"]) == (1, "2028-03-01T00:00:00.000Z")


async def test_what_was_counted_before_midnight_is_written_to_its_own_month(
    service: TestService,
) -> None:
    """The flush comes a second later, in the next month."""
    key = await service.operator()
    service.clock.set(datetime(2026, 3, 31, 23, 59, 59, 999_999, UTC))
    assert (await service.gate(key | await service.session())).status_code == 200
    service.clock.move(1)
    await service.app.flush()
    [operator] = await service.app.operators.list_for_admin()
    store: Any = service.app.allowance
    assert await store._store.used(operator.id, "2026-03") == 1
    assert await store._store.used(operator.id, "2026-04") == 0
    assert (await allowance(service))["used"] == 0
