"""A wrapper behaves as a good reverse proxy: real sockets on both sides, byte for byte."""

import asyncio
import hashlib
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.assay import Served, resident_mib, served
from tests.support.eventually import never
from tests.support.shop import NO_CHAIN, PASSWORD
from tests.support.wire_upstream import Asked, Wire, WireUpstream, wire_upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
MIB = 1024 * 1024


class Door:
    """A serving Assay with one wrapper for everything, in front of the upstream."""

    def __init__(self, server: Served, upstream: WireUpstream) -> None:
        self.server, self.up = server, upstream
        self.http = httpx2.Client(base_url=server.address, timeout=30, trust_env=False)
        body = {"email": "op@example.com", "password": PASSWORD, "name": "Op"}
        self.http.post("/operator/register", json=body)
        del body["name"]
        login = self.http.post("/operator/login", json=body).json()
        self.operator = login["operator"]["id"]
        self.token = {"authorization": f"Bearer {login['token']}"}
        self.wrap("/*")

    def wrap(self, path: str, **fields: object) -> None:
        made = {"path": path, "method": "*", "pricePerCall": 0, "targetUrl": self.up.url + "/base"}
        answer = self.http.post("/operator/endpoints", json={**made, **fields}, headers=self.token)
        assert answer.status_code == 200, answer.text

    def path(self, path: str) -> str:
        return f"/wrap/{self.operator}{path}"

    def raw(self, request: bytes, wait_s: float = 1.5) -> bytes:
        """What comes back for these very bytes."""
        parts = urlsplit(self.server.address)
        with socket.create_connection((parts.hostname, parts.port), timeout=wait_s) as sock:
            sock.sendall(request)
            got = b""
            try:
                while piece := sock.recv(65536):
                    got += piece
            except TimeoutError:
                pass
            return got


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    settings = {"ASSAY_WRAPPER_PER_MINUTE": "10000000", "ASSAY_WRAPPER_UNREAD_MIB": "1000000"}
    with (
        wire_upstream() as up,
        served(tmp_path_factory.mktemp("proxy"), NO_CHAIN, **settings) as server,
    ):
        made = Door(server, up)
        yield made
        made.http.close()


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "REPORT"]
)
def test_every_method_arrives_as_it_was_sent(door: Door, method: str) -> None:
    answer = door.http.request(method, door.path(f"/m/{method}"))
    assert answer.status_code == 200
    assert [one.method for one in door.up.to(f"/base/m/{method}")] == [method]
    assert answer.headers["content-length"] == "64"
    assert len(answer.content) == (0 if method == "HEAD" else 64)


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, MIB, 10 * MIB])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_request_bodies_arrive_byte_for_byte(door: Door, size: int, framing: str) -> None:
    body = os.urandom(size)

    def pieces() -> Iterator[bytes]:
        for start in range(0, max(size, 1), 100_000):
            yield body[start : start + 100_000]

    content = body if framing == "length" else pieces()
    answer = door.http.post(door.path(f"/up/{framing}/{size}"), content=content)
    assert answer.text == hashlib.sha256(body).hexdigest()
    seen = door.up.to(f"/base/up/{framing}/{size}")
    assert len(seen) == 1
    assert seen[0].body == body


@pytest.mark.parametrize("size", [0, 1, 65_537, MIB, 10 * MIB])
@pytest.mark.parametrize("framing", ["length", "chunked", "until-end"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_answers_arrive_byte_for_byte(door: Door, size: int, framing: str, method: str) -> None:
    body = os.urandom(size)

    async def play(wire: Wire, _asked: Asked) -> None:
        if framing == "length":
            await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + body)
        elif framing == "chunked":
            await wire.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            for start in range(0, size, 99_991):
                piece = body[start : start + 99_991]
                await wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await wire.send(b"0\r\n\r\n")
        else:
            await wire.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + body)
            wire.writer.close()

    door.up.plays[f"/base/down/{framing}/{size}"] = play
    for _ in range(2):  # the second time over a kept connection
        answer = door.http.request(method, door.path(f"/down/{framing}/{size}"))
        assert hashlib.sha256(answer.content).digest() == hashlib.sha256(body).digest()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_events_arrive_as_they_are_sent(door: Door, method: str) -> None:
    async def play(wire: Wire, _asked: Asked) -> None:
        kind = b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        await wire.send(b"HTTP/1.1 200 OK\r\n" + kind)
        for number in range(4):
            event = b"data: %d\n\n" % number
            await wire.send(b"%x\r\n%b\r\n" % (len(event), event))
            await asyncio.sleep(0.3)
        await wire.send(b"0\r\n\r\n")

    door.up.plays["/base/events"] = play
    arrived = []
    with door.http.stream(method, door.path("/events")) as answer:
        for _ in answer.iter_raw():
            arrived.append(time.monotonic())  # noqa: PERF401 - when matters
    assert arrived[-1] - arrived[0] > 0.7


async def test_a_request_body_is_passed_on_before_it_is_whole(door: Door) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b"x" * 100
            await asyncio.sleep(0.25)

    async with httpx2.AsyncClient(base_url=door.server.address) as http:
        answer = await http.post(door.path("/slow-up"), content=slowly())
    assert answer.status_code == 200
    seen = door.up.to("/base/slow-up")[0]
    assert seen.last_piece_at - seen.first_piece_at > 0.5


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_headers_pass_both_ways_less_what_ends_here(door: Door, method: str) -> None:
    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(
            b"HTTP/1.1 200 OK\r\nX-Two: a\r\nx-two: b\r\n"
            b"Set-Cookie: s=1; Path=/x; Domain=up.example\r\n"
            b"set-cookie: t=2; HttpOnly\r\nconnection: x-hop, keep-alive\r\nx-hop: secret\r\n"
            b"keep-alive: timeout=5\r\nupgrade: h2c\r\nstrict-transport-security: max-age=1\r\n"
            b"x-assay-tier: AAA\r\nlocation: "
            + door.up.url.encode()
            + b"/base/else\r\ncontent-length: 2\r\n\r\nok"
        )

    door.up.plays["/base/headers"] = play
    sent = [
        ("x-one", "1"),
        ("x-one", "2"),
        ("connection", "x-drop, keep-alive"),
        ("x-drop", "secret"),
        ("te", "trailers"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-forwarded-host", "evil"),
        ("forwarded", "for=6.6.6.6"),
        ("x-assay-agent", "me"),
        ("x-agent-session", "s"),
        ("x-agent-signature", "s"),
        ("x-payment", "p"),
        ("payment-signature", "p"),
        ("authorization", "Bearer svc_op_secret"),
        ("cookie", "a=b"),
    ]
    answer = door.http.request(method, door.path("/headers"), headers=sent)
    seen = door.up.to("/base/headers")[-1]
    names = {name for name, _ in seen.headers}
    assert seen.all("x-one") == ["1", "2"]
    assert seen.all("cookie") == ["a=b"]
    assert seen.all("host") == [door.up.url.removeprefix("http://")]
    assert seen.all("x-forwarded-for") == ["127.0.0.1"]
    dropped = {"x-drop", "te", "forwarded", "x-assay-agent", "x-payment", "payment-signature"}
    assert not names & (dropped | {"authorization", "x-agent-session", "x-agent-signature"})
    assert answer.headers.get_list("x-two") == ["a", "b"]
    assert answer.headers.get_list("set-cookie") == []  # at the app's origin
    assert answer.headers["location"] == f"{door.server.address}/wrap/{door.operator}/else"
    gone = {"x-hop", "keep-alive", "upgrade", "strict-transport-security", "x-assay-tier"}
    assert not gone & set(answer.headers)
    assert answer.headers["content-security-policy"] == "sandbox allow-scripts allow-forms"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_redirects_are_the_callers_to_follow(door: Door, method: str) -> None:
    """An upstream cannot send the service itself to an address nobody has judged."""

    async def play(wire: Wire, _asked: Asked) -> None:
        place = door.up.url.encode() + b"/inside"
        await wire.send(
            b"HTTP/1.1 302 Found\r\nlocation: " + place + b"\r\ncontent-length: 0\r\n\r\n"
        )

    door.up.plays["/base/redirect"] = play
    answer = door.http.request(method, door.path("/redirect"))
    assert (answer.status_code, answer.headers["location"]) == (302, door.up.url + "/inside")
    assert door.up.to("/inside") == []


@pytest.mark.parametrize("status", [204, 304, 200])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_answers_without_a_body_leave_the_connection_whole(
    door: Door, status: int, method: str
) -> None:
    async def play(wire: Wire, asked: Asked) -> None:
        bare = status != 200 or asked.method == "HEAD"
        length = b"" if status == 204 else b"content-length: 5\r\n"
        await wire.send(b"HTTP/1.1 %d X\r\n%b\r\n" % (status, length) + (b"" if bare else b"12345"))

    path = f"/bare/{status}/{method}"
    door.up.plays["/base" + path] = play
    for _ in range(3):
        answer = door.http.request(method, door.path(path))
        assert answer.status_code == status
        assert answer.content == (b"12345" if status == 200 and method != "HEAD" else b"")
    assert door.http.get(door.path("/after")).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/t", "/t/", "/t//u", "/t/%2F/x", "/t/a%20b", "/t/%E2%82%AC", "/t?a=1&b=%20&a=2", "/t?"],
)
def test_paths_and_queries_arrive_as_they_were_sent(door: Door, path: str) -> None:
    before = len(door.up.asked)
    got = door.raw(
        f"GET {door.path(path)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    )
    assert got.startswith(b"HTTP/1.1 200"), got
    assert door.up.asked[before].target == "/base" + path


@pytest.mark.parametrize(
    "path",
    ["/../x", "/a/../../x", "/%2e%2e/x", "/a/%2E%2e/x", "/a/..%2fx", "/a/..%5cx", "/.;/x", "/a%00"],
)
def test_paths_two_readers_could_read_two_ways_are_not_found(door: Door, path: str) -> None:
    before = len(door.up.asked)
    got = door.raw(
        f"GET {door.path(path)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    )
    assert got.split(b" ")[1] in {b"404", b"400"}, got
    assert len(door.up.asked) == before


FAULTS = {
    "garbage": b"this is not HTTP\r\n\r\n",
    "cut in the head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "nothing": b"",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "a bad length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "length and chunked": b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n"
    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bad name": b"HTTP/1.1 200 OK\r\nbad name: x\r\ncontent-length: 0\r\n\r\n",
    "a folded header": b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n",
    "a switch": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 500 + b"content-length: 0\r\n\r\n",
    "too large headers": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 80_000 + b"\r\n\r\n",
    "asks for payment": b"HTTP/1.1 402 Pay\r\ncontent-length: 0\r\n\r\n",
}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_upstream_that_fails_is_a_502(door: Door, fault: str, method: str) -> None:
    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(FAULTS[fault])
        wire.writer.close()

    path = f"/fault/{fault.replace(' ', '-')}"
    door.up.plays["/base" + path] = play
    for _ in range(2):
        answer = door.http.request(method, door.path(path))
        assert answer.status_code == 502, answer.text
        assert answer.json()["code"] == "wrapper_request_failed"
    assert door.http.get(door.path("/after")).status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_slow_upstream_is_a_502_and_asked_once(door: Door, method: str) -> None:
    async def play(_wire: Wire, _asked: Asked) -> None:
        await never()

    path = f"/hang/{method}"
    door.wrap(path, timeoutMs=400)
    door.up.plays["/base" + path] = play
    door.http.get(door.path("/warm"))
    answer = door.http.request(method, door.path(path))
    assert (answer.status_code, answer.json()["code"]) == (502, "wrapper_request_failed")
    assert len(door.up.to("/base" + path)) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_answer_that_breaks_off_is_cut_off_and_never_filled_up(door: Door, method: str) -> None:
    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        await asyncio.sleep(0.1)
        wire.writer.close()

    door.up.plays["/base/half"] = play
    for _ in range(2):
        with pytest.raises(httpx2.RemoteProtocolError):
            door.http.request(method, door.path("/half"))


@pytest.mark.parametrize(("method", "sent"), [("GET", 2), ("POST", 1)])
def test_a_kept_connection_that_was_closed_is_tried_anew_only_where_that_is_safe(
    door: Door, method: str, sent: int
) -> None:
    async def play(wire: Wire, _asked: Asked) -> None:
        if wire.number == born[0]:
            wire.writer.close()  # the second request on this connection is never answered
            return
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def first(wire: Wire, _asked: Asked) -> None:
        born[0] = wire.number
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    born = [0]
    path = f"/kept/{method}"
    door.up.plays["/base/born"], door.up.plays["/base" + path] = first, play
    time.sleep(5.5)  # older connections have been closed by now
    assert door.http.get(door.path("/born")).status_code == 200
    answer = door.http.request(method, door.path(path), content=b"x" if method == "POST" else None)
    assert answer.status_code == (200 if sent == 2 else 502)
    assert len(door.up.to("/base" + path)) == sent


def test_a_body_above_the_cap_is_refused(door: Door) -> None:
    door.wrap("/small", maxBodyBytes=1000)
    answer = door.http.post(door.path("/small"), content=b"x" * 1001)
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    answer = door.http.post(door.path("/small"), content=pieces())
    assert (answer.status_code, answer.json()["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("when", ["head", "body"])
def test_a_caller_that_goes_away_takes_the_upstream_call_with_it(
    door: Door, method: str, when: str
) -> None:
    ended: list[float] = []

    async def play(wire: Wire, _asked: Asked) -> None:
        if when == "body":
            await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nbegun")
        assert await wire.reader.read(1) == b""
        ended.append(time.monotonic())

    path = f"/gone/{method}/{when}"
    door.up.plays["/base" + path] = play
    door.http.get(door.path("/warm"))
    parts = urlsplit(door.server.address)
    with socket.create_connection((parts.hostname, parts.port)) as sock:
        length = "content-length: 0\r\n" if method == "POST" else ""
        sock.sendall(f"{method} {door.path(path)} HTTP/1.1\r\nHost: x\r\n{length}\r\n".encode())
        time.sleep(0.4)
    left = time.monotonic()
    deadline = left + 3
    while not ended and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ended, "the upstream's connection was left open"
    assert ended[0] - left < 1


SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
ATTEMPTS = {
    "cl.te": "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {n}\r\n"
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}",
    "two lengths": "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
    "Content-Length: {n}\r\n\r\n{smuggled}",
    "bare lf": "POST {path} HTTP/1.1\nHost: x\nContent-Length: 0\n\n{smuggled}",
    "space before colon": "POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n"
    "0\r\n\r\n{smuggled}",
    "te.te": "POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n{smuggled}",
    "folded": "POST {path} HTTP/1.1\r\nHost: x\r\nX: a\r\n"
    " Transfer-Encoding: chunked\r\n\r\n{smuggled}",
    "negative length": "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{smuggled}",
    "plus length": "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n{smuggled}",
    "huge chunk": "POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    "fffffffffffffffff\r\n{smuggled}",
    "xchunked": "POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n{smuggled}",
    "a second line in the target": "GET {path}%0d%0aX:%201 HTTP/1.1\r\nHost: x\r\n\r\n",
    "nul in a header": "GET {path} HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n",
    "cr in a header": "GET {path} HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_one_request_in_is_one_request_out(door: Door, attempt: str) -> None:
    """What hides in a body or a header never becomes a request of its own at the upstream."""
    path = f"/smuggle/{attempt.replace(' ', '-')}"
    text = ATTEMPTS[attempt].format(path=door.path(path), smuggled=SMUGGLED, n=len(SMUGGLED))
    before = len(door.up.asked)
    door.raw(text.encode(), wait_s=0.7)
    came = [one.target for one in door.up.asked[before:]]
    assert not any("smuggled" in target for target in came)
    assert len(came) <= 1
    assert door.http.get(door.path("/after")).status_code == 200


def test_a_trailer_is_no_header(door: Door) -> None:
    head = f"POST {door.path('/trailer')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    body = "Trailer: x-evil\r\n\r\n3\r\nabc\r\n0\r\nx-evil: 1\r\nx-agent-id: 7\r\n\r\n"
    assert b"200 OK" in door.raw((head + body).encode())
    [seen] = door.up.to("/base/trailer")
    assert not {"x-evil", "x-agent-id"} & {name for name, _ in seen.headers}


def test_an_endless_head_is_cut_off(door: Door) -> None:
    endless = f"GET {door.path('/endless')} HTTP/1.1\r\nHost: x\r\nx: ".encode() + b"y" * 3_000_000
    try:
        got = door.raw(endless, wait_s=5)
    except ConnectionError:
        got = b""
    assert got[:12] in {b"", b"HTTP/1.1 431"}
    assert door.up.to("/base/endless") == []
    assert door.http.get(door.path("/after")).status_code == 200


async def test_two_hundred_at_once_get_their_own_answers(door: Door) -> None:
    async with httpx2.AsyncClient(base_url=door.server.address, timeout=30) as http:

        async def one(number: int) -> None:
            body = b"%d" % number * 1000
            for turn in range(3):
                wanted = hashlib.sha256(body if turn else b"").hexdigest()
                kind = "POST" if turn else "GET"
                content = body if turn else None
                answer = await http.request(kind, door.path(f"/own/{number}"), content=content)
                assert answer.text == wanted

        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(one(number))


def test_slow_readers_cost_little_memory(door: Door) -> None:
    body = b"z" * (10 * MIB)

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    door.up.plays["/base/large"] = play
    assert door.server.process is not None
    pid = door.server.process.pid
    parts = urlsplit(door.server.address)
    before = resident_mib(pid)
    socks = [socket.create_connection((parts.hostname, parts.port)) for _ in range(32)]
    for sock in socks:
        sock.sendall(f"GET {door.path('/large')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        sock.recv(1000)
    time.sleep(1.5)
    peak = resident_mib(pid)
    for sock in socks:
        sock.close()
    assert peak - before < 96  # 320 MiB are on their way
