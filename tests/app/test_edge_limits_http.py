"""Whom a request is counted for: strangers at the same address lock no operator out."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from assay.accounts import api_keys
from assay.accounts.api_keys import KeyTags, RefusedKeys
from assay.accounts.traffic import UNLIMITED
from assay.app.web import build
from assay.common.quota_lease import QuotaLease
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.window import MemoryWindow
from tests.support.live_service import OWNER_KEY, TestService, forged, refused, start_test_service
from tests.support.wire_upstream import wire_upstream

FEW = {"anonymous_per_minute": 20, "guesses_per_minute": 3, "keyed_per_minute": 50}
NOBODYS = {"authorization": "Bearer svc_op_" + "x" * 43}


async def exhaust(service: TestService, headers: Mapping[str, str] | None = None) -> None:
    """As strangers behind the same balancer do: until they are refused."""
    while (await service.http.get("/api", headers=headers)).status_code != 429:
        pass


async def used_up(service: TestService) -> None:
    await exhaust(service)
    await exhaust(service, NOBODYS)


def limit_of(answer: httpx2.Response) -> tuple[int, int]:
    """The limit that was counted against, and what is left of it."""
    return int(answer.headers["ratelimit-limit"]), int(answer.headers["ratelimit-remaining"])


@pytest.mark.parametrize("later_s", [0, 40, 4000])
async def test_a_key_works_whatever_strangers_at_its_address_do(
    tmp_path: Path, later_s: float
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        key = await service.operator()
        service.clock.move(later_s)
        await used_up(service)
        answer = await service.http.get("/operator/agent/7", headers=key)
        assert (answer.status_code, limit_of(answer)) == (200, (50, 49))
        service.clock.move(40)
        await used_up(service)
        assert limit_of(await service.http.get("/operator/agent/7", headers=key))[0] == 50


async def test_the_dashboard_works_whatever_strangers_at_its_address_do(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        await service.operator()
        token = await service.token()
        await used_up(service)
        for left in (49, 48):
            answer = await service.http.get("/operator/me", headers=token)
            assert (answer.status_code, limit_of(answer)) == (200, (50, left))


async def test_a_stolen_token_that_was_ended_uses_up_nothing_of_its_owners(tmp_path: Path) -> None:
    """Its signature holds for twelve hours, and no store is asked whom a request is counted for."""
    async with start_test_service(tmp_path, **FEW) as service:
        await service.operator()
        stolen, token = await service.token(), await service.token()
        await service.http.post("/operator/logout", headers=stolen)
        await exhaust(service, stolen)
        refused(await service.http.get("/operator/me", headers=stolen), 429, "rate_limited")
        answer = await service.http.get("/operator/me", headers=token)
        assert (answer.status_code, limit_of(answer)) == (200, (50, 49))


async def test_a_token_of_a_suspended_account_is_a_guess_once_that_is_known(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        await service.operator()
        token, email = await service.token(), "op@example.com"
        await service.app.operators.suspend_for_admin(email, suspended=True)
        path = "/operator/agent/7/snapshot"
        told = [(await service.http.get(path, headers=token)).status_code for _ in range(6)]
        assert told == [404] * 4 + [429] * 2
        await service.app.operators.suspend_for_admin(email, suspended=False)
        service.clock.move(6)
        assert limit_of(await service.http.get("/operator/me", headers=token))[0] == 50


async def test_bodies_that_come_with_an_ended_token_take_nothing_of_its_owners_room(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path) as service:
        await service.operator()
        ended, live = await service.token(), await service.token()
        await service.http.post("/operator/logout", headers=ended)
        size, over = service.app.settings.body_bytes_max - 10, asyncio.Event()

        async def stalled() -> AsyncGenerator[bytes]:
            yield b"x" * size
            await over.wait()

        headers = {**ended, "content-length": str(size + 5)}
        async with asyncio.TaskGroup() as group:
            stuck = [
                group.create_task(
                    service.http.post("/operator/keys/rotate", headers=headers, content=stalled())
                )
                for _ in range(20)
            ]
            await asyncio.sleep(0.1)
            body = {"email": "op@example.com", "name": "x" * 6000}
            answer = await service.http.patch("/operator/me", headers=live, json=body)
            assert answer.json()["code"] == "invalid_request"
            over.set()
            for one in stuck:
                one.cancel()


async def test_a_token_that_has_ended_is_a_guess_and_asked_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        await service.operator()
        ended, token = await service.token(), await service.token()
        await service.http.post("/operator/logout", headers=ended)
        store, asked = service.app.logins._sessions, []
        owner = store.owner

        async def counted(*session: Any) -> Any:
            asked.append(session)
            return await owner(*session)

        monkeypatch.setattr(store, "owner", counted)
        answers = [await service.http.get("/operator/me", headers=ended) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [401] * 4 + [429]
        assert [limit_of(answer)[0] for answer in answers] == [50] + [3] * 4
        refused(
            await service.http.get("/operator/agent/7/snapshot", headers=ended), 429, "rate_limited"
        )
        assert len(asked) == 1
        assert limit_of(await service.http.get("/operator/me", headers=token)) == (50, 49)


async def test_a_key_works_in_a_process_that_has_never_seen_it(tmp_path: Path) -> None:
    """By its tag: no store has to be asked to tell it from a guess."""
    async with (
        start_test_service(tmp_path, **FEW) as one,
        start_test_service(tmp_path, **FEW) as other,
    ):
        await used_up(other)
        key = await one.operator()
        answer = await other.http.get("/operator/agent/7", headers=key)
        assert (answer.status_code, limit_of(answer)) == (200, (50, 49))


async def test_a_key_without_a_tag_is_known_again_after_a_restart(tmp_path: Path) -> None:
    """Keys of earlier versions have none."""
    async with start_test_service(tmp_path, **FEW) as service:
        key = await service.operator()
        old = key["authorization"].removeprefix("Bearer ")[:-16]
        digest = hashlib.sha256(old.encode()).hexdigest()
        async with service.app.database.write() as connection:
            await connection.execute(text("UPDATE api_keys SET key_hash = :h"), {"h": digest})
        first = await service.http.get(
            "/operator/agent/7", headers={"authorization": f"Bearer {old}"}
        )
        assert (first.status_code, limit_of(first)) == (200, (50, 49))
    async with start_test_service(tmp_path, **FEW) as service:
        await used_up(service)
        again = await service.http.get(
            "/operator/agent/7", headers={"authorization": f"Bearer {old}"}
        )
        assert (again.status_code, limit_of(again)[0]) == (200, 50)


async def test_looking_up_a_key_that_holds_is_no_guess(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        olds: list[str] = []
        for number in range(5):  # more than may be guessed
            key = await service.operator(f"op{number}@example.com")
            old = key["authorization"].removeprefix("Bearer ")[:-16]
            digest = hashlib.sha256(old.encode()).hexdigest()
            async with service.app.database.write() as connection:
                await connection.execute(
                    text("UPDATE api_keys SET key_hash = :h WHERE key_hash = :was"),
                    {
                        "h": digest,
                        "was": hashlib.sha256(
                            f"{old}{key['authorization'][-16:]}".encode()
                        ).hexdigest(),
                    },
                )
            olds.append(old)
        for old in olds:
            headers = {"authorization": f"Bearer {old}"}
            assert (await service.http.get("/operator/agent/7", headers=headers)).status_code == 200


async def test_guesses_are_counted_by_themselves_and_the_store_is_not_asked_beyond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        store, asked = service.app.api_keys._store, []
        find = store.find_by_hash

        async def counted(key_hash: str) -> Any:
            asked.append(key_hash)
            return await find(key_hash)

        monkeypatch.setattr(store, "find_by_hash", counted, raising=False)
        for number in range(30):
            guess = {"authorization": f"Bearer svc_op_{number:043}"}
            answer = await service.http.get("/operator/agent/7", headers=guess)
            assert answer.status_code == (401 if number < 3 else 429)
            assert limit_of(answer) == (3, max(0, 2 - number))
        assert len(asked) == 3
        plain = await service.http.get("/api")
        assert limit_of(plain) == (20, 19)
        refused(answer, 429, "rate_limited")


@pytest.mark.parametrize("token", ["x", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "x" * 5000])
async def test_a_token_that_does_not_hold_is_a_guess(tmp_path: Path, token: str) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        headers = {"authorization": f"Bearer {token}"}
        answer = await service.http.get("/operator/me", headers=headers)
        assert (answer.status_code, limit_of(answer)) == (401, (3, 2))


async def test_revoked_and_suspended_keys_are_guesses_and_asked_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        key, token = await service.operator(), await service.token()
        await service.http.get("/operator/agent/7", headers=key)
        [made] = (await service.http.get("/operator/keys", headers=token)).json()
        await service.http.delete(f"/operator/keys/{made['id']}", headers=token)
        store, asked = service.app.api_keys._store, []
        find = store.find_by_hash

        async def counted(key_hash: str) -> Any:
            asked.append(key_hash)
            return await find(key_hash)

        monkeypatch.setattr(store, "find_by_hash", counted, raising=False)
        answers = [await service.http.get("/operator/agent/7", headers=key) for _ in range(6)]
        assert [a.status_code for a in answers] == [401, 401, 401, 429, 429, 429]
        assert len(asked) == 1
        assert limit_of(await service.http.get("/operator/me", headers=token))[0] == 50


async def test_a_restored_account_is_let_in_at_once(service: TestService) -> None:
    key = await service.operator()
    await service.app.operators.suspend_for_admin("op@example.com", suspended=True)
    for _ in range(2):
        refused(await service.http.get("/operator/agent/7", headers=key), 403, "account_suspended")
    await service.app.operators.suspend_for_admin("op@example.com", suspended=False)
    assert (await service.http.get("/operator/agent/7", headers=key)).status_code == 200


@pytest.mark.parametrize("path", sorted(UNLIMITED))
async def test_health_and_key_sets_have_no_limit_to_share(tmp_path: Path, path: str) -> None:
    contact = "mailto:sec@example.com"
    async with start_test_service(tmp_path, security_contact=contact, **FEW) as service:
        await used_up(service)
        for headers in ({}, NOBODYS):
            for _ in range(30):
                answer = await service.http.get(path, headers=headers)
                assert (answer.status_code, limit_of(answer)) == (200, (20, 20))
        with_body = await service.http.request("GET", path, content=b"x")
        refused(with_body, 429, "rate_limited")


async def test_an_agent_with_a_session_calls_wrappers_whatever_strangers_do(
    tmp_path: Path,
) -> None:
    with wire_upstream() as up:
        async with start_test_service(tmp_path, wrapper_per_minute=4) as service:
            await service.operator()
            token, session = await service.token(), await service.session(OWNER_KEY)
            body = {"path": "/open", "pricePerCall": 0, "targetUrl": up.url}
            made = await service.http.post("/operator/endpoints", json=body, headers=token)
            assert made.status_code == 200, made.text
            owner = (await service.http.get("/operator/me", headers=token)).json()["operator"]["id"]
            url = f"/wrap/{owner}/open"
            statuses = [(await service.http.get(url)).status_code for _ in range(5)]
            assert statuses == [200] * 4 + [429]
            statuses = [
                (await service.http.get(url, headers=session)).status_code for _ in range(5)
            ]
            assert statuses == [200] * 4 + [429]  # which has a limit of its own
            assert (await service.http.get(url, headers=forged(session))).status_code == 429


@asynccontextmanager
async def node(service: TestService, window: MemoryWindow) -> AsyncGenerator[httpx2.AsyncClient]:
    """One of several processes that keep their limits together."""
    quota_lease = QuotaLease(window, service.clock, lambda _: None)  # type: ignore[arg-type]
    running = asyncio.ensure_future(quota_lease.run())
    sender = httpx2.ASGITransport(build(replace(service.app, quota_lease=quota_lease)))
    async with httpx2.AsyncClient(transport=sender, base_url="http://assay") as http:
        yield http
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_processes_that_share_their_limits_lock_no_operator_out_either(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, **FEW) as service:
        key, window = await service.operator(), MemoryWindow(service.clock)
        token = await service.token()
        async with node(service, window) as one, node(service, window) as other:
            for http, headers in ((one, {}), (other, {}), (one, NOBODYS), (other, NOBODYS)):
                while (await http.get("/api", headers=headers)).status_code != 429:
                    pass
            for http in (one, other):
                answer = await http.get("/operator/agent/7", headers=key)
                assert (answer.status_code, limit_of(answer)[0]) == (200, 50)
                assert (await http.get("/operator/me", headers=token)).status_code == 200
                assert (await http.get("/operator/health")).status_code == 200


def test_what_is_remembered_of_keys_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "KNOWN_MAX", 100)
    monkeypatch.setattr(api_keys, "REFUSED_MAX", 100)
    tags, gone, clock = KeyTags(("s" * 40,)), RefusedKeys(5), FrozenClock()
    digests = [number.to_bytes(32) for number in range(1000)]
    tags.remember(digests)
    for digest in digests:
        gone.add(digest, ValueError("no"), clock.monotonic_s())
    assert [tags.is_ours("svc_op_x", d) for d in digests].count(True) == 100
    assert [gone.find(d, clock.monotonic_s()) for d in digests].count(None) == 900
    assert tags.is_ours("", digests[-1])
    assert not tags.is_ours("", digests[0])
    assert tags.is_ours(tags.tagged("svc_op_x"), b"")
    for other in ("", "svc_op_x", "svc_op_x" + "0" * 16, tags.tagged("svc_op_x") + "0"):
        assert not tags.is_ours(other, b"")
