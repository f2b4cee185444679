"""What is dialled is what was judged: names, answers, rebinding, and development."""

# ruff: noqa: E501 - a table of addresses, several to a line

import pytest

from assay.net.egress.address import classify
from assay.net.egress.client import GuardedHttp
from assay.net.egress.dial import GuardedNetworkBackend
from assay.net.egress.ports import EgressError, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from assay.net.resolver import SystemResolver
from tests.support.eventually import never
from tests.support.fakes.scripted_resolver import ScriptedResolver
from tests.support.raw_server import keeps_open, plain, serving
from tests.vectors.forbidden_hosts import FORBIDDEN

OPEN = EgressPolicy(allow_private=False, require_https=False)
DEVELOPMENT = EgressPolicy(allow_private=True, require_https=False)
QUICK = Limits(connect_s=1.0, total_s=2.0)
DENIED_ANSWERS = (
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "169.254.1.1", "168.63.129.16", "100.64.0.1", "100.100.100.200", "0.0.0.0", "0.1.1.1", "224.0.0.1",
    "240.0.0.1", "255.255.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "192.88.99.1", "::1", "::", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0",
    "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1",
    "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "2002:7f00:1::", "2001::1",
    "2001:db8::1", "3fff::1", "2001:2::1", "100::1", "4000::1", "2606:4700::5efe:10.0.0.1", "nonsense", "",
)  # fmt: skip


async def refused(http: GuardedHttp, url: str) -> EgressError:
    with pytest.raises(EgressError) as raised:
        await http.send(OutboundRequest("GET", url), QUICK)
    return raised.value


@pytest.mark.parametrize("host", FORBIDDEN, ids=ascii)
async def test_a_forbidden_spelling_is_refused_and_never_looked_up(host: str) -> None:
    resolver = ScriptedResolver()
    http = GuardedHttp(OPEN, resolver)
    assert (await refused(http, f"http://{host}:8080/")).failure is Failure.REFUSED_ADDRESS
    assert resolver.asked == []
    await http.aclose()


@pytest.mark.parametrize("answer", DENIED_ANSWERS)
async def test_a_name_that_resolves_to_a_denied_address_is_refused(answer: str) -> None:
    http = GuardedHttp(OPEN, ScriptedResolver(agent_example=[[answer]]))
    assert (await refused(http, "http://agent.example/")).failure is Failure.REFUSED_ADDRESS
    await http.aclose()


@pytest.mark.parametrize("answer", DENIED_ANSWERS)
@pytest.mark.parametrize("public_first", [True, False])
async def test_one_denied_answer_among_public_ones_refuses_the_name(
    answer: str,
    public_first: bool,  # noqa: FBT001 - a column of the table
) -> None:
    answers = ["93.184.216.34", "2606:4700::1", answer]
    script = answers if public_first else answers[::-1]
    http = GuardedHttp(OPEN, ScriptedResolver(agent_example=[script]))
    assert (await refused(http, "http://agent.example/")).failure is Failure.REFUSED_ADDRESS
    await http.aclose()


class Dialled(Exception):
    pass


@pytest.fixture
def dials(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every address that reaches the network, which none of them may here."""
    seen: list[tuple[str, int]] = []

    async def record(host: str, port: int, *_: object) -> None:
        seen.append((host, port))
        raise OSError("not from a test")

    monkeypatch.setattr("assay.net.egress.dial.dial_counted", record)
    return seen


async def test_a_name_that_changes_its_answer_is_dialled_where_it_was_judged(
    dials: list[tuple[str, int]],
) -> None:
    """DNS rebinding: public when judged, loopback a moment later. There is no later look-up."""
    resolver = ScriptedResolver(agent_example=[["93.184.216.34"], ["127.0.0.1"]])
    backend = GuardedNetworkBackend(OPEN, resolver)
    with pytest.raises(OSError, match="not from a test"):
        await backend.connect_tcp("agent.example", 443, timeout=1.0)
    assert dials == [("93.184.216.34", 443)]
    assert resolver.asked == ["agent.example"]


async def test_a_name_that_changes_between_requests_is_judged_again(
    dials: list[tuple[str, int]],
) -> None:
    resolver = ScriptedResolver(agent_example=[["93.184.216.34"], ["127.0.0.1"]])
    backend = GuardedNetworkBackend(OPEN, resolver)
    with pytest.raises(OSError, match="not from a test"):
        await backend.connect_tcp("agent.example", 443, timeout=1.0)
    with pytest.raises(EgressError) as raised:
        await backend.connect_tcp("agent.example", 443, timeout=1.0)
    assert raised.value.failure is Failure.REFUSED_ADDRESS
    assert dials == [("93.184.216.34", 443)]


async def test_a_name_is_looked_up_once_and_its_address_connected() -> None:
    async with serving(keeps_open(plain(b"hello"))) as server:
        resolver = ScriptedResolver(agent_example=[["127.0.0.1"], ["203.0.113.1"]])
        http = GuardedHttp(DEVELOPMENT, resolver)
        reply = await http.send(OutboundRequest("GET", server.url(host="agent.example")), QUICK)
        assert reply.body == b"hello"
        assert resolver.asked == ["agent.example"]
        assert server.requests[0].headers["host"] == f"agent.example:{server.port}"
        await http.aclose()


async def test_connections_are_kept_for_a_name_and_never_shared_with_another() -> None:
    async with serving(keeps_open(plain(b"hello"))) as server:
        resolver = ScriptedResolver(a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]])
        http = GuardedHttp(DEVELOPMENT, resolver)
        for host in ("a.example", "a.example", "b.example", "b.example"):
            await http.send(OutboundRequest("GET", server.url(host=host)), QUICK)
        assert server.connections == 2
        assert resolver.asked == ["a.example", "b.example"]
        await http.aclose()


async def test_private_addresses_are_reached_in_development_only() -> None:
    async with serving(keeps_open(plain(b"hello"))) as server:
        strict, lax = GuardedHttp(OPEN), GuardedHttp(DEVELOPMENT)
        assert (await lax.send(OutboundRequest("GET", server.url()), QUICK)).status == 200
        assert (await refused(strict, server.url())).failure is Failure.REFUSED_ADDRESS
        assert len(server.requests) == 1
        await strict.aclose()
        await lax.aclose()


@pytest.mark.parametrize("answer", ["169.254.169.254", "fd00:ec2::254", "::ffff:127.0.0.1"])
async def test_metadata_is_not_reached_even_in_development(answer: str) -> None:
    http = GuardedHttp(DEVELOPMENT, ScriptedResolver(agent_example=[[answer]]))
    assert (await refused(http, "http://agent.example/")).failure is Failure.REFUSED_ADDRESS
    await http.aclose()


async def test_the_next_address_is_tried_when_one_does_not_accept() -> None:
    async with serving(keeps_open(plain(b"hello"))) as server:
        http = GuardedHttp(DEVELOPMENT, ScriptedResolver(agent_example=[["::1", "127.0.0.1"]]))
        assert (
            await http.send(OutboundRequest("GET", server.url(host="agent.example")), QUICK)
        ).status == 200
        await http.aclose()


@pytest.mark.parametrize("answer", [OSError("no such name"), []])
async def test_a_name_without_addresses_is_not_resolved(answer: OSError | list[str]) -> None:
    http = GuardedHttp(OPEN, ScriptedResolver(agent_example=[answer]))
    assert (await refused(http, "http://agent.example/")).failure is Failure.NAME
    await http.aclose()


async def test_a_look_up_that_hangs_costs_the_connect_time() -> None:
    class Hanging:
        async def resolve(self, host: str, port: int) -> list[str]:
            del host, port
            await never()

    http = GuardedHttp(OPEN, Hanging())
    limits = Limits(connect_s=0.1, total_s=5.0)
    with pytest.raises(EgressError) as raised:
        await http.send(OutboundRequest("GET", "http://agent.example/"), limits)
    assert raised.value.failure is Failure.TIMEOUT
    await http.aclose()


async def test_nothing_listening_is_a_failed_connection() -> None:
    async with serving(keeps_open(plain(b""))) as server:
        port = server.port
    http = GuardedHttp(DEVELOPMENT)
    assert (await refused(http, f"http://127.0.0.1:{port}/")).failure is Failure.CONNECT
    await http.aclose()


async def test_the_environments_proxies_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(keeps_open(plain(b"direct"))) as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        http = GuardedHttp(DEVELOPMENT)
        assert (await http.send(OutboundRequest("GET", server.url()), QUICK)).body == b"direct"
        await http.aclose()


def test_the_answers_of_this_test_are_all_denied() -> None:
    assert all(classify(answer) for answer in DENIED_ANSWERS)


async def test_a_look_up_that_times_out_by_itself_is_a_time_out() -> None:
    http = GuardedHttp(OPEN, ScriptedResolver(agent_example=[TimeoutError()]))
    assert (await refused(http, "http://agent.example/")).failure is Failure.TIMEOUT
    await http.aclose()


async def test_the_systems_resolver_answers_with_addresses() -> None:
    resolver = SystemResolver()
    addresses = await resolver.resolve("localhost", 80)
    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert len(set(addresses)) == len(addresses) > 0
    resolver.close()


@pytest.mark.parametrize("name", ["agent.invalid", "a" * 64 + ".example", ""])
async def test_the_systems_resolver_fails_as_an_os_error(name: str) -> None:
    resolver = SystemResolver()
    with pytest.raises(OSError):  # noqa: PT011 - the one thing every failure has in common
        await resolver.resolve(name or ".", 80)
    resolver.close()
