"""What is kept of upstreams is bounded, whatever operators aim wrappers at."""

import asyncio

import pytest

from assay.common.clock import SystemClock
from assay.http1 import client as upstream
from assay.http1.client import HOSTS_MAX, UpstreamPool
from assay.http1.host import UpstreamConnections
from assay.http1.model import ResponseHead, Target, UpstreamRequest, anonymous_at
from assay.http1.response_heads import HEADS_BYTES_MAX, HEADS_MAX, ResponseHeadCache
from assay.net.egress.dial import UpstreamDialer
from assay.net.egress.url import EgressPolicy
from tests.support.raw_server import Request, keeps_open, plain, serving

DEVELOPMENT = EgressPolicy(allow_private=True, require_https=False)


def pool_of(connections: UpstreamConnections | None = None) -> UpstreamPool:
    return UpstreamPool(UpstreamDialer(DEVELOPMENT).connect, SystemClock(), connections)


def request(host: str, port: int = 443) -> UpstreamRequest:
    target = Target("http", host, port, "/", is_literal_ip=True)
    return UpstreamRequest("GET", target, b"/", (), b"", 0, timeout_s=5)


async def read(pool: UpstreamPool, port: int, host: str = "127.0.0.1") -> None:
    reply = await pool.send(request(host, port))
    assert b"".join([piece async for piece in reply.body()]) == b"ok"


@pytest.mark.parametrize(
    "upstreams", [10 * HOSTS_MAX, pytest.param(1_000_000, marks=pytest.mark.slow)]
)
async def test_a_million_upstreams_leave_no_more_than_the_bound(upstreams: int) -> None:
    pool = pool_of()
    for number in range(upstreams):
        pool._host(Target("https", f"a{number}.example", 443, "/", is_literal_ip=False))
    assert len(pool._hosts) == HOSTS_MAX
    await pool.aclose()


async def test_an_upstream_nobody_calls_any_more_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = pool_of()
    async with serving(keeps_open(plain(b"ok"))) as server:
        await read(pool, server.port)
        prepared = pool.prepare(request("127.0.0.1", server.port))
        known = next(iter(pool._hosts.values()))
        monkeypatch.setattr(upstream, "KEEP_ALIVE_S", -1.0)
        monkeypatch.setattr(upstream, "FORGOTTEN_S", -1.0)
        pool._sweep()
        assert (len(pool._hosts), known.open, known.is_forgotten) == (0, 0, True)
        monkeypatch.undo()
        assert prepared.reserve(None, anonymous_at("203.0.113.1")) is None  # type: ignore[arg-type] - nothing is kept to begin
        again = next(iter(pool._hosts.values()))
        await read(pool, server.port)
        assert (len(pool._hosts), again.open, again is known) == (1, 1, False)
    await pool.aclose()


async def test_an_upstream_with_connections_stays_whoever_else_comes() -> None:
    pool = pool_of()
    async with serving(keeps_open(plain(b"ok"))) as server:
        reply = await pool.send(request("127.0.0.1", server.port))
        busy = next(iter(pool._hosts.values()))
        for number in range(2 * HOSTS_MAX):
            pool._host(Target("https", f"a{number}.example", 443, "/", is_literal_ip=False))
        assert busy.open == 1
        assert not busy.is_forgotten
        reply.close()
    await pool.aclose()


def test_the_heads_of_one_upstream_stay_below_their_bytes() -> None:
    heads = ResponseHeadCache()
    for number in range(10 * HEADS_MAX):
        value = str(number).encode().rjust(4000, b"x")
        lines = ((b"content-length", b"0"), (b"x-filler", value))
        raw = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-filler: " + value + b"\r\n\r\n"
        heads.remember(raw, ResponseHead(200, lines))
        assert sum(map(len, heads._known)) <= HEADS_BYTES_MAX
    assert heads._known


HOSTS = [f"127.0.0.{n}" for n in range(1, 61)]
"""All of them this machine."""


@pytest.mark.allow_hosts(HOSTS)
async def test_idle_connections_to_many_hosts_stay_below_one_bound_the_oldest_closed_first() -> (
    None
):
    together = UpstreamConnections(8)
    pools = [pool_of(together) for _ in range(2)]
    async with serving(keeps_open(plain(b"ok")), address="0.0.0.0") as server:
        for number, host in enumerate(HOSTS):
            await read(pools[number % 2], server.port, host)
            assert together.open <= 8
        await read(pools[0], server.port, HOSTS[52])  # kept, and not the oldest any more
        assert server.connections == len(HOSTS)
        await read(pools[0], server.port, HOSTS[0])
        hosts = {key[1]: host for pool in pools for key, host in pool._hosts.items()}
        kept = {name for name, host in hosts.items() if host.idle}
        assert kept == {HOSTS[0], HOSTS[52], *HOSTS[54:]}
        assert {name for name, host in hosts.items() if host.open} == kept
        assert {name for name, host in hosts.items() if host.shared.heads._known} <= kept
        assert server.connections == len(HOSTS) + 1
    for pool in pools:
        await pool.aclose()
    assert together.open == 0


@pytest.mark.allow_hosts(HOSTS)
async def test_calls_under_way_are_never_closed_for_others() -> None:
    together = UpstreamConnections(2)
    pool = pool_of(together)
    done = asyncio.Event()

    async def slowly(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(b"ok")[:-1])
        await done.wait()
        writer.write(b"k")

    async with serving(slowly, address="0.0.0.0") as server:
        replies = [await pool.send(request(host, server.port)) for host in HOSTS[:5]]
        assert together.open == len(replies)
        done.set()
        for reply in replies:
            assert b"".join([piece async for piece in reply.body()]) == b"ok"
        assert together.open == 2
    await pool.aclose()
