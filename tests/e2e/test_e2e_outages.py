"""A serving process whose PostgreSQL goes away under steady calls, and comes back."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay_demo.world import World
from tests.support.assay import operator, served, session
from tests.support.databases import migrated_postgresql
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.postgres import postgres
from tests.support.shop import SELLER, Shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FAULT_S, WELL_S = 25.0, 6.0
CALLERS = 4
PAUSE_S = 0.1
"""Between two calls of a caller: forty calls a second, a quarter of each kind."""


class Calls:
    """Callers that go on whatever happens, and what they were answered."""

    def __init__(
        self, http: httpx2.AsyncClient, kinds: dict[str, tuple[str, dict[str, str]]]
    ) -> None:
        self._http, self._kinds = http, kinds
        self.answers: Counter[tuple[str, int]] = Counter()
        self.waits: set[str] = set()
        self.refusals: Counter[tuple[str, str]] = Counter()
        """Why calls failed that should not have."""

    async def ask(self, kind: str) -> int:
        url, headers = self._kinds[kind]
        method = "POST" if kind == "gate" else "GET"
        answer = await self._http.request(method, url, headers=headers)
        if answer.status_code == 503:
            self.waits.add(answer.headers.get("retry-after", "none"))
        if answer.status_code >= 400 and kind != "sold":
            self.refusals[kind, answer.text] += 1
        return answer.status_code

    async def forever(self) -> None:
        while True:
            kind = random.choice([*self._kinds])
            self.answers[kind, await self.ask(kind)] += 1
            await asyncio.sleep(PAUSE_S)

    def taken(self) -> Counter[tuple[str, int]]:
        """The answers since the last look."""
        taken, self.answers = self.answers, Counter()
        return taken


@asynccontextmanager
async def calling(calls: Calls) -> AsyncGenerator[None]:
    async with asyncio.TaskGroup() as group:
        callers = [group.create_task(calls.forever()) for _ in range(CALLERS)]
        yield
        for caller in callers:
            caller.cancel()


@asynccontextmanager
async def shops(world: World, folder: Path) -> AsyncGenerator[tuple[Calls, FaultProxy]]:
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(fault_proxy(postgres().port))
        url = proxy.in_front_of(await asyncio.to_thread(migrated_postgresql))
        up = stack.enter_context(upstream())
        started = served(
            folder,
            {"local": dict(world.network_override)},
            ASSAY_DATABASE_URL=url,
            ASSAY_KEYED_PER_MINUTE="100000",
        )
        server = await asyncio.to_thread(started.__enter__)

        async def stop() -> None:
            await asyncio.to_thread(started.__exit__, None, None, None)

        stack.push_async_callback(stop)
        kinds = await asyncio.to_thread(_kinds, server, up, world)
        http = httpx2.AsyncClient(base_url=server.address, timeout=60, trust_env=False)
        yield Calls(await stack.enter_async_context(http), kinds), proxy


def _kinds(server: Any, up: Any, world: World) -> dict[str, tuple[str, dict[str, str]]]:
    agent = next(one for one in world.agents if one.name.lower().startswith("steady"))
    with httpx2.Client(base_url=server.address, timeout=60, trust_env=False) as http:
        shop = Shop(server, http, None, up)  # type: ignore[arg-type] - nothing is settled
        shop.sign_up()
        proven = {**session(http, agent.owner_key), "x-agent-id": agent.agent_id}
        gate = operator(http, "other@example.com") | proven
        kinds = {
            "free": (shop.wrap("/echo", 0), {}),
            "gated": (shop.wrap("/status/200", 0, trustEnabled=True, minScore=0), proven),
            "gate": (f"/operator/gate/{agent.agent_id}", gate),
            "sold": (shop.wrap("/large/1", payoutAddress=SELLER.address), {}),
        }
        for kind, (url, headers) in kinds.items():
            answer = http.request("POST" if kind == "gate" else "GET", url, headers=headers)
            assert answer.status_code == (402 if kind == "sold" else 200), answer.text
        return kinds


@pytest.mark.parametrize("fault", ["down", "hang"])
async def test_no_free_or_gated_call_fails_while_postgresql_is_away(
    world: World, tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with shops(world, tmp_path) as (calls, proxy), calling(calls):
        await asyncio.sleep(WELL_S)
        before = calls.taken()
        getattr(proxy, fault)()
        await asyncio.sleep(FAULT_S)
        during = calls.taken()
        proxy.heal()
        await asyncio.sleep(WELL_S)
        calls.taken()
        await asyncio.sleep(WELL_S)
        after = calls.taken()
    with capsys.disabled():
        print(f"\n{fault}: {sorted(during.items())}")  # noqa: T201 - the figures to report
    assert calls.refusals == {}
    well = {("free", 200), ("gated", 200), ("gate", 200), ("sold", 402)}
    assert set(before) == set(after) == well
    # A price is asked for until the wrappers are due to be read again; nothing is paid meanwhile.
    assert set(during) - {("sold", 402)} == {*well - {("sold", 402)}, ("sold", 503)}
    assert calls.waits == {"5"}
