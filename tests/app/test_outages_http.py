"""What goes on while PostgreSQL or a chain is away, what does not, and what never comes back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.api_keys import REMEMBERED_S
from assay.chains.model import ChainUnavailable
from assay.gate.service import CONTROLLERS_MAX_AGE_S, REFRESHED_S
from tests.support.databases import lent_postgresql
from tests.support.eventually import eventually_here
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.live_service import OWNER_KEY, STRANGER_KEY, address, refused
from tests.support.postgres import postgres
from tests.wrappers.test_wrap_repeats_http import Shop, opened


class Plane:
    """A shop on PostgreSQL behind a faulty proxy, whose calls are known."""

    def __init__(self, shop: Shop, proxy: FaultProxy, url: str) -> None:
        self.shop, self.proxy, self.url = shop, proxy, url
        self.key: dict[str, str] = {}
        self.session: dict[str, str] = {}

    async def begin(self) -> None:
        """Each kind of call once, so that it is known."""
        shop = self.shop
        self.key = await shop.service.operator("other@example.com")
        self.session = await shop.service.session(OWNER_KEY)
        await shop.wrap("/free")
        await shop.wrap("/gated", trustEnabled=True, minScore=0)
        await shop.wrap("/sold", pricePerCall=0.01, payoutAddress=address(OWNER_KEY))
        assert await self.calls() == {"free": 200, "gated": 200, "gate": 200, "sold": 402}
        await self.forgets()

    async def forgets(self) -> None:
        """Whatever was read is due to be read again."""
        self.shop.service.clock.move(REMEMBERED_S + 1)

    async def wrapped(self, path: str, **headers: str) -> Any:
        async with self.shop.caller() as caller:
            return await caller.ask(self.shop.request(path, **headers))

    async def gate(self) -> Any:
        return await self.shop.service.gate(self.key | self.session)

    async def calls(self) -> dict[str, int]:
        """The status of one call of each kind."""
        return {
            "free": (await self.wrapped("/free")).status,
            "gated": (await self.wrapped("/gated", X_Agent_Id="7", **self.session)).status,
            "gate": (await self.gate()).status_code,
            "sold": (await self.wrapped("/sold")).status,
        }

    async def away(self, *, is_away: bool = True) -> None:
        database = self.shop.service.app.database
        await eventually_here(lambda: database.is_away == is_away)


@asynccontextmanager
async def planes(folder: Path, **settings: Any) -> AsyncGenerator[Plane]:
    async with fault_proxy(postgres().port) as proxy:
        with lent_postgresql() as url:
            async with opened(folder, database_url=proxy.in_front_of(url), **settings) as shop:
                plane = Plane(shop, proxy, url)
                await plane.begin()
                yield plane
                proxy.heal()
                await plane.away(is_away=False)


GOES_ON = {"free": 200, "gated": 200, "gate": 200, "sold": 503}


@pytest.mark.parametrize("fault", ["down", "hang"])
async def test_free_and_gated_calls_go_on_without_their_database_and_payments_do_not(
    tmp_path: Path, fault: str
) -> None:
    async with planes(tmp_path) as plane:
        getattr(plane.proxy, fault)()
        assert await plane.calls() == GOES_ON  # before anybody knows that it is away
        await plane.away()
        for _ in range(3):
            await plane.forgets()
            assert await plane.calls() == GOES_ON
        free, sold = await plane.wrapped("/free"), await plane.wrapped("/sold")
        assert free.headers["x-assay-stale"].startswith("routes; age=")
        assert sold.headers["retry-after"] == "5"
        stale = (await plane.gate()).json()["stale"]
        assert stale["what"] in {"key", "evaluation"}
        assert stale["ageS"] >= REMEMBERED_S
        plane.proxy.heal()
        await plane.away(is_away=False)
        await plane.forgets()
        assert await plane.calls() == {**GOES_ON, "sold": 402}
        assert "x-assay-stale" not in (await plane.wrapped("/free")).headers


@pytest.mark.parametrize("grace_s", [0, 60])
async def test_nothing_is_older_than_its_grace(tmp_path: Path, grace_s: int) -> None:
    async with planes(tmp_path, grace_s=grace_s, agent_grace_s=grace_s) as plane:
        plane.proxy.down()
        await plane.away()
        if grace_s:
            assert await plane.calls() == GOES_ON
        plane.shop.service.clock.move(max(grace_s, CONTROLLERS_MAX_AGE_S) + 1)
        assert set((await plane.calls()).values()) == {503}
        answer = await plane.gate()
        refused(answer, 503, "temporarily_unavailable")
        assert answer.headers["retry-after"] == "5"


async def test_a_key_that_was_revoked_before_an_outage_stays_revoked(tmp_path: Path) -> None:
    async with planes(tmp_path) as plane:
        service = plane.shop.service
        token = await service.token("other@example.com")
        (key,) = (await service.http.get("/operator/keys", headers=token)).json()
        answer = await service.http.delete(f"/operator/keys/{key['id']}", headers=token)
        assert answer.status_code == 200
        session = plane.session["x-agent-session"]
        await service.app.sessions.revoke(address(OWNER_KEY), session)
        plane.proxy.down()
        await plane.away()
        for _ in range(3):
            found = await plane.calls()
            assert found["free"] == 200
            assert 200 not in (found["gate"], found["gated"])
            await plane.forgets()


CHANGES = {
    "a revoked key": ("UPDATE api_keys SET revoked = true", "gate"),
    "a suspended account": ("UPDATE operators SET suspended_us = 1", "free"),
    "a wrapper that was stopped": ("UPDATE wrappers SET active = false", "gated"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_another_process_changes_counts_here_at_once_and_stays_in_an_outage(
    tmp_path: Path, change: str
) -> None:
    statement, kind = CHANGES[change]
    async with planes(tmp_path) as plane:
        assert (await plane.calls())[kind] == 200  # read again just now: due in five seconds
        await asyncio.to_thread(postgres().ask, statement, plane.url)
        for _ in range(40):
            if (refused_with := (await plane.calls())[kind]) != 200:
                break
            await asyncio.sleep(0.05)
        assert refused_with in {401, 403, 404}
        plane.proxy.down()
        await plane.away()
        assert (await plane.calls())[kind] in {401, 403, 404, 503}


async def test_without_announcements_everything_is_read_again_each_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deaf(*_asked: object) -> bool:
        return False

    monkeypatch.setattr("assay.db.change_feed.ChangeFeed._receives", deaf)
    monkeypatch.setattr("assay.db.change_feed.ASKED_EVERY_S", 0.1)
    async with planes(tmp_path) as plane:
        silent = "DROP TRIGGER announce_api_keys ON api_keys; UPDATE api_keys SET revoked = true"
        await asyncio.to_thread(postgres().ask, silent, plane.url)
        for _ in range(40):
            if (await plane.gate()).status_code == 401:
                break
            await asyncio.sleep(0.05)
        assert (await plane.gate()).status_code == 401


async def test_what_is_counted_during_an_outage_is_written_after_it(tmp_path: Path) -> None:
    async with planes(tmp_path) as plane:
        app = plane.shop.service.app
        operator = await app.operators.find_for_admin("other@example.com")
        await app.flush()
        before = (await app.allowance.usage(operator)).used
        plane.proxy.down()
        await plane.away()
        for _ in range(5):
            assert await plane.calls() == GOES_ON
        waiting = app.call_log.waiting
        assert waiting >= 15
        plane.proxy.heal()
        await plane.away(is_away=False)
        await app.flush()
        assert (await app.allowance.usage(operator)).used == before + 5
        assert (app.call_log.waiting, app.call_log.dropped) == (0, 0)


async def test_a_judged_agent_passes_while_its_chain_is_away_and_an_unknown_one_does_not(
    tmp_path: Path,
) -> None:
    async with planes(tmp_path, agent_grace_s=120) as plane:
        service = plane.shop.service
        service.chain.down = ChainUnavailable("No node answers.", retry_after_s=1)
        for _ in range(3):
            service.clock.move(CONTROLLERS_MAX_AGE_S + 1)
            assert await plane.calls() == {**GOES_ON, "sold": 402}
        stale = (await plane.gate()).json()["stale"]
        assert stale["what"] == "controllers"
        answer = await service.gate(plane.key | plane.session, "8")
        refused(answer, 503, "chain_unavailable")
        service.clock.move(120)
        refused(await plane.gate(), 503, "chain_unavailable")
        service.chain.down = None
        await plane.gate()
        assert "stale" not in (await plane.gate()).json()


async def test_a_sale_during_an_outage_is_seen_within_a_minute_of_the_chains_answer(
    tmp_path: Path,
) -> None:
    async with planes(tmp_path) as plane:
        service = plane.shop.service
        service.chain.down = ChainUnavailable("No node answers.", retry_after_s=1)
        service.clock.move(CONTROLLERS_MAX_AGE_S + 1)
        assert (await plane.gate()).status_code == 200
        agents = service.chain.agents
        agents["7"] = replace(agents["7"], owner=address(STRANGER_KEY))
        service.chain.down = None
        service.clock.move(60)
        refused(await plane.gate(), 401, "identity_mismatch")


async def test_an_agent_that_keeps_calling_never_waits_for_its_chain(tmp_path: Path) -> None:
    async with planes(tmp_path) as plane:
        service, reads = plane.shop.service, plane.shop.service.chain.reads
        service.clock.move(REFRESHED_S)
        behind = asyncio.Event()
        fetch = service.chain.fetch_agent

        async def slow(*asked: Any) -> Any:
            await behind.wait()
            return await fetch(*asked)

        service.chain.fetch_agent = slow
        for _ in range(5):
            assert (await plane.gate()).status_code == 200
        assert service.chain.reads == reads
        behind.set()
        await eventually_here(lambda: service.chain.reads == reads + 1)
        service.clock.move(REFRESHED_S - 1)
        assert (await plane.gate()).status_code == 200
        assert service.chain.reads == reads + 1
