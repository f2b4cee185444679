"""A wrapper does not make an upstream send for callers that do not read."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assay.http1.model import agent_at, anonymous_at, payer_at
from assay.wrappers.address_limits import AGENTS, UnreadAnswers, UpstreamUnread
from tests.support.fakes.clock import FrozenClock
from tests.support.live_service import OWNER_KEY, STRANGER_KEY, forged
from tests.support.wire_upstream import Asked, Wire
from tests.wrappers.test_wrap_repeats_http import Shop, opened

MIB = 1024 * 1024
CODE = b"wrapper_upstream_unread"


async def large(wire: Wire, _asked: Asked) -> None:
    """20 MiB, as fast as they are taken."""
    await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (20 * MIB))
    for _ in range(20 * 16):
        await wire.send(b"x" * (MIB // 16))


@asynccontextmanager
async def leaving(shop: Shop, data: bytes) -> AsyncGenerator[socket.socket]:
    """A caller that asks, sees the beginning of an answer and goes."""
    loop = asyncio.get_running_loop()
    with socket.socket() as caller:
        caller.setblocking(False)  # noqa: FBT003 - its only form
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await loop.sock_connect(caller, ("127.0.0.1", shop.port))
        await loop.sock_sendall(caller, data)
        assert (await loop.sock_recv(caller, 12)).startswith(b"HTTP/1.1")
        yield caller


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_whoever_asks_and_does_not_read_is_refused_after_a_few(
    tmp_path: Path, method: str
) -> None:
    async with opened(tmp_path, wrapper_unread_mib=2) as shop:
        await shop.wrap("/big", large)
        await shop.wrap("/small")
        small = shop.request("/small")
        await shop.warm(small)
        for _ in range(12):
            async with leaving(shop, shop.request("/big", method)):
                pass
        sent = len(shop.up.to("/big"))
        assert 1 <= sent <= 6
        async with shop.caller() as caller:
            got = await caller.ask(small)
        assert got.status == 429
        assert CODE in got.body
        assert 1 <= int(got.headers["retry-after"]) <= 60
        shop.service.clock.move(61)
        async with shop.caller() as caller:
            assert (await caller.ask(small)).status == 200


async def test_whoever_reads_what_it_asks_for_is_never_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, wrapper_unread_mib=1) as shop:
        await shop.wrap("/big", large)
        for _ in range(3):
            async with shop.caller() as caller:
                got = await caller.ask(shop.request("/big"))
                assert (got.status, len(got.body)) == (200, 20 * MIB)


async def test_an_upstream_sends_little_for_a_caller_that_stalls(tmp_path: Path) -> None:
    """Of 20 MiB, what buffers hold that are bounded; left alone they held 8 MiB and more."""
    taken = 0

    async def counted(wire: Wire, _asked: Asked) -> None:
        nonlocal taken
        wire.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (20 * MIB))
        for _ in range(20 * 64):
            await wire.send(b"x" * (MIB // 64))
            taken += MIB // 64

    async with opened(tmp_path) as shop:
        await shop.wrap("/big", counted)
        async with leaving(shop, shop.request("/big")):
            seen = -1
            while seen != taken:
                seen = taken
                await asyncio.sleep(0.3)
            assert 0 < taken < 6 * MIB


async def leave(shop: Shop, data: bytes, times: int) -> None:
    for _ in range(times):
        async with leaving(shop, data):
            pass


async def statuses(shop: Shop, data: bytes, times: int = 3) -> list[int]:
    """By the ordinary lane, by the fast one, and as a repeat, where it is a GET."""
    async with shop.caller() as caller:
        return [(await caller.ask(data)).status for _ in range(times)]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_strangers_leave_unread_refuses_no_agent_at_their_address(
    tmp_path: Path, method: str
) -> None:
    async with opened(tmp_path, wrapper_unread_mib=2) as shop:
        await shop.wrap("/big", large)
        await shop.wrap("/small")
        session = await shop.service.session(OWNER_KEY)
        known = shop.request("/small", method, **session)
        assert await statuses(shop, known) == [200] * 3
        await leave(shop, shop.request("/big", method), 6)
        assert await statuses(shop, shop.request("/small", method)) == [429] * 3
        assert await statuses(shop, known) == [200] * 3
        assert await statuses(shop, shop.request("/small", method, **forged(session))) == [429] * 3


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_agent_that_leaves_too_much_is_refused_and_nobody_beside_it(
    tmp_path: Path, method: str
) -> None:
    async with opened(tmp_path, wrapper_unread_mib=2) as shop:
        await shop.wrap("/big", large)
        await shop.wrap("/small")
        one, other = [await shop.service.session(key) for key in (OWNER_KEY, STRANGER_KEY)]
        asks = shop.request("/small", method, **one)
        assert await statuses(shop, asks) == [200] * 3
        await leave(shop, shop.request("/big", method, **one), 4)
        assert await statuses(shop, asks) == [429] * 3
        assert await statuses(shop, shop.request("/small", method, **other)) == [200] * 3
        assert await statuses(shop, shop.request("/small", method)) == [200] * 3


def test_agents_of_one_address_have_a_bound_together() -> None:
    unread = UnreadAnswers(FrozenClock(), MIB)
    agents = [agent_at(f"0x{n}", "203.0.113.1") for n in range(AGENTS + 1)]
    for agent in agents[:AGENTS]:
        unread.require(agents[-1])
        unread.note(agent, MIB)
    with pytest.raises(UpstreamUnread):
        unread.require(agents[-1])
    for other in (
        agent_at("0x9", "203.0.113.2"),
        payer_at("0x1", "203.0.113.1"),
        anonymous_at("203.0.113.1"),
    ):
        unread.require(other)
