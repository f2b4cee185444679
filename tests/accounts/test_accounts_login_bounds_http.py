"""What log-ins at once and from many places may do (conventions.md#bounds-on-strangers)."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from assay.accounts.password_proof import AT_ONCE, WAITING_PER_CALLER
from assay.accounts.ports import Client
from assay.app.web import build
from assay.common.fair_queue import FairQueue
from tests.support.live_service import PASSWORD, TestService

pytestmark = pytest.mark.slow

WRONG = {"email": "op@example.com", "password": "wrong wrong wrong"}
RIGHT = {"email": "op@example.com", "password": PASSWORD}


class Crowd:
    """Callers from as many addresses as are asked for."""

    def __init__(self, service: TestService) -> None:
        self._service = build(service.app)

    async def login(self, address: str, body: dict[str, str]) -> int:
        sender = httpx2.ASGITransport(self._service, client=(address, 1))
        async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
            return (await http.post("/operator/login", json=body)).status_code

    async def at_once(self, attempts: Sequence[tuple[str, dict[str, str]]]) -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.login(*one)) for one in attempts]
        return [task.result() for task in tasks]


async def test_sixty_wrong_logins_at_once_are_five_guesses(service: TestService) -> None:
    await service.operator()
    statuses = await Crowd(service).at_once([("198.51.100.1", WRONG)] * 60)
    assert Counter(statuses) == {401: 5, 429: 55}


async def test_an_account_is_guessed_at_from_many_networks_fifty_times_and_then_slowly(
    service: TestService,
) -> None:
    await service.operator()
    statuses = await Crowd(service).at_once([(f"198.51.100.{n}", WRONG) for n in range(120)])
    assert Counter(statuses) == {401: 50, 429: 70}


async def test_the_owner_gets_in_from_where_it_has_been_before_whatever_strangers_do(
    service: TestService,
) -> None:
    await service.operator()
    crowd = Crowd(service)
    assert await crowd.login("192.0.2.7", RIGHT) == 200
    flood = [(f"198.51.100.{n}", WRONG) for n in range(120)]
    *strangers, owner = await crowd.at_once([*flood, ("192.0.2.7", RIGHT)])
    assert owner == 200
    assert 503 not in strangers
    assert await crowd.login("203.0.113.5", RIGHT) == 429  # elsewhere it waits
    service.clock.move(60)
    assert await crowd.login("203.0.113.5", RIGHT) == 200


async def test_logins_of_six_hundred_addresses_shut_nobody_out(service: TestService) -> None:
    """At once; of strangers no more wait than there is room for, and the known go first."""
    await service.operator()
    crowd = Crowd(service)
    assert await crowd.login("192.0.2.7", RIGHT) == 200
    flood = [
        (f"10.{n >> 8}.{n & 255}.1", {"email": f"nobody{n}@b.cc", "password": "x" * 12})
        for n in range(600)
    ]
    statuses = await crowd.at_once([*flood, *[("192.0.2.7", RIGHT)] * 5])
    assert statuses[600:] == [200] * 5
    assert set(statuses[:600]) <= {401, 503}
    assert statuses.count(503) <= 600 - 512


async def test_known_accounts_of_few_networks_shut_no_owner_out(service: TestService) -> None:
    """Of accounts that are known in two networks 64 wait, as many as can."""
    await service.operator()
    crowd = Crowd(service)
    assert await crowd.login("192.0.2.7", RIGHT) == 200
    accounts = [(f"10.0.{n % 2}.{n // 3}", f"{n}@b.cc") for n in range(72)]
    for address, email in accounts:  # a network is known where an account was opened
        await service.app.sign_ups.register((email, PASSWORD, "N"), None, Client(address))
    hasher: Any = service.app.operators._hasher
    hasher._queue = FairQueue(AT_ONCE, 64, WAITING_PER_CALLER)
    async with (
        asyncio.TaskGroup() as group,
        hasher._queue.slot("a", is_known=True),
        hasher._queue.slot("b", is_known=True),
    ):
        flood: list[asyncio.Task[int]] = []
        for part in (accounts[:64], accounts[64:]):  # as many of one network as of the other wait
            flood += [
                group.create_task(crowd.login(address, RIGHT | {"email": email}))
                for address, email in part
            ]
            while hasher._queue.waiting + sum(task.done() for task in flood) < len(flood):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        owners = [group.create_task(crowd.login("192.0.2.7", RIGHT)) for _ in range(2)]
        while sum(task.done() for task in flood) < 10:
            await asyncio.sleep(0.01)
            assert not any(task.done() for task in owners)
    assert [task.result() for task in owners] == [200, 200]
    assert Counter(task.result() for task in flood) == {200: 62, 429: 2, 503: 8}


async def test_equal_answers_for_equal_floods_whether_or_not_there_is_an_account(
    service: TestService,
) -> None:
    await service.operator()
    crowd = Crowd(service)
    seen = []
    for email in ("op@example.com", "nobody@example.com"):
        flood = [(f"198.51.100.{n}", WRONG | {"email": email}) for n in range(60)]
        seen.append(Counter(await crowd.at_once(flood)))
    assert seen[0] == seen[1]


async def test_413_a_login_far_longer_than_any_is_not_kept_waiting(service: TestService) -> None:
    body = {"email": "x@b.cc", "password": "x" * 20_000}
    answer = await service.http.post("/operator/login", json=body)
    assert answer.status_code == 413
