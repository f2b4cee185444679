"""What deliveries cost their owners, and whose turn it is (conventions.md#bounds-on-strangers)."""

import asyncio
from pathlib import Path

from assay.accounts.model import Role
from assay.common.costs import Bearer, Cost
from tests.support.live_service import TestService, start_test_service
from tests.support.raw_server import Request, plain, serving

TRIGGER = "/operator/trigger-sandbox/7"
LIMITS = {"sandbox_per_minute": 100_000, "sandbox_per_agent_minute": 100_000}
ATTACKERS = 8


async def _register(service: TestService, who: dict[str, str], url: str) -> None:
    body = {"event": "evaluation_complete", "url": url}
    answer = await service.http.post("/operator/webhooks/register", json=body, headers=who)
    assert answer.status_code == 201, answer.text


async def _rows(service: TestService, who: dict[str, str]) -> int:
    answer = await service.http.get("/operator/webhooks/deliveries", headers=who)
    return answer.json()["total"]


async def _bearer(service: TestService, email: str) -> Bearer:
    return Bearer(f"operator {(await service.app.operators.find_for_admin(email)).id}")


async def test_deliveries_are_rows_of_the_registrations_owner(tmp_path: Path) -> None:
    """Beyond its quota none is written; whoever else listens, and the evaluation, are not hit."""
    async with start_test_service(tmp_path, quota_rows=25, **LIMITS) as service:
        key, other = await service.operator(), await service.operator("b@example.com")
        for n in range(10):
            await _register(service, key, f"https://hooks.example.com/{n}")
        await _register(service, other, "https://hooks.example.com/x")
        before = service.app.costs.used(Cost.ROWS, await _bearer(service, "op@example.com"))
        assert (await service.http.post(TRIGGER)).status_code == 200
        used = service.app.costs.used(Cost.ROWS, await _bearer(service, "op@example.com"))
        assert used - before == 10
        for _ in range(3):
            service.clock.move(60)
            assert (await service.http.post(TRIGGER)).status_code == 200
        assert await _rows(service, key) == 25 - before
        assert await _rows(service, other) == 4
        await service.operator("admin@example.com")
        await service.app.operators.set_role_for_admin("admin@example.com", Role.ADMIN)
        token = await service.token("admin@example.com")
        stats = (await service.http.get("/operator/admin/stats", headers=token)).json()
        assert stats["undelivered"] == 40 - (25 - before)


async def test_quotas_of_rows_do_not_hold_for_pro_accounts(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_rows=5, **LIMITS) as service:
        key = await service.operator()
        await service.pro()
        for n in range(10):
            await _register(service, key, f"https://hooks.example.com/{n}")
        assert (await service.http.post(TRIGGER)).status_code == 200
        assert await _rows(service, key) == 10


async def test_one_accounts_event_does_not_wait_for_others_slow_receivers(tmp_path: Path) -> None:
    """Deliveries take turns by account; accounts nothing is known of have few at a time."""
    async with start_test_service(tmp_path, **LIMITS) as service:
        hung: list[Request] = []
        arrived, over = asyncio.Event(), asyncio.Event()
        before: list[int] = []

        async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
            hung.append(request)
            await over.wait()
            writer.write(plain(b"{}"))

        async def answer(_: Request, writer: asyncio.StreamWriter) -> None:
            before.append(len(hung))
            writer.write(plain(b"{}"))
            arrived.set()

        async with serving(hang) as slow, serving(answer) as quick:
            for n in range(ATTACKERS):
                attacker = await service.operator(f"slow{n}@example.com")
                for m in range(20):
                    await _register(service, attacker, slow.url(f"/{n}/{m}"))
            await _register(service, await service.operator(), quick.url("/"))
            assert (await service.http.post(TRIGGER)).status_code == 200
            async with asyncio.timeout(60):
                await arrived.wait()
            over.set()
        assert before[0] <= 2 * ATTACKERS
