"""Calls that are made to last at an upstream leave others theirs, in both lanes."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from assay.http1 import host as upstream_shares
from assay.wrappers import routes_calls as wrapper_body
from tests.support.live_service import OWNER_KEY
from tests.support.wire_upstream import Asked, Wire
from tests.wrappers.test_wrap_repeats_http import OK, Got, Shop, opened

FEW, FEW_UNPAID = 24, 18
ONE, NETWORK, OPERATOR = 6, 9, 12
"""What one caller, one network and one operator have of so few."""


@pytest.fixture
async def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Shop]:
    monkeypatch.setattr(upstream_shares, "CALLS_MAX", FEW)
    monkeypatch.setattr(upstream_shares, "UNPAID_CALLS_MAX", FEW_UNPAID)
    monkeypatch.setattr(wrapper_body, "PIECE_S", 600.0)  # however slow the machine is
    async with opened(tmp_path, trusted_proxies=["127.0.0.0/8"]) as made:
        yield made


class Held:
    """An upstream that answers when it is told to, be the body whole or not."""

    reads_nothing = True

    def __init__(self) -> None:
        self.asked = 0
        self.over = threading.Event()

    async def until(self, count: int) -> None:
        """That many have come."""
        while self.asked < count:  # noqa: ASYNC110 - the upstream's thread sets no event
            await asyncio.sleep(0.01)

    async def __call__(self, wire: Wire, _asked: Asked) -> None:
        self.asked += 1
        await asyncio.to_thread(self.over.wait)
        await wire.send(OK)


@asynccontextmanager
async def hanging(shop: Shop, held: Held, data: list[bytes]) -> AsyncGenerator[None]:
    """Each on a connection of its own, until the end of the block; all of them at the upstream."""
    async with AsyncExitStack() as stack:
        try:
            for number, one in enumerate(data, held.asked + 1):
                caller = await stack.enter_async_context(shop.caller())
                caller.writer.write(one)
                await held.until(number)
            yield
        finally:
            held.over.set()


async def told(shop: Shop, data: bytes) -> Got:
    async with shop.caller() as caller:
        return await caller.ask(data)


def slow(shop: Shop, kind: str, address: str, count: int, path: str = "/hang") -> list[bytes]:
    if kind == "GET":
        return [shop.request(path, X_Forwarded_For=address)] * count
    lines = {"X_Forwarded_For": address, "Transfer_Encoding": "chunked"}
    return [shop.request(path, "POST", **lines) + b"1\r\na\r\n"] * count


def begun_fast(shop: Shop) -> list[object]:
    """What the fast lane has sent from now on."""
    direct, begun = shop.service.app.direct, list[object]()
    begin = direct.begin

    def noted(*args: Any) -> object:
        made = begin(*args)
        if made is not None:
            begun.append(made)
        return made

    cast("Any", direct).begin = noted
    return begun


@pytest.mark.parametrize("kind", ["GET", "POST"])
async def test_slow_calls_of_one_address_lock_nobody_out(shop: Shop, kind: str) -> None:
    held = Held()
    await shop.wrap("/hang", held, timeoutMs=120_000)
    await shop.wrap("/free")
    mine = shop.request("/free", X_Forwarded_For="203.0.113.1")
    await shop.warm(mine)
    async with hanging(shop, held, slow(shop, kind, "203.0.113.1", ONE)):
        for method in ("GET", "POST"):
            got = await told(shop, shop.request("/free", method, X_Forwarded_For="203.0.113.1"))
            assert (got.status, b"wrapper_upstream_busy" in got.body) == (429, True), got
            assert got.headers["retry-after"] == "1"
            for other in ("203.0.113.2", "198.51.100.1", "2001:db8::1"):
                got = await told(shop, shop.request("/free", method, X_Forwarded_For=other))
                assert got.status == 200, got
        assert (await told(shop, mine)).status == 429  # a repeat of the fast lane as well
    async with asyncio.timeout(10):  # the service hears of each that went
        while (await told(shop, mine)).status != 200:  # noqa: ASYNC110 - no event of the service
            await asyncio.sleep(0.01)


async def test_the_fast_lane_counts_what_it_sends(shop: Shop) -> None:
    held = Held()
    held.reads_nothing = False  # else its connection ends with its answer
    held.over.set()
    await shop.wrap("/hang", held, timeoutMs=120_000)
    data = shop.request("/hang", X_Forwarded_For="203.0.113.1")
    async with AsyncExitStack() as stack:  # connections that are kept, for the fast lane
        callers = [await stack.enter_async_context(shop.caller()) for _ in range(ONE + 1)]
        for _ in range(2):
            async with asyncio.TaskGroup() as group:
                for one in callers[:ONE]:
                    group.create_task(one.ask(data))
        held.asked = 0
        held.over.clear()
        begun = begun_fast(shop)
        for number, one in enumerate(callers[:ONE], 1):
            one.writer.write(data)
            await held.until(number)
        assert len(begun) == ONE
        assert (await callers[-1].ask(data)).status == 429
        other = shop.request("/hang", X_Forwarded_For="198.51.100.1")
        async with shop.caller() as caller:
            caller.writer.write(other)
            await held.until(ONE + 1)
            held.over.set()
            assert (await caller.answer()).status == 200
        assert [(await one.answer()).status for one in callers[:ONE]] == [200] * ONE
        assert (await callers[-1].ask(data)).status == 200


async def test_an_agent_and_other_accounts_find_theirs_at_the_same_address(shop: Shop) -> None:
    held = Held()
    await shop.wrap("/hang", held, timeoutMs=120_000)
    await shop.wrap("/free")
    session = await shop.service.session(OWNER_KEY)
    from_there = {"X_Forwarded_For": "203.0.113.1"}
    async with hanging(shop, held, slow(shop, "GET", "203.0.113.1", ONE)):
        assert (await told(shop, shop.request("/free", **from_there))).status == 429
        for _ in range(3):  # by the ordinary lane, by the fast one, and as a repeat
            got = await told(shop, shop.request("/free", **from_there, **session))
            assert got.status == 200, got


async def test_one_operators_wrappers_leave_others_theirs(shop: Shop) -> None:
    held = Held()
    await shop.wrap("/hang", held, timeoutMs=120_000)
    await shop.wrap("/free")
    other = await another(shop)
    data = [slow(shop, "GET", f"10.{n}.0.1", 1)[0] for n in range(OPERATOR)]
    async with hanging(shop, held, data):
        got = await told(shop, shop.request("/free", X_Forwarded_For="198.51.100.1"))
        assert (got.status, b"temporarily_unavailable" in got.body) == (503, True), got
        assert b"operator" in got.body
        assert got.headers["retry-after"] == "1"
        got = await told(shop, other)
        assert got.status == 200, got


async def another(shop: Shop) -> bytes:
    """A request for another account's wrapper of the same upstream."""
    await shop.service.operator("b@example.com")
    token = await shop.service.token("b@example.com")
    me = (await shop.service.http.get("/operator/me", headers=token)).json()
    body = {"path": "/free", "pricePerCall": 0, "targetUrl": shop.up.url, "method": "*"}
    made = await shop.service.http.post("/operator/endpoints", json=body, headers=token)
    assert made.status_code == 200, made.text
    operator_id = me["operator"]["id"]
    lines = [f"GET /wrap/{operator_id}/free HTTP/1.1", "Host: x", "X-Forwarded-For: 198.51.100.1"]
    return "\r\n".join([*lines, "", ""]).encode()
