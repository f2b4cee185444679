"""Opened upstreams on real sockets: whose wrappers reach them, and over which connections."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assay.common.clock import SystemClock
from assay.http1.client import UpstreamPool, UpstreamsByOperator
from assay.http1.model import Target, UpstreamFailed, UpstreamRequest, anonymous_at
from assay.net.egress.address import OpenedAddresses, OpenedForOperators, opened_entry
from assay.net.egress.dial import UpstreamDialer
from assay.net.egress.url import EgressPolicy, parse_target
from assay.net.resolver import NameResolver
from tests.support.certificates import TestAuthority
from tests.support.fakes.scripted_resolver import ScriptedResolver
from tests.support.raw_server import keeps_open, plain, serving

NAMED, STRANGER = "named", "stranger"


def policy(*entries: str) -> EgressPolicy:
    opened = OpenedAddresses(tuple(map(opened_entry, entries)))
    return EgressPolicy(opened_for=OpenedForOperators(opened, frozenset({NAMED})))


@asynccontextmanager
async def pools(
    rules: EgressPolicy, resolver: NameResolver | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[UpstreamsByOperator]:
    """As the service puts them together."""
    made = [
        UpstreamPool(UpstreamDialer(one, resolver, tls).connect, SystemClock())
        for one in (rules, rules.of(NAMED))
    ]
    try:
        yield UpstreamsByOperator(*made, rules.opened_for.operators)
    finally:
        for pool in made:
            await pool.aclose()


async def call(upstreams: UpstreamsByOperator, target: Target, account: str) -> int:
    request = UpstreamRequest("GET", target, b"/", (), b"", 0, timeout_s=2, account=account)
    reply = await upstreams.send(request)
    async for _ in reply.body():
        pass
    return reply.status


def target_of(url: str, rules: EgressPolicy) -> Target:
    target = parse_target(url, rules)
    assert isinstance(target, Target), target
    return target


async def test_a_named_operators_wrapper_reaches_an_opened_address() -> None:
    async with serving(keeps_open(plain(b"ok"))) as server:
        rules = policy(f"127.0.0.1:{server.port}")
        async with pools(rules) as upstreams:
            target = target_of(server.url(), rules.of(NAMED))
            assert await call(upstreams, target, NAMED) == 200
            for account in (STRANGER, ""):
                with pytest.raises(UpstreamFailed):
                    await call(upstreams, target, account)
        assert len(server.requests) == 1


async def test_an_opened_address_is_reached_over_tls_too(tmp_path: Path) -> None:
    authority = TestAuthority(tmp_path)
    async with serving(keeps_open(plain(b"ok")), authority.server_context("localhost")) as server:
        rules = policy(f"localhost:{server.port}")
        resolver = ScriptedResolver(localhost=[["127.0.0.1"]])
        async with pools(rules, resolver, authority.client_context()) as upstreams:
            target = target_of(server.url(host="localhost"), rules.of(NAMED))
            assert await call(upstreams, target, NAMED) == 200


async def test_another_port_of_an_opened_address_is_not_dialled() -> None:
    async with serving(keeps_open(plain(b"ok"))) as server, serving(keeps_open(b"")) as other:
        rules = policy(f"127.0.0.1:{server.port}")
        lenient = EgressPolicy(allow_private=True, require_https=False)
        async with pools(rules) as upstreams:
            with pytest.raises(UpstreamFailed):
                await call(upstreams, target_of(other.url(), lenient), NAMED)
        assert other.connections == 0


async def test_a_kept_connection_to_an_opened_address_serves_nobody_else() -> None:
    """Both wrappers name the same public host, which leads inside."""
    async with serving(keeps_open(plain(b"inside"))) as server:
        rules = policy(f"127.0.0.1:{server.port}")
        resolver = ScriptedResolver(api_example_com=[["127.0.0.1"]])
        async with pools(rules, resolver) as upstreams:
            target = target_of(server.url(host="api.example.com"), rules.of(NAMED))
            assert await call(upstreams, target, NAMED) == 200
            with pytest.raises(UpstreamFailed):
                await call(upstreams, target, STRANGER)
            prepared = upstreams.prepare(
                UpstreamRequest("GET", target, b"/", (), b"", 0, timeout_s=2, account=STRANGER)
            )
            assert prepared.reserve(None, anonymous_at("203.0.113.1")) is None  # type: ignore[arg-type] - it is not reached
        assert len(server.requests) == 1


@pytest.mark.parametrize("second", ["169.254.169.254", "127.0.0.2", "10.0.3.7", "::1"])
async def test_a_name_that_rebinds_is_judged_by_the_address_each_time(second: str) -> None:
    async with serving(keeps_open(plain(b"ok"))) as server:
        rules = policy(f"127.0.0.1:{server.port}")
        resolver = ScriptedResolver(rebind_example=[["127.0.0.1"], [second], ["127.0.0.1", second]])
        target = target_of(server.url(host="rebind.example"), rules.of(NAMED))
        async with pools(rules, resolver) as upstreams:
            assert await call(upstreams, target, NAMED) == 200
        for _ in range(2):  # no kept connection: the name is asked again
            async with pools(rules, resolver) as upstreams:
                with pytest.raises(UpstreamFailed):
                    await call(upstreams, target, NAMED)
        assert len(server.requests) == 1


async def test_a_redirect_of_an_opened_upstream_is_told_and_not_followed() -> None:
    async with serving(keeps_open(plain(b"inside"))) as secret:
        moved = plain(b"", "302 Found", f"Location: {secret.url()}")
        async with serving(keeps_open(moved)) as server:
            rules = policy(f"127.0.0.1:{server.port}")
            async with pools(rules) as upstreams:
                assert await call(upstreams, target_of(server.url(), rules.of(NAMED)), NAMED) == 302
        assert secret.connections == 0


async def test_ipv6_is_opened_by_its_own_entry() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as door:
        port = door.getsockname()[1]
        rules = policy(f"[::1]:{port}")
        target = target_of(f"http://[::1]:{port}/", rules.of(NAMED))
        for account, dialled in ((STRANGER, 0), (NAMED, 1)):
            async with pools(rules) as upstreams:
                door.setblocking(False)  # noqa: FBT003 - its only form
                with pytest.raises(UpstreamFailed):  # nobody answers HTTP here
                    await call(upstreams, target, account)
                try:
                    door.accept()[0].close()
                    accepted = 1
                except BlockingIOError:
                    accepted = 0
            assert accepted == dialled
