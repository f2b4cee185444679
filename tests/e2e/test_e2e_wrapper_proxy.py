"""A wrapper as a reverse proxy, by the letter: both lanes, real sockets, every byte ours.

What a friendly peer sees is in `test_e2e_proxy_conformance.py`; here both sides are difficult.
Both lanes are asked: a GET over a kept connection takes the fast one, a POST the ordinary one.
"""

import asyncio
import hashlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from assay.http1.connections import BOUNDS
from tests.support.assay import Served, resident_mib, served
from tests.support.eventually import eventually, eventually_here
from tests.support.raw_client import CutOff, Got, RawClient, request
from tests.support.shop import NO_CHAIN, PASSWORD
from tests.support.wire_upstream import Asked, Play, Wire, WireUpstream, wire_upstream

pytestmark = pytest.mark.e2e
KIB, MIB = 1024, 1024 * 1024
LANES = ["GET", "POST"]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Door:
    """A serving Assay and one operator of it."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.http = httpx2.Client(base_url=server.address, timeout=20, trust_env=False)
        body = {"email": "op@example.com", "password": PASSWORD, "name": "Op"}
        self.http.post("/operator/register", json=body)
        del body["name"]
        login = self.http.post("/operator/login", json=body).json()
        self.operator: str = login["operator"]["id"]
        self._token = {"authorization": f"Bearer {login['token']}"}
        self._rooms = 0

    def wrap(self, up: WireUpstream, **fields: object) -> "Room":
        """A wrapper of everything below a path of its own, in front of `up`."""
        self._rooms += 1
        room = Room(self, up, f"/r{self._rooms}")
        asked = {"path": room.path + "/*", "method": "*", "pricePerCall": 0} | fields
        answer = self.create(**asked, targetUrl=up.url + "/base")
        assert answer.status_code == 200, answer.text
        return room

    def create(self, **fields: object) -> Any:
        return self.http.post("/operator/endpoints", json=fields, headers=self._token)

    @property
    def pid(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid


class Room:
    """A wrapper, its upstream, and the paths below it."""

    def __init__(self, door: Door, up: WireUpstream, path: str) -> None:
        self.door, self.up, self.path = door, up, path
        self._count = 0

    def place(self, play: Play | None = None) -> tuple[str, str]:
        """A path nobody has asked for: as callers name it, and as the upstream sees it."""
        self._count += 1
        below = f"{self.path}/p{self._count}"
        if play is not None:
            self.up.plays["/base" + below] = play
        return self.outside(below), "/base" + below

    def outside(self, below: str) -> str:
        return f"/wrap/{self.door.operator}{below}"

    def client(self, wait_s: float = 10.0) -> RawClient:
        return RawClient(self.door.server.address, wait_s)

    def warm(self) -> None:
        """Now a connection to the upstream is kept, and the fast lane is open."""
        with self.client() as client:
            got = client.ask("GET", self.outside(self.path + "/warm"))
            assert (got.status, len(got.body)) == (200, 64)

    def ask(self, method: str, outside: str, *headers: str, body: bytes = b"") -> Got:
        """One request, by the lane its method stands for."""
        self.warm()
        with self.client() as client:
            return client.ask(method, outside, *headers, body=body)


def script(*steps: bytes | float | None) -> Play:
    """Bytes are sent, numbers are seconds, None ends the connection."""

    async def play(wire: Wire, _asked: Asked) -> None:
        for step in steps:
            if step is None:
                wire.writer.close()
            elif isinstance(step, bytes):
                await wire.send(step)
            else:
                await asyncio.sleep(step)

    return play


def unread(play: Play) -> Play:
    """A play that begins at the head: the body, if any, is its own to read."""

    async def begin(wire: Wire, asked: Asked) -> None:
        await play(wire, asked)

    begin.reads_nothing = True  # type: ignore[attr-defined] - what the upstream looks for
    return begin


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    settings = {"ASSAY_WRAPPER_PER_MINUTE": "10000000", "ASSAY_WRAPPER_UNREAD_MIB": "1000000"}
    with served(tmp_path_factory.mktemp("wrapper_proxy"), NO_CHAIN, **settings) as server:
        made = Door(server)
        yield made
        made.http.close()


@pytest.fixture(scope="module")
def room(door: Door) -> Iterator[Room]:
    """For tests that leave their upstream in good order."""
    with wire_upstream() as up:
        yield door.wrap(up)


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Wrappers at an origin of their own."""
    folder = tmp_path_factory.mktemp("wrapper_apart")
    own = "http://assay.example"  # the Host of `raw_client.request`
    with served(folder, NO_CHAIN, ASSAY_WRAP_URL=own) as server, wire_upstream() as up:
        made = Door(server)
        yield made.wrap(up)
        made.http.close()


@pytest.fixture
def own(door: Door) -> Iterator[Room]:
    """An upstream, and connections to it, that no other test has touched."""
    with wire_upstream() as up:
        yield door.wrap(up)


# -- methods and bodies ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"abc"])
@pytest.mark.parametrize(
    "method",
    [
        "GET",
        "HEAD",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
        "OPTIONS",
        "REPORT",
        "PURGE",
        "M-SEARCH",
        "PROPFIND",
        "QUERY",
    ],
)
def test_every_method_arrives_with_its_body(room: Room, method: str, body: bytes) -> None:
    outside, seen = room.place()
    got = room.ask(method, outside, body=body)
    assert got.status == 200
    assert [(one.method, one.body) for one in room.up.to(seen)] == [(method, body)]
    digest = hashlib.sha256(body).hexdigest().encode()
    assert got.body == (b"" if method == "HEAD" else digest)
    assert got.all("content-length") == ["64"]


def test_a_method_that_can_be_configured_can_be_called(door: Door, room: Room) -> None:
    """interface.md#wrappers: any HTTP method. One the server cannot take must not be sold."""
    made = door.create(
        path="/odd", method="FROBNICATE", pricePerCall=0, targetUrl=room.up.url + "/base"
    )
    if made.status_code == 200:
        assert room.ask("FROBNICATE", room.outside("/odd")).status == 200
    else:
        assert made.status_code == 400


@pytest.mark.parametrize("method", ["TRACE", "CONNECT"])
def test_a_method_that_shows_or_tunnels_never_reaches_the_upstream(room: Room, method: str) -> None:
    """An upstream's TRACE would show our caller the secret we add for the upstream."""
    outside, _ = room.place()
    before = len(room.up.asked)
    room.warm()
    with room.client(3) as client:
        client.send(request(method, outside))
        first = client.rest(1.0).split(b"\r\n")[0]
    assert [one.method for one in room.up.asked[before:]] == ["GET"]
    assert first.split(b" ")[1][:1] == b"4" or first.split(b" ")[1] == b"501"


@pytest.mark.parametrize("size", [0, 1, 64 * KIB, 64 * KIB + 1, MIB, 10 * MIB])
@pytest.mark.parametrize("there", ["length", "chunked"])
@pytest.mark.parametrize("back", ["length", "chunked", "until-end"])
def test_bodies_go_there_and_back_byte_for_byte(
    room: Room, size: int, there: str, back: str
) -> None:
    async def echo(wire: Wire, asked: Asked) -> None:
        digest = hashlib.sha256(asked.body).hexdigest().encode()
        lines = {
            "length": b"content-length: %d" % len(asked.body),
            "chunked": b"transfer-encoding: chunked",
            "until-end": b"connection: close",
        }
        await wire.send(b"HTTP/1.1 200 OK\r\nx-digest: %b\r\n%b\r\n\r\n" % (digest, lines[back]))
        if back == "chunked":
            for start in range(0, size, 65_521):
                piece = asked.body[start : start + 65_521]
                await wire.send(b"%x;a=b\r\n%b\r\n" % (len(piece), piece))
            await wire.send(b"0\r\nx-trailer: t\r\n\r\n")
        else:
            await wire.send(asked.body)
        if back == "until-end":
            wire.writer.close()

    outside, _ = room.place(echo)
    body = os.urandom(size)
    cuts = range(0, size, 70_001)
    content = body if there == "length" else iter([body[at : at + 70_001] for at in cuts])
    answer = room.door.http.post(outside, content=content)
    digest = hashlib.sha256(body).hexdigest()
    assert answer.headers["x-digest"] == digest
    assert hashlib.sha256(answer.content).hexdigest() == digest


# -- streaming ------------------------------------------------------------------------------------


FRAMES = {
    "events": b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n",
    "chunked": b"transfer-encoding: chunked\r\n",
    "length": b"content-length: 13\r\n",
    "until-end": b"connection: close\r\n",
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("method", LANES)
def test_the_first_byte_arrives_before_the_last_is_sent(
    room: Room, method: str, frame: str
) -> None:
    arrived = threading.Event()

    async def play(wire: Wire, _asked: Asked) -> None:
        coded = b"chunked" in FRAMES[frame]
        await wire.send(b"HTTP/1.1 200 OK\r\n%b\r\n" % FRAMES[frame])
        await wire.send(b"6\r\nfirst,\r\n" if coded else b"first,")
        await eventually_here(arrived.is_set)
        await wire.send(b"7\r\nsecond.\r\n0\r\n\r\n" if coded else b"second.")
        if frame == "until-end":
            wire.writer.close()

    outside, _ = room.place(play)
    room.warm()
    with room.client() as client:
        client.send(request(method, outside))
        text = b""
        while b"first," not in text:
            text += client.piece()
        arrived.set()
        while b"second." not in text:
            text += client.piece()


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_the_first_byte_of_a_request_arrives_before_the_last_is_sent(
    room: Room, framing: str
) -> None:
    arrived = threading.Event()

    async def play(wire: Wire, asked: Asked) -> None:
        got = await wire.reader.readuntil(b"first,")
        arrived.set()
        rest = await wire.reader.readuntil(b"last.")
        asked.body = got + rest
        await wire.send(OK)

    outside, seen = room.place(unread(play))
    body = b"first," + b"." * 200_000 + b"last."
    line = f"Content-Length: {len(body)}" if framing == "length" else "Transfer-Encoding: chunked"
    with room.client() as client:
        head = f"POST {outside} HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode()
        chunk = b"%x\r\n%b\r\n"
        first, rest = body[:6], body[6:]
        client.send(head + (first if framing == "length" else chunk % (6, first)))
        assert arrived.wait(5), "nothing arrived before the body was whole"
        client.send(rest if framing == "length" else chunk % (len(rest), rest) + b"0\r\n\r\n")
        assert client.answer().body == b"ok"
    assert room.up.to(seen)[0].body.endswith(b"last.")


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_conversation_goes_both_ways_at_once(room: Room, framing: str) -> None:
    """The head of an answer says nothing of the request's end: both go on side by side."""

    async def echo(wire: Wire, _asked: Asked) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(5):
            await wire.reader.readuntil(b"<%d>" % number)
            await wire.send(b"3\r\n[%d]\r\n" % number)
        await wire.send(b"0\r\n\r\n")

    outside, _ = room.place(unread(echo))
    filler = b"." * 20_000
    length = 5 * (len(filler) + 3)
    line = f"Content-Length: {length}" if framing == "length" else "Transfer-Encoding: chunked"
    with room.client(4) as client:
        client.send(f"POST {outside} HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode())
        for number in range(5):
            piece = filler + b"<%d>" % number
            chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
            client.send(piece if framing == "length" else chunk)
            if number == 0:
                assert client.head().status == 200
            assert client.chunk() == b"[%d]" % number
        if framing == "chunked":
            client.send(b"0\r\n\r\n")
        assert client.chunk() is None


def test_an_answer_before_the_end_of_the_request_is_passed_on(own: Room) -> None:
    """The upstream has read the head only; its refusal is the answer, not our 502."""
    refusal = b"HTTP/1.1 413 No\r\ncontent-length: 7\r\n\r\ntoo big"
    outside, _ = own.place(unread(script(refusal, 0.5, None)))
    for _ in range(3):
        with own.client() as client:
            client.send(f"POST {outside} HTTP/1.1\r\nHost: x\r\n".encode())
            client.send(b"Content-Length: 9000000\r\n\r\n" + b"x" * 100_000)
            got = client.answer()
        assert (got.status, got.body) == (413, b"too big")
    own.warm()  # and nothing of the half request is left on a kept connection


def test_a_connection_that_answered_before_it_had_the_body_serves_no_other(own: Room) -> None:
    """An upstream that answers so early may read nothing more, and a caller can bring it about."""
    behind: list[bytes] = []
    is_over = threading.Event()

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.reader.readuntil(b"one")
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok")
        await wire.reader.readuntil(b"0\r\n\r\n")
        await wire.send(b"ay")
        behind.append(await wire.reader.read(1))
        is_over.set()

    outside, _ = own.place(unread(play))
    with own.client() as client:
        head = f"POST {outside} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head.encode() + b"3\r\none\r\n")
        assert client.head().status == 200
        client.send(b"3\r\ntwo\r\n0\r\n\r\n")
        assert client.exactly(4) == b"okay"
    own.warm()
    assert is_over.wait(10)
    assert behind == [b""]


# -- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", LANES)
def test_repeated_and_odd_headers_are_kept_both_ways(room: Room, method: str) -> None:
    odd = b"x-two: a\r\nX-Two: b\r\nx-empty: \r\nx-latin: \xe9\r\nx-comma: a, b\r\n"
    outside, seen = room.place(script(OK.replace(b"\r\n\r\n", b"\r\n" + odd + b"\r\n")))
    sent = odd.decode("latin-1").removesuffix("\r\n").split("\r\n")
    got = room.ask(method, outside, *sent, "Accept-Encoding: gzip", "Content-Type: a/b; c=d")
    asked = room.up.to(seen)[0]
    for one in (got, asked):
        assert one.all("x-two") == ["a", "b"]
        assert one.all("x-empty") == [""]
        assert one.all("x-latin") == ["\xe9"]
        assert one.all("x-comma") == ["a, b"]
    assert asked.all("accept-encoding") == ["gzip"]
    assert asked.all("content-type") == ["a/b; c=d"]


@pytest.mark.parametrize("method", LANES)
def test_cookies_stay_below_their_operator_one_header_each(
    room: Room, apart: Room, method: str
) -> None:
    cookies = [
        ("a=1", "a=1; Path={below}"),
        ("b=2; Path=/; Secure; HttpOnly", "b=2; Secure; HttpOnly; Path={below}"),
        ("c=3; path=/x/; DOMAIN=.example.com", "c=3; Path={below}/x"),
        ("d=4; Path=/x; Path=/y; Domain=a; domain=b; SameSite=Lax", None),
        ('e="a, b"; Expires=Wed, 21 Oct 2026 07:28:00 GMT', None),
        ("f=6; Path=relative; Partitioned; Secure", "f=6; Partitioned; Secure; Path={below}"),
    ]
    lines = "".join(f"Set-Cookie: {sent}\r\n" for sent, _ in cookies).encode()
    shared, _ = room.place(script(OK.replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n")))
    assert room.ask(method, shared).all("set-cookie") == []  # at the app's origin nobody sets any
    room = apart
    outside, _ = room.place(script(OK.replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n")))
    got = room.ask(method, outside).all("set-cookie")
    below = f"/wrap/{room.door.operator}"
    assert len(got) == len(cookies)
    for (sent, wanted), cookie in zip(cookies, got, strict=True):
        parts = cookie.split("; ")
        assert parts[0] == sent.split("; ")[0]
        assert "domain" not in cookie.lower()
        paths = [part for part in parts if part.lower().startswith("path")]
        assert len(paths) == 1
        assert paths[0].startswith(f"Path={below}")
        if wanted is not None:
            assert cookie == wanted.format(below=below)
    assert "Expires=Wed, 21 Oct 2026 07:28:00 GMT" in got[4]


@pytest.mark.parametrize("method", LANES)
def test_headers_that_end_at_a_hop_end_here_both_ways(room: Room, method: str) -> None:
    hops = [
        "Connection: X-Named , keep-alive",
        "connection: x-other",
        "X-Named: secret",
        "X-Other: secret",
        "Keep-Alive: timeout=99",
        "Proxy-Connection: keep-alive",
        "TE: trailers",
        "Trailer: x-t",
    ]
    back = [*hops, "Upgrade: h2c", "Proxy-Authenticate: Basic"]
    lines = "\r\n".join(back).encode() + b"\r\n\r\n"
    outside, seen = room.place(script(OK.replace(b"\r\n\r\n", b"\r\n" + lines)))
    got = room.ask(method, outside, *hops, "Proxy-Authorization: Basic x")
    names = {line.split(":")[0].lower() for line in back} | {"proxy-authorization"}
    for one in (got, room.up.to(seen)[0]):
        present = {name for name, _ in one.headers}
        assert not present & names, present & names
        assert "secret" not in str(one.headers)


CREDENTIALS = [
    "X-Agent-Session: S3CRET",
    "x-agent-signature: S3CRET",
    "x-agent-address: S3CRET",
    "x-agent-anything: S3CRET",
    "X-PAYMENT: S3CRET",
    "PAYMENT-SIGNATURE: S3CRET",
    "Authorization: Payment S3CRET",
    "authorization: payment   S3CRET",
    "Authorization: Bearer svc_op_S3CRET",
    "AUTHORIZATION: bearer  svc_op_S3CRET",
    "Authorization: Bearer\tsvc_op_S3CRET",
    "x-assay-agent: S3CRET",
    "X-Assay-Tier: S3CRET",
    "x-assay-score: S3CRET",
    "x-assay-request-id: S3CRET",
    "x-assay-invented: S3CRET",
    "X-Request-Id: S3CRET!",
    "x_assay_tier: S3CRET",  # an upstream behind CGI reads it as the one with hyphens
    "X_Agent_Session: S3CRET",
    "x.assay.agent: S3CRET",
    "X_PAYMENT: S3CRET",
    "x_forwarded_for: S3CRET",
    "X-Forwarded_Host: S3CRET",
    "X-Api-Key: svc_op_S3CRET",
    "Cookie: assay_session=S3CRET",
    "Referer: https://x.example/?key=svc_op_S3CRET",
    "X-Original-URL: /S3CRET",
    "X-HTTP-Method-Override: S3CRET",
    "CF-Connecting-IP: S3CRET",
    "content_length: S3CRET",
    "Transfer_Encoding: S3CRET",
    "Proxy: http://S3CRET",
]


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize("line", CREDENTIALS)
def test_what_is_meant_for_us_is_not_forwarded(room: Room, line: str, method: str) -> None:
    outside, seen = room.place()
    got = room.ask(method, outside, line, line, "Connection: x-assay-request-id")
    assert got.status == 200
    asked = room.up.to(seen)[0]
    assert "S3CRET" not in str(asked.headers)
    assert len(asked.all("x-assay-request-id")) == 1


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize("value", ["Bearer other", "Basic YTpi", "Token svc_optional"])
def test_credentials_for_the_upstream_are_forwarded(room: Room, value: str, method: str) -> None:
    outside, seen = room.place()
    room.ask(method, outside, f"Authorization: {value}", "Cookie: a=b; c=d")
    asked = room.up.to(seen)[0]
    assert asked.all("authorization") == [value]
    assert asked.all("cookie") == ["a=b; c=d"]


@pytest.mark.parametrize("method", LANES)
def test_where_a_request_comes_from_is_ours_to_say(room: Room, method: str) -> None:
    outside, seen = room.place()
    lies = [
        "X-Forwarded-For: 6.6.6.6",
        "x-forwarded-for: 6.6.6.7",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Proto: gopher",
        "X-Forwarded-Port: 1",
        "X-Forwarded-Prefix: /evil",
        "Forwarded: for=6.6.6.6;host=evil.example",
        "X-Real-IP: 6.6.6.6",
        "Connection: x-forwarded-for, x-forwarded-host, host",
    ]
    got = room.ask(method, outside, *lies)
    assert got.status == 200
    asked = room.up.to(seen)[0]
    assert asked.all("x-forwarded-for") == ["127.0.0.1"]
    assert asked.all("x-forwarded-proto") == ["http"]
    assert len(asked.all("x-forwarded-host")) == 1
    assert asked.all("host") == [room.up.url.removeprefix("http://")]
    assert "evil" not in str(asked.headers)
    assert "6.6.6" not in str(asked.headers)


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key"])
def test_the_upstreams_own_credential_is_added_and_the_callers_dropped(
    door: Door, room: Room, name: str, method: str
) -> None:
    auth = {"upstreamAuthType": "header", "upstreamAuthHeader": name, "upstreamAuthSecret": "K3Y x"}
    shut = door.wrap(room.up, **auth)
    outside, seen = shut.place()
    odd = name.replace("-", "_").replace("o", "O")
    lines = [f"{name}: mine", f"{name.upper()}: mine too", f"{odd}: mine", f"Connection: {name}"]
    got = shut.ask(method, outside, *lines)
    asked = room.up.to(seen)[0]
    assert asked.all(name.lower()) == ["K3Y x"]
    assert "mine" not in str(asked.headers)
    assert "K3Y" not in str(got)


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize(
    "line",
    [
        "PAYMENT-REQUIRED: x",
        "PAYMENT-RESPONSE: x",
        "X-PAYMENT-RESPONSE: x",
        "Payment-Receipt: x",
        "WWW-Authenticate: Payment x",
        "x-assay-tier: x",
        "Strict-Transport-Security: max-age=1",
        "Clear-Site-Data: *",
        "Alt-Svc: x",
    ],
)
def test_an_upstream_does_not_speak_for_us(room: Room, line: str, method: str) -> None:
    outside, _ = room.place(script(OK.replace(b"\r\n\r\n", b"\r\n" + line.encode() + b"\r\n\r\n")))
    got = room.ask(method, outside)
    assert got.body == b"ok"
    assert got.all(line.split(":", maxsplit=1)[0].lower()) == []


# -- answers without a body, and what comes before answers ----------------------------------------

BARE = {
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "204 with a length": b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
    "304": b'HTTP/1.1 304 Not Modified\r\netag: "x"\r\n\r\n',
    "304 with a length": b"HTTP/1.1 304 Not Modified\r\ncontent-length: 1234\r\n\r\n",
    "an empty 200": b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "an empty chunked 200": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "205": b"HTTP/1.1 205 Reset\r\ncontent-length: 0\r\n\r\n",
}
BARE_HEAD = {
    "a length": b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    "neither": b"HTTP/1.1 200 OK\r\n\r\n",
    "a 404 with a length": b"HTTP/1.1 404 No\r\ncontent-length: 9\r\n\r\n",
}


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (method, kind)
        for method in ("GET", "POST", "DELETE", "HEAD")
        for kind in BARE
        if method != "HEAD" or not BARE[kind].endswith(b"\r\n0\r\n\r\n")  # that is a body
    ],
)
def test_after_an_answer_without_a_body_both_connections_go_on(
    own: Room, kind: str, method: str
) -> None:
    outside, _ = own.place(script(BARE[kind]))
    own.warm()
    with own.client(5) as client:
        for number in range(3):
            got = client.ask(method, outside)
            assert got.status == int(BARE[kind].split(b" ")[1])
            assert got.body == b""
            if got.status == 204:  # RFC 9110, section 8.6
                assert got.all("content-length") == []
            body = b"%d" % number
            after = client.ask("POST", own.place()[0], body=body)
            assert after.body == hashlib.sha256(body).hexdigest().encode()
    assert own.up.connections == 1


@pytest.mark.parametrize("kind", BARE_HEAD)
def test_head_is_answered_by_headers_alone_and_both_connections_go_on(own: Room, kind: str) -> None:
    outside, _ = own.place(script(BARE_HEAD[kind]))
    own.warm()
    with own.client(5) as client:
        for _ in range(3):
            got = client.ask("HEAD", outside)
            if b"content-length" in BARE_HEAD[kind]:
                assert got.all("content-length") == [BARE_HEAD[kind].split()[-1].decode()]
            assert len(client.ask("GET", own.place()[0]).body) == 64
    if kind != "neither":  # whether that one has ended, the parser cannot tell
        assert own.up.connections == 1


@pytest.mark.parametrize("parts", ["one piece", "pieces"])
@pytest.mark.parametrize("method", [*LANES, "HEAD"])
def test_interim_answers_are_passed_over(room: Room, method: str, parts: str) -> None:
    final = OK if method != "HEAD" else OK.removesuffix(b"ok")
    interim = [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 103 Early\r\nlink: </a>\r\nset-cookie: early=1\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n",
    ]
    apart = [step for one in interim for step in (one, 0.02)]
    steps = [b"".join(interim) + final] if parts == "one piece" else [*apart, final]
    outside, _ = room.place(script(*steps))
    for _ in range(2):
        got = room.ask(method, outside)
        assert (got.status, got.body) == (200, b"" if method == "HEAD" else b"ok")
        assert got.all("link") + got.all("set-cookie") == []


def test_a_caller_that_expects_100_is_told_to_go_on_once(room: Room) -> None:
    outside, seen = room.place()
    with room.client() as client:
        head = f"POST {outside} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        client.send(f"{head}Content-Length: 5\r\n\r\n".encode())
        assert client.head().status == 100
        client.send(b"12345")
        got = client.answer()
    assert (got.status, got.interim) == (200, [])
    assert room.up.to(seen)[0].all("expect") == []


# -- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize(
    "rest",
    [
        "/",
        "/a/",
        "/a//",
        "//a",
        "/a%2Fb",
        "/a%2fb/",
        "/%41",
        "/a%20b+c",
        "/%E2%82%AC%F0%9F%98%80",
        "/%ff%fe",
        "/a;b=c,d/e:f@g!$&'()*+",
        "/...",
        "/.well-known/x",
        "/a..b/..c/d..",
        "/%25%32%65",
        "?",
        "/x?",
        "??",
        "?a",
        "?a=1&a=2&b=&=c&&",
        "?q=%00%0d%0a%zz%",
        "?q=a+b%20c/d?e:f@g",
        '?q=[1]{2}|3|^`"<>\\',
        "?../../x",
        "/x?" + "q" * 4000,
    ],
)
def test_paths_and_queries_pass_byte_for_byte(room: Room, rest: str, method: str) -> None:
    outside, seen = room.place()
    before = len(room.up.asked) + 1  # the one that warms
    assert room.ask(method, outside + rest).status == 200
    assert room.up.asked[before].target == seen + rest


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize(
    "rest",
    [
        "/..",
        "/../x",
        "/.",
        "/./x",
        "/a/../b",
        "/%2e%2e/x",
        "/%2E%2e",
        "/.%2e/x",
        "/%2e/x",
        "/..%2fx",
        "/x%2f..%2fy",
        "/..%5cx",
        "/..\\x",
        "/a/..;/b",
        "/a/..;x=y/b",
        "/%2e%2e%3b/b",
        "/%00",
        "/a%0d%0aX:y",
        "/a%7f",
    ],
)
def test_steps_upwards_are_not_found(room: Room, rest: str, method: str) -> None:
    outside, _ = room.place()
    before = len(room.up.asked) + 1
    got = room.ask(method, outside + rest)
    assert got.status == 404
    assert len(room.up.asked) == before


@pytest.mark.parametrize("start", ["/%77rap/", "//wrap/", "/wrap//", "/x/../wrap/", "/Wrap/"])
def test_other_spellings_of_the_door_are_not_it(room: Room, start: str) -> None:
    outside, _ = room.place()
    before = len(room.up.asked) + 1
    assert room.ask("GET", start + outside.removeprefix("/wrap/")).status == 404
    assert len(room.up.asked) == before


def test_a_target_in_absolute_form_does_not_choose_the_upstream(room: Room) -> None:
    outside, seen = room.place()
    got = room.ask("GET", "http://127.0.0.1:9" + outside)
    assert got.status == 200
    assert room.up.to(seen)[0].all("host") == [room.up.url.removeprefix("http://")]


# -- upstreams that fail --------------------------------------------------------------------------


def refused(got: Got) -> bool:
    """The one answer there is for an upstream that failed."""
    return got.status == 502 and b'"wrapper_request_failed"' in got.body


HEAD = b"HTTP/1.1 200 OK\r\n"
EMPTY = b"content-length: 0\r\n\r\n"
FAULTS = {
    "nothing": b"",
    "garbage": b"\x00\x01\x02\xff" * 50,
    "words": b"hello there\r\n\r\n",
    "html only": b"<html>HTTP/0.9</html>",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "tls": b"\x15\x03\x03\x00\x02\x02\x28",
    "version 1.9": b"HTTP/1.9 200 OK\r\n" + EMPTY,
    "no version": b"HTTP/ 200 OK\r\n" + EMPTY,
    "status 0": b"HTTP/1.1 000 X\r\n" + EMPTY,
    "status 99": b"HTTP/1.1 99 X\r\n" + EMPTY,
    "status 600": b"HTTP/1.1 600 X\r\n" + EMPTY,
    "status 999": b"HTTP/1.1 999 X\r\n" + EMPTY,
    "status 1000": b"HTTP/1.1 1000 X\r\n" + EMPTY,
    "status in words": b"HTTP/1.1 OK\r\n" + EMPTY,
    "a request": b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "cut in the status line": b"HTTP/1.1 20",
    "cut in a header": HEAD + b"content-le",
    "cut before the empty line": HEAD + b"content-length: 0\r\n",
    "two codings": HEAD
    + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "two lengths": HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "the same length twice": HEAD + b"content-length: 2\r\ncontent-length: 2\r\n\r\nab",
    "lengths in one line": HEAD + b"content-length: 2, 2\r\n\r\nab",
    "a negative length": HEAD + b"content-length: -1\r\n\r\n",
    "a signed length": HEAD + b"content-length: +2\r\n\r\nab",
    "a hex length": HEAD + b"content-length: 0x2\r\n\r\nab",
    "a length too large": HEAD + b"content-length: 18446744073709551618\r\n\r\nab",
    "an empty length": HEAD + b"content-length:\r\n\r\nab",
    "length, then chunked": HEAD
    + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked, then length": HEAD
    + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
    "bare LF everywhere": b"HTTP/1.1 200 OK\ncontent-length: 2\n\nab",
    "bare LF in the head": HEAD + b"x: a\ncontent-length: 2\r\n\r\nab",
    "bare CR in a value": HEAD + b"x: a\rb\r\n" + EMPTY,
    "NUL in a value": HEAD + b"x: a\0b\r\n" + EMPTY,
    "a folded header": HEAD + b"x: a\r\n b\r\n" + EMPTY,
    "a fold at once": HEAD + b" x: a\r\n" + EMPTY,
    "a space in a name": HEAD + b"bad name: x\r\n" + EMPTY,
    "a space before the colon": HEAD + b"content-length : 2\r\n\r\nab",
    "an empty name": HEAD + b": x\r\n" + EMPTY,
    "a line without a colon": HEAD + b"nonsense\r\n" + EMPTY,
    "a name of high bytes": HEAD + b"x\xe9: x\r\n" + EMPTY,
    "a switch": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nraw bytes",
    "a bare switch": b"HTTP/1.1 101 Switching\r\n\r\n",
    "250 headers": HEAD + b"".join(b"x-%d: y\r\n" % n for n in range(250)) + EMPTY,
    "a header of 100 KiB": HEAD + b"x: " + b"y" * 100 * KIB + b"\r\n" + EMPTY,
    "a name of 100 KiB": HEAD + b"x" * 100 * KIB + b": y\r\n" + EMPTY,
    "a reason of 100 KiB": b"HTTP/1.1 200 " + b"y" * 100 * KIB + b"\r\n" + EMPTY,
    "a bad first chunk": HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    "a negative chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\n",
    "a huge chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\nab",
    "a 402": b"HTTP/1.1 402 Pay\r\ncontent-length: 2\r\n\r\nab",
}


ENDED = ("nothing", "html only", "tls", "cut")
"""What only its end makes a fault: for them the upstream always closes."""


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize(
    ("fault", "lasting"),
    [
        (fault, lasting)
        for fault in FAULTS
        for lasting in (True, False)
        if not (lasting and fault.startswith(ENDED))
    ],
)
def test_what_is_no_answer_is_a_502(room: Room, fault: str, method: str, *, lasting: bool) -> None:
    """Whether the upstream then closes or waits; and our caller's connection goes on."""
    steps = (FAULTS[fault],) if lasting else (FAULTS[fault], None)
    outside, seen = room.place(script(*steps))
    room.warm()
    with room.client(4) as client:
        assert refused(client.ask(method, outside))
        assert client.ask("GET", room.place()[0]).status == 200
    sent = len(room.up.to(seen))
    assert sent == 1 or (method == "GET" and fault == "nothing")


ENDLESS = {
    "a header": (HEAD + b"x: ", b"y" * 65_536),
    "a name": (HEAD + b"x", b"y" * 65_536),
    "headers": (HEAD, b"x: y\r\n" * 10_000),
    "a reason": (b"HTTP/1.1 200 ", b"y" * 65_536),
    "interim answers": (b"", b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * 100),
    "dripping interim answers": (b"", b"HTTP/1.1 103 Early\r\n\r\n"),
    "a dripping header": (HEAD + b"x: ", b"y"),
    "silence": (b"", b""),
    "silence in the head": (HEAD, b""),
}


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_head_that_never_ends_is_a_502_in_its_time(
    door: Door, room: Room, kind: str, method: str
) -> None:
    first, again = ENDLESS[kind]

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(first)
        for _ in range(100_000):
            await wire.send(again)
            await asyncio.sleep(0.05 if len(again) < 30 else 0.001)

    quick = door.wrap(room.up, timeoutMs=500)
    outside, seen = quick.place(play)
    quick.warm()
    before = resident_mib(door.pid)
    begun = time.monotonic()
    with quick.client(2) as client:
        assert refused(client.ask(method, outside))
    assert time.monotonic() - begun < 2
    assert resident_mib(door.pid) - before < 24
    assert len(room.up.to(seen)) == 1


@pytest.mark.parametrize("method", LANES)
@pytest.mark.parametrize("how", ["cut", "hang", "garbage"])
@pytest.mark.parametrize("frame", ["length", "chunked"])
def test_an_answer_that_breaks_off_ends_and_never_looks_whole(
    door: Door, room: Room, frame: str, how: str, method: str
) -> None:
    kind, end = (
        (b"content-length: 100\r\n\r\nhalf", b"")
        if frame == "length"
        else (b"transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", b"zz\r\n")
    )
    steps: dict[str, tuple[bytes | float | None, ...]] = {
        "cut": (0.05, None),
        "hang": (5.0,),
        "garbage": (0.05, end, None),
    }
    outside, _ = room.place(script(HEAD + kind, *steps[how]))
    quick = door.wrap(room.up, timeoutMs=500)
    below = outside.removeprefix(room.outside(room.path))
    room.up.plays["/base" + quick.path + below] = room.up.plays["/base" + room.path + below]
    quick.warm()
    begun = time.monotonic()
    with quick.client(4) as client:
        client.send(request(method, quick.outside(quick.path + below)))
        assert client.head().status == 200
        with pytest.raises(CutOff):
            client.chunks() if frame == "chunked" else client.exactly(100)
    assert time.monotonic() - begun < 2


@pytest.mark.slow
@pytest.mark.parametrize("method", [*LANES, "HEAD"])
@pytest.mark.parametrize("when", ["at once", "later"])
@pytest.mark.parametrize(
    "extra",
    [
        b"x",
        b"x" * 5000,
        b"\r\n\r\nfoo",
        b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nEVIL",
        b"HTTP/1.1 500 Bad\r\nx-evil: EVIL\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
    ids=["byte", "bytes", "lines", "answer", "failure", "interim"],
)
def test_bytes_after_the_end_are_nobodys_answer(
    own: Room, method: str, when: str, extra: bytes
) -> None:
    whole = OK.removesuffix(b"ok") if method == "HEAD" else OK
    steps = (whole + extra,) if when == "at once" else (whole, 0.1, extra)
    outside, _ = own.place(script(*steps))
    own.warm()
    with own.client(4) as client:
        for number in range(3):
            got = client.ask(method, outside)
            assert (got.status, got.body) == (200, whole.partition(b"\r\n\r\n")[2])
            assert "EVIL" not in str(got)
            time.sleep(0.2 if when == "later" else 0)
            body = b"%d" % number
            after = client.ask("POST", own.place()[0], body=body)
            assert after.body == hashlib.sha256(body).hexdigest().encode()
            assert client.ask("GET", own.place()[0]).status == 200
        assert client.rest(0.2) == b""


def test_a_body_in_answer_to_head_is_nobodys_answer(own: Room) -> None:
    fake = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nEVIL"
    lines = HEAD + b"content-length: %d\r\n\r\n" % len(fake)
    for steps in ((lines + fake,), (lines, 0.02, fake), (lines + fake[:5], 0.02, fake[5:])):
        outside, _ = own.place(script(*steps))
        own.warm()
        with own.client(4) as client:
            assert client.ask("HEAD", outside).status == 200
            time.sleep(0.1)  # an answer begun before them could be any upstream's real one
            for _ in range(3):
                got = client.ask("GET", own.place()[0])
                assert (got.status, len(got.body)) == (200, 64)


# -- kept connections -----------------------------------------------------------------------------

STALE = [
    ("GET", b"", True),
    ("HEAD", b"", True),
    ("POST", b"", False),
    ("POST", b"x", False),
    ("POST", b"x" * 70_000, False),
    ("PATCH", b"", False),
    ("PATCH", b"x", False),
    ("REPORT", b"", False),
]


@pytest.mark.parametrize(("method", "body", "again"), STALE)
def test_a_request_is_repeated_only_where_that_cannot_do_anything_twice(
    own: Room, method: str, body: bytes, *, again: bool
) -> None:
    """The upstream closes each kept connection when it sees a request on it, as restarts do."""
    old: set[int] = set()

    async def born(wire: Wire, _asked: Asked) -> None:
        old.add(wire.number)
        await eventually_here(lambda: len(old) >= 5)
        await wire.send(OK)

    async def play(wire: Wire, _asked: Asked) -> None:
        if wire.number in old:
            wire.writer.close()
        else:
            await wire.send(OK.removesuffix(b"ok") if method == "HEAD" else OK)

    first, _ = own.place(born)
    outside, seen = own.place(play)
    with ThreadPoolExecutor(5) as pool:
        assert all(r.status_code == 200 for r in pool.map(own.door.http.get, [first] * 5))
    with own.client(5) as client:
        got = client.ask(method, outside, body=body)
    if again:
        assert got.status == 200
        assert len(own.up.to(seen)) <= 6
    else:
        assert refused(got)
        assert len(own.up.to(seen)) == 1


@pytest.mark.parametrize("method", LANES)
def test_connections_closed_while_idle_are_not_noticed_by_anybody(own: Room, method: str) -> None:
    outside, seen = own.place(script(OK, None))
    with own.client() as client:
        for _ in range(5):
            got = client.ask(method, outside)
            assert (got.status, got.body) == (200, b"ok")
            time.sleep(0.05)
    assert len(own.up.to(seen)) == 5


@pytest.mark.parametrize("method", LANES)
def test_an_upstream_of_version_1_0_is_understood(own: Room, method: str) -> None:
    outside, _ = own.place(script(b"HTTP/1.0 200 OK\r\n\r\nall of it", None))
    for _ in range(3):
        assert own.ask(method, outside).body == b"all of it"


@pytest.mark.parametrize("method", LANES)
async def test_an_upstream_that_is_not_there_is_a_502_and_found_when_it_is(
    door: Door, method: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    up = WireUpstream(url=f"http://127.0.0.1:{port}")
    gone = door.wrap(up)
    for _ in range(5):
        with gone.client(4) as client:
            assert refused(client.ask(method, gone.place()[0]))

    def answers() -> bool:
        with gone.client(4) as client:
            return client.ask(method, gone.place()[0]).status == 200

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port):
        await asyncio.to_thread(eventually, answers)


# -- time, size, and callers that leave -----------------------------------------------------------


def test_an_upstream_that_does_not_read_is_a_502(door: Door, room: Room) -> None:
    quick = door.wrap(room.up, timeoutMs=500)
    outside, _ = quick.place(unread(script(6.0)))
    before = resident_mib(door.pid)
    with quick.client(8) as client:
        client.send(f"POST {outside} HTTP/1.1\r\nHost: x\r\n".encode())
        client.send(b"Content-Length: 10000000\r\n\r\n")
        done = threading.Event()

        def feed() -> None:
            try:
                client.send(b"x" * 10_000_000)
            except OSError:
                pass  # whoever has refused need not read on
            finally:
                done.set()

        threading.Thread(target=feed, daemon=True).start()
        begun = time.monotonic()
        assert refused(client.answer())
        assert time.monotonic() - begun < 3
    assert done.wait(5)
    assert resident_mib(door.pid) - before < 24


def test_a_slow_caller_is_not_held_against_the_upstream(door: Door, room: Room) -> None:
    """`timeoutMs` is the upstream's time; our caller's has a bound of its own."""
    quick = door.wrap(room.up, timeoutMs=500)
    outside, seen = quick.place()
    with quick.client(5) as client:
        client.send(f"POST {outside} HTTP/1.1\r\nHost: x\r\n".encode())
        client.send(b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        time.sleep(1.2)
        client.send(b"3\r\ndef\r\n0\r\n\r\n")
        assert client.answer().status == 200
    assert room.up.to(seen)[0].body == b"abcdef"


@pytest.mark.parametrize("method", LANES)
def test_an_answer_may_take_longer_than_the_timeout_while_it_moves(
    door: Door, room: Room, method: str
) -> None:
    pieces = [step for _ in range(8) for step in (b"1\r\nx\r\n", 0.15)]
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n"
    quick = door.wrap(room.up, timeoutMs=500)
    outside, _ = quick.place(script(chunked, *pieces, b"0\r\n\r\n"))
    assert quick.ask(method, outside).body == b"x" * 8


@pytest.mark.parametrize("framing", ["length", "chunked", "chunked at once", "huge length"])
@pytest.mark.parametrize("cap", [1000, 100_000])
def test_a_body_over_the_cap_is_a_413_and_no_whole_request(
    door: Door, room: Room, framing: str, cap: int
) -> None:
    small = door.wrap(room.up, maxBodyBytes=cap)
    outside, seen = small.place()
    fits = small.ask("POST", outside, body=b"x" * cap)
    assert fits.status == 200
    body = b"x" * (cap + 1)
    with small.client(5) as client:
        head = f"POST {outside} HTTP/1.1\r\nHost: x\r\n"
        if framing == "length":
            client.send(f"{head}Content-Length: {cap + 1}\r\n\r\n".encode() + body)
        elif framing == "huge length":
            client.send(f"{head}Content-Length: 9223372036854775807\r\n\r\n".encode() + body)
        elif framing == "chunked at once":
            chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            client.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk)
        else:
            client.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            for start in range(0, len(body), 501):
                piece = body[start : start + 501]
                client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        got = client.answer()
    assert (got.status, b'"payload_too_large"' in got.body) == (413, True)
    time.sleep(0.1)
    whole = [one for one in room.up.to(seen) if one.last_piece_at]
    assert len(whole) == 1


def test_a_caller_that_asks_before_sending_too_much_is_not_told_to_go_on(
    door: Door, room: Room
) -> None:
    small = door.wrap(room.up, maxBodyBytes=1000)
    outside, _ = small.place()
    with small.client(5) as client:
        head = f"POST {outside} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        client.send(f"{head}Content-Length: 5000\r\n\r\n".encode())
        got = client.answer()
    assert (got.status, got.interim) == (413, [])


LEAVING = {
    "before the head": 0,
    "in the head": 0,
    "in the body": 0,
    "in an endless stream": 0,
    "in the upload": 200_000,
    "after the upload": 100_000,
    "after a small upload": 1000,
    "while an early answer streams": 200_000,
}


class Left:
    """An upstream's side of a caller that leaves."""

    def __init__(self, when: str) -> None:
        self.when, self.size = when, LEAVING[when]
        self.begun, self.ended = threading.Event(), threading.Event()

    async def play(self, wire: Wire, _asked: Asked) -> None:
        if self.when.startswith("after"):
            await wire.reader.readexactly(self.size)
        if self.when == "in the head":
            await wire.send(b"HTTP/1.1 200 O")
        if "body" in self.when:
            await wire.send(HEAD + b"content-length: 1000000\r\n\r\nbegun")
        self.begun.set()
        if "stream" not in self.when:
            await self._drain(wire)
            return
        await wire.send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        async with asyncio.TaskGroup() as group:
            group.create_task(self._drain(wire))
            group.create_task(self._stream(wire))

    async def _drain(self, wire: Wire) -> None:
        with suppress(ConnectionError):
            while await wire.reader.read(65_536):
                continue
        self.ended.set()

    async def _stream(self, wire: Wire) -> None:
        with suppress(ConnectionError):
            while not self.ended.is_set():
                await wire.send(b"4\r\nmore\r\n")
                await asyncio.sleep(0.02)

    def request(self, method: str, outside: str) -> bytes:
        half = self.when in {"in the upload", "while an early answer streams"}
        body = b"x" * (self.size // 2 if half else self.size)
        length = f"Content-Length: {self.size}\r\n" if method == "POST" else ""
        return f"{method} {outside} HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode() + body

    @property
    def sees_a_head(self) -> bool:
        return self.when.startswith(("in the body", "in an endless", "while"))


@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize(
    ("method", "when"),
    [(method, when) for when, size in LEAVING.items() for method in LANES[bool(size) :]],
)
def test_a_caller_that_leaves_frees_the_upstream_within_a_second(
    own: Room, when: str, method: str, *, reset: bool
) -> None:
    left = Left(when)
    outside, _ = own.place(unread(left.play))
    own.warm()
    client = own.client()
    client.send(left.request(method, outside))
    assert left.begun.wait(5)
    if left.sees_a_head:
        assert client.head().status == 200
    time.sleep(0.2)
    assert not left.ended.is_set()
    if reset:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sock.close()
    assert left.ended.wait(1.0), "the upstream's connection was left open"


@pytest.mark.parametrize("second", LANES)
@pytest.mark.parametrize("first", LANES)
def test_a_caller_that_leaves_with_requests_sent_ahead_frees_the_upstream_too(
    own: Room, first: str, second: str
) -> None:
    left = Left("before the head")
    outside, _ = own.place(unread(left.play))
    ahead, seen = own.place()
    own.warm()
    with own.client() as client:
        client.send(request(first, outside) + request(second, ahead))
        assert left.begun.wait(5)
        time.sleep(0.2)
    assert left.ended.wait(1.0), "the upstream's connection was left open"
    time.sleep(0.1)
    assert own.up.to(seen) == []


@pytest.mark.parametrize("method", LANES)
def test_a_reader_that_leaves_in_the_middle_frees_the_upstream(own: Room, method: str) -> None:
    """It has not read what is there already, so nothing more is being sent to it."""
    ended = threading.Event()

    async def play(wire: Wire, _asked: Asked) -> None:
        with suppress(ConnectionError):
            await wire.send(HEAD + b"content-length: 50000000\r\n\r\n")
            for _ in range(50):
                await wire.send(b"x" * 1_000_000)
        ended.set()

    outside, _ = own.place(unread(play))
    own.warm()
    with own.client() as client:
        client.send(request(method, outside))
        assert client.head().status == 200
        time.sleep(0.5)
        assert not ended.is_set()
    assert ended.wait(1.0), "the upstream's connection was left open"


# -- our own door ---------------------------------------------------------------------------------

HIDDEN = "GET {inside} HTTP/1.1\r\nHost: x\r\n\r\n"
AMBIGUOUS = {
    "cl.te": "Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
    "te.cl": "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n{x}\r\n{hidden}\r\n0\r\n\r\n",
    "cl.te in a list": "Content-Length: {n}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    "0\r\n\r\n{hidden}",
    "lengths 0 and n": "Content-Length: 0\r\nContent-Length: {n}\r\n\r\n{hidden}",
    "lengths n and 0": "Content-Length: {n}\r\nContent-Length: 0\r\n\r\n{hidden}",
    "the same length twice": "Content-Length: {n}\r\nContent-Length: {n}\r\n\r\n{hidden}",
    "lengths in one line": "Content-Length: 0, {n}\r\n\r\n{hidden}",
    "a negative length": "Content-Length: -1\r\n\r\n{hidden}",
    "a signed length": "Content-Length: +{n}\r\n\r\n{hidden}",
    "a hex length": "Content-Length: 0x0\r\n\r\n{hidden}",
    "a length with a space in it": "Content-Length: 0 {n}\r\n\r\n{hidden}",
    "an empty length": "Content-Length: \r\n\r\n{hidden}",
    "a length of 2^64": "Content-Length: 18446744073709551616\r\n\r\n{hidden}",
    "a length in other digits": "Content-Length: \xb2\r\n\r\n{hidden}",
    "a space before the colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}",
    "a tab before the colon": "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n{hidden}",
    "a length, space before the colon": "Content-Length : {n}\r\n\r\n{hidden}",
    "a vertical tab in the coding": "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n{hidden}",
    "an unknown coding": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}",
    "chunked not last": "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}",
    "chunked and identity": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
    "0\r\n\r\n{hidden}",
    "chunked hidden in a name": "X: y\r\nTransfer-Encoding\x00: chunked\r\n\r\n{hidden}",
    "a folded coding": "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{hidden}",
    "a fold": "X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
    "a fold in the first line": " X: a\r\nContent-Length: {n}\r\n\r\n{hidden}",
    "a bare LF after a header": "X: a\nContent-Length: {n}\r\n\r\n{hidden}",
    "a bare LF at the end": "Content-Length: 0\r\n\n{hidden}",
    "a coding beneath the chunks": "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{hidden}",
    "a coding beneath, in two lines": "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
    "\r\n0\r\n\r\n{hidden}",
    "two hosts": "Host: y\r\nContent-Length: 0\r\n\r\n{hidden}",
    "the same host twice": "Host: x\r\nContent-Length: 0\r\n\r\n{hidden}",
    "a bare CR": "X: a\rContent-Length: {n}\r\n\r\n{hidden}",
    "NUL in a value": "X: a\x00b\r\nContent-Length: {n}\r\n\r\n{hidden}",
    "a huge chunk": "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\n{hidden}",
    "a negative chunk": "Transfer-Encoding: chunked\r\n\r\n-1\r\n{hidden}",
    "a signed chunk": "Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n{hidden}",
    "a 0x chunk": "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{hidden}",
    "a chunk of spaces": "Transfer-Encoding: chunked\r\n\r\n 0\r\n\r\n{hidden}",
    "a chunk ended by LF": "Transfer-Encoding: chunked\r\n\r\n0\n\n{hidden}",
    "LF in an extension": "Transfer-Encoding: chunked\r\n\r\n0;a\nb\r\n\r\n{hidden}",
    "CR in an extension": "Transfer-Encoding: chunked\r\n\r\n0;a\rb\r\n\r\n{hidden}",
    "data longer than its chunk": "Transfer-Encoding: chunked\r\n\r\n1\r\nab0\r\n\r\n{hidden}",
}


@pytest.mark.parametrize("attempt", AMBIGUOUS)
def test_a_request_two_readers_could_read_two_ways_is_refused(own: Room, attempt: str) -> None:
    """RFC 9112, section 11.2: nothing is answered on such a connection but the refusal."""
    outside, _ = own.place()
    inside, hidden_seen = own.place()
    own.warm()
    before = len(own.up.asked)
    hidden = HIDDEN.format(inside=inside)
    rest = AMBIGUOUS[attempt].format(n=len(hidden), x=f"{len(hidden):x}", hidden=hidden)
    with own.client(5) as client:
        client.send(f"POST {outside} HTTP/1.1\r\nHost: x\r\n{rest}".encode("latin-1"))
        said = client.rest(0.5)
    assert own.up.to(hidden_seen) == []
    assert said.count(b"HTTP/1.1 ") <= 1
    assert said.startswith(b"HTTP/1.1 400 ")
    assert json.loads(said.partition(b"\r\n\r\n")[2])["code"] == "invalid_request"
    whole = [one for one in own.up.asked[before:] if one.last_piece_at]
    assert whole == []


FIRST_LINES = {
    "spaces in the target": "GET {path} {hidden_path} HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tab in the target": "GET {path}\tHTTP/1.1\r\nHost: x\r\n\r\n",
    "bare LF everywhere": "GET {path} HTTP/1.1\nHost: x\n\nGET {hidden_path} HTTP/1.1\n\n",
    "no host": "GET {path} HTTP/1.1\r\nX: y\r\n\r\nGET {hidden_path} HTTP/1.1\r\nHost: x\r\n\r\n",
    "two hosts": "GET {path} HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n",
    "no host of version 2": "GET {path} HTTP/2.0\r\n\r\n",
    "version 1.10": "GET {path} HTTP/1.10\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("attempt", FIRST_LINES)
def test_a_first_line_that_is_none_reaches_nobody(own: Room, attempt: str) -> None:
    outside, _ = own.place()
    inside, _ = own.place()
    own.warm()
    before = len(own.up.asked)
    with own.client(5) as client:
        text = FIRST_LINES[attempt].format(path=outside, hidden_path=inside)
        client.send(text.encode("latin-1"))
        said = client.rest(0.5)
    assert own.up.asked[before:] == []
    assert said.split(b" ")[1][:1] in {b"4", b"5"}
    assert b" 500 " not in said.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        "GET {path}\r\nX: HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET {path}\r\nGET {hidden_path}\r\n\r\n",
        "GET {path}\r\n\r\nGET {hidden_path}\r\n\r\n",
        "GET {path} HTTP/2.0\r\nHost: x\r\n\r\nGET {hidden_path} HTTP/2.0\r\nHost: x\r\n\r\n",
        "GET {path} HTTP/1.0\r\nHost: x\r\n\r\nGET {hidden_path} HTTP/1.0\r\nHost: x\r\n\r\n",
    ],
)
def test_a_request_of_another_version_is_one_request_at_most(own: Room, text: str) -> None:
    outside, seen = own.place()
    inside, hidden_seen = own.place()
    own.warm()
    with own.client(5) as client:
        client.send(text.format(path=outside, hidden_path=inside).encode())
        said = client.rest(0.5)
    assert own.up.to(hidden_seen) == []
    assert len(own.up.to(seen)) <= 1
    assert said.count(b"HTTP/1.1 ") <= 1


def test_a_body_that_looks_like_a_request_stays_a_body(own: Room) -> None:
    inside, hidden_seen = own.place()
    hidden = HIDDEN.format(inside=inside).encode()
    for method in ("GET", "POST", "DELETE"):
        for chunked in (False, True):
            outside, seen = own.place()
            own.warm()
            with own.client(5) as client:
                head = f"{method} {outside} HTTP/1.1\r\nHost: x\r\n".encode()
                if chunked:
                    coded = b"%x;a=%b\r\n%b\r\n0\r\n\r\n" % (len(hidden), b"e" * 300, hidden)
                    client.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + coded)
                else:
                    client.send(head + b"Content-Length: %d\r\n\r\n" % len(hidden) + hidden)
                digest = hashlib.sha256(hidden).hexdigest().encode()
                assert client.answer().body == digest
                assert client.rest(0.1) == b""
            assert [one.body for one in own.up.to(seen)] == [hidden]
    assert own.up.to(hidden_seen) == []


def test_a_trailer_becomes_no_header_of_this_or_the_next_request(own: Room) -> None:
    outside, seen = own.place()
    with own.client(5) as client:
        head = f"POST {outside} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        trailer = "3\r\nabc\r\n0\r\nX-Trailer: EVIL\r\nX-Assay-Tier: EVIL\r\n\r\n"
        client.send((head + trailer).encode())
        assert client.answer().status == 200
        after, after_seen = own.place()
        assert client.ask("GET", after).status == 200
    assert "EVIL" not in str(own.up.to(seen)) + str(own.up.to(after_seen))


@pytest.mark.parametrize("kind", ["POST", "GET"])
def test_nothing_is_read_after_a_request_that_ends_its_connection(own: Room, kind: str) -> None:
    outside, _ = own.place()
    inside, hidden_seen = own.place()
    own.warm()
    with own.client(5) as client:
        hidden = HIDDEN.format(inside=inside).encode()
        client.send(request(kind, outside, "Connection: close") + hidden)
        said = client.rest(1.0)
    assert said.count(b"HTTP/1.1 ") == 1
    assert own.up.to(hidden_seen) == []


def test_an_upgrade_is_answered_as_an_ordinary_request(own: Room) -> None:
    outside, seen = own.place()
    with own.client(5) as client:
        lines = ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: x"]
        got = client.ask("GET", outside, *lines)
        assert (got.status, got.all("connection")) == (200, ["close"])
        assert client.rest(5) == b""
    asked = own.up.to(seen)[0]
    assert asked.all("upgrade") + asked.all("http2-settings") + asked.all("connection") == []


def test_requests_sent_ahead_are_answered_in_order(own: Room) -> None:
    places: list[str] = []
    for number in range(12):
        pause = 0.1 if number % 3 == 0 else 0.0
        body = b"%d" % number
        reply = HEAD + b"content-length: %d\r\n\r\n%b" % (len(body), body)
        places.append(own.place(script(pause, reply))[0])
    own.warm()
    with own.client(5) as client:
        kinds = ["GET", "GET", "POST", "HEAD"]
        sent = [(kinds[at % 4], place) for at, place in enumerate(places)]
        client.send(b"".join(request(kind, place) for kind, place in sent))
        for number, (kind, _) in enumerate(sent):
            got = client.answer(bare=kind == "HEAD")
            assert got.body == (b"" if kind == "HEAD" else b"%d" % number)
        assert client.rest(0.2) == b""


def test_a_caller_of_version_1_0_gets_no_chunks(own: Room) -> None:
    chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
    outside, _ = own.place(script(chunked, 0.2, b"3\r\ndef\r\n0\r\n\r\n"))
    with own.client(5) as client:
        client.send(f"GET {outside} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        head, _, body = client.rest(2.0).partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert body == b"abcdef"


def test_a_head_of_ours_has_a_bound(door: Door, own: Room) -> None:
    outside, seen = own.place()
    before = resident_mib(door.pid)
    with own.client(5) as client:
        try:
            client.send(f"GET {outside} HTTP/1.1\r\nHost: x\r\nX: ".encode())
            for _ in range(100):
                client.send(b"y" * 100_000)
            client.send(b"\r\n\r\n")
        except OSError:
            pass  # cut off while sending: as good as a refusal
        said = client.rest(2.0)
    assert said == b"" or said.split(b" ")[1] in {b"400", b"431"}
    assert own.up.to(seen) == []
    assert resident_mib(door.pid) - before < 24


@pytest.mark.slow
def test_a_head_of_ours_has_its_time(own: Room) -> None:
    """Both are waited for at once."""
    starts = {"nothing": b"", "half a head": b"GET /operator/health HTTP/1.1\r\nHost: x\r\nX-"}

    def ended(start: bytes) -> tuple[bytes, float]:
        with own.client(BOUNDS.head_s + 5) as client:
            begun = time.monotonic()
            client.send(start)
            return client.rest(BOUNDS.head_s + 5), time.monotonic() - begun

    with ThreadPoolExecutor(len(starts)) as pool:
        for name, (rest, after_s) in zip(starts, pool.map(ended, starts.values()), strict=True):
            assert rest == b"", name
            assert after_s > BOUNDS.head_s - 1, name


# -- many at once ---------------------------------------------------------------------------------


def test_two_hundred_connections_get_their_own_answers(own: Room) -> None:
    """Five requests each over kept connections, in both lanes, answered out of order."""

    async def play(wire: Wire, asked: Asked) -> None:
        who = asked.target.partition("?")[2].encode()
        await asyncio.sleep(int.from_bytes(hashlib.sha256(who).digest()[:1]) / 5000)
        body = who * 2000 + b"|" + asked.body
        if len(who) % 2:
            await wire.send(HEAD + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        else:
            lines = HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(body)
            await wire.send(lines + body + b"\r\n0\r\n\r\n")

    outside, seen = own.place(play)

    def one(number: int) -> None:
        with own.client(20) as client:
            for turn in range(5):
                who = f"{number}-{turn}"
                kind = "POST" if (number + turn) % 3 == 0 else "GET"
                body = who.encode() * 100 if kind == "POST" else b""
                got = client.ask(kind, f"{outside}?{who}", body=body)
                assert got.status == 200
                assert got.body == who.encode() * 2000 + b"|" + body

    with ThreadPoolExecutor(200) as pool:
        list(pool.map(one, range(200)))
    assert len(own.up.to(seen)) == 1000


@pytest.mark.parametrize("size", [40 * KIB, 5 * MIB])
def test_slow_readers_of_answers_alike_but_for_their_bodies_get_their_own(
    own: Room, size: int
) -> None:
    """Their upstream connections are read into the same memory."""

    async def play(wire: Wire, asked: Asked) -> None:
        body = hashlib.shake_128(asked.target.encode()).digest(size)
        await wire.send(HEAD + b"content-length: %d\r\n\r\n%b" % (size, body))

    outside, seen = own.place(play)

    def one(number: int) -> None:
        for turn in range(3):
            with own.client(20) as client:
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * KIB)
                which = f"{number}-{turn}"
                client.send(request("GET", f"{outside}?{which}"))
                time.sleep(0.05 * (number % 4))
                body = hashlib.shake_128(f"{seen}?{which}".encode()).digest(size)
                assert client.answer().body == body

    own.warm()
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(one, range(32)))


@pytest.mark.parametrize("frame", ["length", "chunked"])
@pytest.mark.parametrize("method", LANES)
def test_slow_readers_keep_memory_bounded_and_miss_nothing(
    door: Door, own: Room, method: str, frame: str
) -> None:
    body = os.urandom(10 * MIB)
    digest = hashlib.sha256(body).digest()
    coded = b"content-length: %d\r\n\r\n%b" % (len(body), body)
    if frame == "chunked":
        coded = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    outside, _ = own.place(script(HEAD + coded))
    own.warm()
    before = resident_mib(door.pid)
    clients = [own.client(20) for _ in range(32)]
    for client in clients:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.send(request(method, outside))
    peak = 0
    for _ in range(10):
        time.sleep(0.1)
        peak = max(peak, resident_mib(door.pid))
    assert peak - before < 64  # 320 MiB are on their way

    def read(client: RawClient) -> bytes:
        return hashlib.sha256(client.answer().body).digest()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, clients[:4])) == {digest}
    for client in clients:
        client.sock.close()
    own.warm()
