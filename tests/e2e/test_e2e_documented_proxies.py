"""The proxy configurations of `docs/operate.md` do what the page says, run by the real programs."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_e2e_wrapper_proxy import Door, Room, script, unread
from tests.support.assay import served
from tests.support.documented_proxies import (
    DOCUMENTED_PROXIES,
    INTERNAL,
    INTERNAL_FILE,
    SITE,
    trusted_proxies,
)
from tests.support.raw_client import CutOff, Got, RawClient
from tests.support.reverse_proxies import running
from tests.support.shop import NO_CHAIN
from tests.support.wire_upstream import Asked, Wire, wire_upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CALLER, OTHER = "127.0.0.9", "127.0.0.10"
"""Loopback addresses that no proxy has: the page trusts 127.0.0.1 and ::1 alone."""

MIB = 1024 * 1024
HEAD_BYTES = 64 * 1024
FORGED = (
    "X-Forwarded-For: 203.0.113.7",
    "X-Forwarded-For: 127.0.0.1",
    "X-Real-IP: 203.0.113.8",
    "Forwarded: for=203.0.113.9",
    "True-Client-IP: 203.0.113.10",
    "X-Envoy-External-Address: 203.0.113.11",
    "Via: 1.1 203.0.113.12",
)
ANSWER_S = 20.0
ANONYMOUS_PER_MINUTE = 60


@dataclass
class Front:
    """A documented proxy in front of a service."""

    name: str
    address: str
    room: Room
    log: Path

    def client(self, own: str = CALLER) -> RawClient:
        return RawClient(self.address, ANSWER_S, own)

    def ask(self, method: str, path: str, *lines: str, body: bytes = b"", own: str = CALLER) -> Got:
        with self.client(own) as client:
            client.send(request(method, path, *lines, body=body))
            got = client.answer(bare=method == "HEAD")
        assert got.status != 502, self.log.read_text("utf-8")
        return got

    def status_of(self, data: bytes) -> int | None:
        """Of the answer; None where the connection was ended before it was read.

        Who answers before it has read everything may end the connection so.
        """
        with self.client() as client:
            with suppress(ConnectionError):  # it may have been answered all the same
                client.send(data)
            try:
                return client.answer().status
            except CutOff:
                return None


def request(method: str, path: str, *lines: str, body: bytes = b"") -> bytes:
    head = [f"{method} {path} HTTP/1.1", f"Host: {SITE}", *lines]
    if body:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    settings = {
        "ASSAY_ANONYMOUS_PER_MINUTE": str(ANONYMOUS_PER_MINUTE),
        "ASSAY_WRAPPER_PER_MINUTE": "10000000",
        "ASSAY_TRUSTED_PROXIES": trusted_proxies(),
    }
    folder = tmp_path_factory.mktemp("documented")
    with wire_upstream() as up, served(folder, NO_CHAIN, **settings) as server:
        door = Door(server)
        yield door.wrap(up)
        door.http.close()


@pytest.fixture(scope="module", params=list(DOCUMENTED_PROXIES))
def front(
    request: pytest.FixtureRequest, room: Room, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    log = tmp_path_factory.mktemp("proxy") / "log"
    port = urlsplit(room.door.server.address).port
    assert port is not None
    with running(DOCUMENTED_PROXIES[request.param], [port], log) as [address]:
        yield Front(request.param, address, room, log)


def test_health_and_keys_are_reachable(front: Front) -> None:
    got = front.ask("GET", "/operator/health")
    assert (got.status, json.loads(got.body)["ok"]) == (200, True)
    assert front.ask("GET", "/.well-known/jwks.json").status == 200
    assert front.ask("HEAD", "/operator/health").status == 200


@pytest.mark.parametrize("below", ["/a%2Fb", "/a//b", "/a;v=1/b%20c", "/x?", "/x?q=%2F&q=a+b&%41"])
def test_path_and_query_pass_as_they_came(front: Front, below: str) -> None:
    outside, seen = front.room.place()
    assert front.ask("GET", outside + below).status == 200
    targets = [one.target for one in front.room.up.asked if one.target.startswith(seen + "/")]
    if front.name == "caddy" and below == "/x?":  # Go has one form for no query and an empty one
        below = targets[0].removeprefix(seen)
    assert targets == [seen + below]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_requests_pass_with_their_bodies(front: Front, method: str) -> None:
    outside, seen = front.room.place()
    got = front.ask(method, outside, "X-Own: mine", body=b"the body")
    assert (got.status, got.body) == (200, hashlib.sha256(b"the body").hexdigest().encode())
    [asked] = front.room.up.to(seen)
    assert (asked.method, asked.body, asked.all("x-own")) == (method, b"the body", ["mine"])


def test_an_answer_passes_piece_by_piece(front: Front) -> None:
    """The second piece is sent only after the caller has the first one."""
    go_on = threading.Event()

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        await wire.send(b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        assert await asyncio.to_thread(go_on.wait, ANSWER_S)
        await wire.send(b"3\r\ntwo\r\n0\r\n\r\n")

    outside, _ = front.room.place(play)
    with front.client() as client:
        client.send(request("GET", outside))
        assert client.head().status == 200
        assert client.chunk() == b"one"
        go_on.set()
        assert b"".join(client.chunks()) == b"two"


def test_a_body_passes_piece_by_piece(front: Front) -> None:
    """The caller sends the second piece only after the upstream has the first one."""
    has_one = threading.Event()

    async def play(wire: Wire, asked: Asked) -> None:
        first = await wire.reader.readuntil(b"one")
        has_one.set()
        asked.body = first[-3:] + await wire.reader.readuntil(b"0\r\n\r\n")
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    outside, seen = front.room.place(unread(play))
    with front.client() as client:
        client.send(request("POST", outside, "Transfer-Encoding: chunked") + b"3\r\none\r\n")
        assert has_one.wait(ANSWER_S)
        client.send(b"3\r\ntwo\r\n0\r\n\r\n")
        assert client.answer().status == 200
    [asked] = front.room.up.to(seen)
    assert b"two" in asked.body


def test_the_callers_address_is_the_callers(front: Front) -> None:
    for own in (CALLER, OTHER):
        outside, seen = front.room.place()
        assert front.ask("GET", outside, own=own).status == 200
        [asked] = front.room.up.to(seen)
        assert asked.all("x-forwarded-for") == [own]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_forged_client_addresses_do_not_count(front: Front, method: str) -> None:
    outside, seen = front.room.place()
    assert front.ask(method, outside, *FORGED).status == 200
    [asked] = front.room.up.to(seen)
    assert asked.all("x-forwarded-for") == [CALLER]
    dropped = ("x-real-ip", "forwarded", "true-client-ip", "x-envoy-external-address")
    assert [asked.all(name) for name in dropped] == [[]] * len(dropped)
    said = [value for name, value in asked.headers if name != "via"]
    assert not any("203.0.113." in value for value in said)


def test_callers_with_forged_addresses_share_their_own_limit(front: Front) -> None:
    """A new address in each request, and yet the caller's own limit is reached."""
    number = list(DOCUMENTED_PROXIES).index(front.name) + 1
    statuses: list[int] = []
    with front.client(f"127.0.1.{number}") as client:
        while 429 not in statuses and len(statuses) < 5 * ANONYMOUS_PER_MINUTE:
            forged = f"X-Forwarded-For: 198.51.100.{len(statuses)}"
            client.send(request("GET", "/operator/agent/1", forged, *FORGED))
            statuses.append(client.answer().status)
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert front.ask("GET", "/operator/agent/1", own=f"127.0.2.{number}").status == 401


@pytest.mark.parametrize("token", ["h2c", "websocket", "anything", "TLS/1.0, h2c"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_upgrade_smuggles_nothing(front: Front, method: str, framing: str, token: str) -> None:
    outside, seen = front.room.place()
    inside, hidden_seen = front.room.place()
    hidden = request("GET", inside)
    lines = [f"Upgrade: {token}", "Connection: keep-alive, Upgrade"]
    if framing == "length":
        lines.append(f"Content-Length: {len(hidden)}")
        body = hidden
    else:
        lines.append("Transfer-Encoding: chunked")
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(hidden), hidden)
    with front.client() as client:
        client.send(request(method, outside, *lines))
        try:
            client.send(body)
            got = client.answer()
        except (ConnectionError, CutOff):  # refused before the body came
            got = None
    victim, _ = front.room.place()
    for _ in range(3):  # on the proxy's connections, were one still waiting for its next request
        assert front.ask("GET", victim).body == hashlib.sha256(b"").hexdigest().encode()
    assert front.room.up.to(hidden_seen) == []
    assert [one.body for one in front.room.up.to(seen)] in ([], [hidden])
    assert got is None or got.status != 101
    for asked in front.room.up.to(seen):
        assert asked.all("upgrade") == []


@pytest.mark.parametrize("method", ["CONNECT", "TRACE"])
def test_tunnels_and_traces_are_refused(front: Front, method: str) -> None:
    outside, seen = front.room.place()
    target = f"{SITE}:443" if method == "CONNECT" else outside
    got = front.ask(method, target)
    assert 400 <= got.status < 500
    assert front.room.up.to(seen) == []


def test_an_upstreams_command_to_the_proxy_reaches_nobody(front: Front) -> None:
    commands = (
        b"x-accel-redirect: " + INTERNAL.encode() + b"file\r\nx-sendfile: /etc/hostname\r\n"
        b"x-envoy-upstream-service-time: 1\r\nsurrogate-control: max-age=9\r\n"
    )
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n" + commands + b"\r\nown"
    for method in ("GET", "POST"):
        outside, _ = front.room.place(script(reply))
        got = front.ask(method, outside)
        assert (got.status, got.body) == (200, b"own")
        assert not any(
            name.startswith(("x-accel", "x-sendfile", "surro")) for name, _ in got.headers
        )


def test_nginx_itself_obeys_no_command_of_an_answer() -> None:
    """As if the service let one pass: straight from the page's nginx to such an upstream."""
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx-accel-redirect: %bfile\r\n\r\nown"
    with wire_upstream() as up:
        up.plays["/"] = script(reply % INTERNAL.encode())
        port = urlsplit(up.url).port
        assert port is not None
        with (
            running(DOCUMENTED_PROXIES["nginx"], [port]) as [address],
            RawClient(address) as client,
        ):
            client.send(request("GET", "/"))
            got = client.answer()
            assert (got.status, got.body) == (200, b"own")
            client.send(request("GET", INTERNAL + "file"))
            assert INTERNAL_FILE.encode() not in client.answer().body


def test_bodies_up_to_a_wrappers_limit_pass(front: Front) -> None:
    body = b"x" * (10 * MIB)
    outside, seen = front.room.place()
    got = front.ask("POST", outside, body=body)
    assert (got.status, got.body) == (200, hashlib.sha256(body).hexdigest().encode())
    assert front.status_of(request("POST", outside, body=body + b"x")) in {413, None}
    assert len(front.room.up.to(seen)) == 1


def test_heads_up_to_the_services_limit_pass(front: Front) -> None:
    """A proxy adds some headers of its own to what the service counts."""
    outside, seen = front.room.place()
    lines = [f"X-{number}: {'y' * 7990}" for number in range(7)]
    assert front.ask("GET", outside, *lines).status == 200
    assert front.ask("GET", outside, "X-One: " + "y" * 60_000).status == 200
    assert len(front.room.up.to(seen)) == 2
    for more in (HEAD_BYTES, 2 * HEAD_BYTES):
        data = request("GET", outside, "X-One: " + "y" * more)
        assert front.status_of(data) in {400, 431, None}
    assert len(front.room.up.to(seen)) == 2
