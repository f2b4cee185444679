"""A wrapper as a reverse proxy, by the letter: both lanes, real sockets, every byte ours.

What a friendly peer sees is in `test_e2e_proxy_conformance.py`; here both sides are difficult.
Both lanes are asked: a GET over a kept connection takes the fast one, a POST the ordinary one.
"""

import asyncio
import hashlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.services.assay import Served, served
from tests.services.raw_client import CutOff, Got, RawClient, request
from tests.services.shop import NO_CHAIN, PASSWORD
from tests.services.wire_upstream import Asked, Play, Wire, WireUpstream, wire_upstream

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
    play.reads_nothing = True  # type: ignore[attr-defined] - what the upstream looks for
    return play


async def until(true: Callable[[], object], within_s: float = 5.0) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


def wait_until(true: Callable[[], object], within_s: float = 5.0) -> float:
    """How long it took."""
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < within_s, "it did not happen"
        time.sleep(0.005)
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    settings = {"ASSAY_WRAPPER_PER_MINUTE": "10000000"}
    with served(tmp_path_factory.mktemp("wrapper_proxy"), NO_CHAIN, **settings) as server:
        made = Door(server)
        yield made
        made.http.close()


@pytest.fixture(scope="module")
def room(door: Door) -> Iterator[Room]:
    """For tests that leave their upstream in good order."""
    with wire_upstream() as up:
        yield door.wrap(up)


@pytest.fixture
def own(door: Door) -> Iterator[Room]:
    """An upstream, and connections to it, that no other test has touched."""
    with wire_upstream() as up:
        yield door.wrap(up)


# -- methods and bodies ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"abc"])
@pytest.mark.parametrize(
    "method",
    "GET HEAD POST PUT PATCH DELETE OPTIONS REPORT PURGE M-SEARCH PROPFIND QUERY".split(),
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
    """Spec 4.7: any HTTP method. One the server cannot take must not be sold."""
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
        await until(arrived.is_set)
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
