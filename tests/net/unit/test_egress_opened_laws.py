"""With `ASSAY_UPSTREAM_ALLOW` set: nothing outside the list is connected to, whatever answers."""

import asyncio
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.clock import SystemClock
from assay.http1.client import UpstreamPool, UpstreamsByOperator
from assay.http1.model import UpstreamFailed, UpstreamRequest
from assay.net.egress import dial
from assay.net.egress.address import (
    BlockReason,
    OpenedAddresses,
    OpenedEntry,
    OpenedForOperators,
    classify,
    is_called,
)
from assay.net.egress.dial import UpstreamDialer
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from tests.support.fakes.scripted_resolver import ScriptedResolver

PLAIN = {BlockReason.PRIVATE, BlockReason.CGNAT}
ODD = {BlockReason.METADATA, BlockReason.LINK_LOCAL, BlockReason.SITE_LOCAL, BlockReason.RESERVED}
ODD |= {BlockReason.DOCUMENTATION, BlockReason.BENCHMARKING}
OWN_PORT = 8787
NAMED, STRANGER = "named", "stranger"
HOSTS = ("api.internal", "api.example.com", "rebind.example", "localhost", "db.internal")

# Near each other, so that lists and addresses often meet.
ipv4 = st.sampled_from(
    ["10.0.3.", "10.0.4.", "192.168.1.", "127.0.0.", "169.254.169.", "100.100.100.", "8.8.8."]
).flatmap(lambda head: st.integers(0, 255).map(lambda last: IPv4Address(f"{head}{last}")))
ipv6 = st.one_of(
    st.sampled_from(
        ["fd12::", "fd12:0:0:1::", "fd00:ec2::", "fe80::", "::", "2606:4700::"]
    ).flatmap(lambda head: st.integers(1, 600).map(lambda last: IPv6Address(f"{head}{last:x}"))),
    ipv4.map(lambda inside: IPv6Address(f"::ffff:{inside}")),
    ipv4.map(lambda inside: IPv6Address(f"64:ff9b::{inside}")),
)
addresses = st.one_of(ipv4, ipv6, st.integers(0, 2**32 - 1).map(IPv4Address))
ports = st.sampled_from([80, 443, 8080, 8443, 8787, 22, 5432, 6379])
networks = st.one_of(
    st.tuples(ipv4, st.integers(0, 32)).map(lambda one: IPv4Network(one, strict=False)),
    st.tuples(ipv6, st.integers(0, 128)).map(lambda one: IPv6Network(one, strict=False)),
)
entries = st.builds(
    OpenedEntry,
    st.one_of(networks, st.sampled_from(HOSTS)),
    st.one_of(st.none(), ports),
)
lists = st.lists(entries, min_size=1, max_size=4).map(tuple)


def policy(listed: tuple[OpenedEntry, ...]) -> EgressPolicy:
    opened = OpenedAddresses(listed, frozenset({OWN_PORT}))
    return EgressPolicy(opened_for=OpenedForOperators(opened, frozenset({NAMED})))


def may_be_dialled(
    listed: tuple[OpenedEntry, ...], scheme: str, host: str, port: int, text: str
) -> bool:
    """The rule once more, written as the page says it: listed, or public, over https."""
    denial = classify(text)
    if denial is None:
        return scheme == "https" and is_called(port)
    if denial.reason not in PLAIN | {BlockReason.LOOPBACK} | ODD:
        return False
    plain_port = port != OWN_PORT and is_called(port)
    fitting = [e for e in listed if e.port == port or (e.port is None and plain_port)]
    kinds = PLAIN | ({BlockReason.LOOPBACK} if host == "localhost" else set())
    if denial.reason in kinds and any(entry.where == host for entry in fitting):
        return True
    address = ip_address(text)
    networks = [e.where for e in fitting if not isinstance(e.where, str) and address in e.where]
    if denial.reason in ODD:
        return any(network.num_addresses == 1 for network in networks)
    return bool(networks)


@given(lists, st.sampled_from(["http", "https"]), st.sampled_from(HOSTS), ports, addresses)
def test_what_is_dialled_is_public_or_listed(
    listed: tuple[OpenedEntry, ...],
    scheme: str,
    host: str,
    port: int,
    address: IPv4Address | IPv6Address,
) -> None:
    rules = policy(listed).of(NAMED)
    if rules.refusal(scheme, host, port, address) is None:
        assert may_be_dialled(listed, scheme, host, port, str(address))


@given(lists, st.sampled_from(["http", "https"]), ports, addresses)
def test_what_is_listed_changes_nothing_for_anybody_else(
    listed: tuple[OpenedEntry, ...], scheme: str, port: int, address: IPv4Address | IPv6Address
) -> None:
    host = f"[{address}]" if ":" in str(address) else str(address)
    for url in (f"{scheme}://{host}:{port}/", f"{scheme}://api.internal:{port}/"):
        assert parse_target(url, policy(listed).of(STRANGER)) == parse_target(url, EgressPolicy())
    refusal = policy(listed).of(STRANGER).refusal(scheme, "rebind.example", port, address)
    assert refusal == EgressPolicy().refusal(scheme, "rebind.example", port, address)


@given(
    lists,
    st.sampled_from([NAMED, STRANGER]),
    st.sampled_from(["http", "https"]),
    st.sampled_from(HOSTS),
    ports,
    st.lists(st.lists(addresses, min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_no_address_outside_the_list_is_connected_to(
    listed: tuple[OpenedEntry, ...],
    account: str,
    scheme: str,
    host: str,
    port: int,
    answers: list[list[IPv4Address | IPv6Address]],
) -> None:
    """Through the pools themselves: every answer of a name that changes its mind, every account."""
    dialled: list[str] = []

    async def record(address: str, _port: int) -> socket.socket:
        dialled.append(address)
        raise OSError("not from a test")

    async def calls() -> None:
        rules = policy(listed)
        texts = [[str(one) for one in answer] for answer in answers]
        resolver = ScriptedResolver(**{host.replace(".", "_"): texts})
        dialers = [UpstreamDialer(one, resolver) for one in (rules, rules.of(NAMED))]
        pools = [UpstreamPool(one.connect, SystemClock()) for one in dialers]
        both = UpstreamsByOperator(*pools, frozenset({NAMED}))
        target = parse_target(f"{scheme}://{host}:{port}/", rules.of(account))
        if isinstance(target, RefusedUrl):
            return
        for _ in answers:
            with pytest.raises(UpstreamFailed):
                await both.send(
                    UpstreamRequest("GET", target, b"/", (), b"", 0, timeout_s=2, account=account)
                )
        for pool in pools:
            await pool.aclose()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dial, "connected_socket", record)
        asyncio.run(calls())
    own = listed if account == NAMED else ()
    assert all(may_be_dialled(own, scheme, host, port, address) for address in dialled)
