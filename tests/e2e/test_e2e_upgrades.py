"""A request with `Upgrade` or CONNECT is one request: its body never becomes the next one.

RFC 9110, section 7.8, lets a server ignore an upgrade. A parser that pauses for one and is resumed
reads the body as a new request; behind a proxy that request meets another caller's answer.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.e2e.test_e2e_wrapper_proxy import Door, Room
from tests.support.assay import served
from tests.support.raw_client import request
from tests.support.shop import NO_CHAIN
from tests.support.wire_upstream import wire_upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HIDDEN = "GET {inside} HTTP/1.1\r\nHost: x\r\n\r\n"
TOKENS = ["h2c", "websocket", "foo", "TLS/1.0, h2c", ""]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    settings = {"ASSAY_WRAPPER_PER_MINUTE": "10000000", "ASSAY_WRAPPER_UNREAD_MIB": "1000000"}
    with (
        wire_upstream() as up,
        served(tmp_path_factory.mktemp("upgrades"), NO_CHAIN, **settings) as server,
    ):
        door = Door(server)
        yield door.wrap(up)
        door.http.close()


def framed(body: bytes, framing: str) -> tuple[str, bytes]:
    """The header and the bytes of a body."""
    if framing == "length":
        return f"Content-Length: {len(body)}", body
    return "Transfer-Encoding: chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("apart", [True, False], ids=["two packets", "one packet"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PURGE"])
@pytest.mark.parametrize("token", TOKENS)
def test_the_body_of_an_upgrade_request_stays_its_body(
    room: Room, token: str, method: str, framing: str, *, apart: bool
) -> None:
    outside, seen = room.place()
    inside, hidden_seen = room.place()
    hidden = HIDDEN.format(inside=inside).encode()
    line, body = framed(hidden, framing)
    head = f"{method} {outside} HTTP/1.1\r\nHost: x\r\nUpgrade: {token}\r\n"
    head += f"Connection: keep-alive, Upgrade\r\n{line}\r\n\r\n"
    with room.client(5) as client:
        client.send(head.encode() + (b"" if apart else body))
        if apart:
            with room.client(5) as other:  # answered when the head has been read
                assert other.ask("GET", "/operator/health").status == 200
            with suppress(ConnectionError):  # a handshake has been refused by now
                client.send(body)
        got = client.answer()
        assert client.rest(1.0) == b"", "nothing follows the one answer"
    assert room.up.to(hidden_seen) == []
    if token == "websocket" and method == "GET":
        assert (got.status, json.loads(got.body)["code"]) == (400, "upgrade_not_supported")
        assert room.up.to(seen) == []
        return
    assert (got.status, got.body) == (200, hashlib.sha256(hidden).hexdigest().encode())
    [asked] = room.up.to(seen)
    assert asked.body == hidden
    assert asked.all("upgrade") == []


@pytest.mark.parametrize("method", ["CONNECT", "TRACE"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("target", ["{outside}", "x:443", "http://x{outside}"])
def test_connect_and_trace_are_refused_and_end_the_connection(
    room: Room, method: str, framing: str, target: str
) -> None:
    outside, seen = room.place()
    inside, hidden_seen = room.place()
    line, body = framed(HIDDEN.format(inside=inside).encode(), framing)
    where = target.format(outside=outside)
    with room.client(5) as client:
        client.send(f"{method} {where} HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode() + body)
        got = client.answer()
        assert (got.status, json.loads(got.body)["code"]) == (405, "method_not_allowed")
        assert got.all("connection") == ["close"]
        assert got.all("allow") != []
        assert client.rest(1.0) == b""
    assert room.up.to(hidden_seen) + room.up.to(seen) == []


def test_a_request_with_a_space_behind_its_length_keeps_its_body(room: Room) -> None:
    """Optional whitespace around a value is legal (RFC 9110, section 5.5)."""
    outside, seen = room.place()
    with room.client(5) as client:
        head = f"POST {outside} HTTP/1.1\r\nHost: x\r\nContent-Length: \t5 \t\r\n\r\n"
        client.send(head.encode() + b"hello")
        assert client.answer().status == 200
    assert [one.body for one in room.up.to(seen)] == [b"hello"]


def test_a_method_of_more_than_24_bytes_is_refused(room: Room) -> None:
    outside, seen = room.place()
    with room.client(5) as client:
        client.send(request("A" * 25, outside))
        assert client.answer().status == 400
    assert room.up.to(seen) == []


@pytest.mark.parametrize("more", [0, 1])
def test_the_bound_of_a_head_is_exact(room: Room, more: int) -> None:
    outside, _ = room.place()
    bare = f"GET {outside} HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n".encode()
    filler = b"y" * (64 * 1024 - len(bare) + more)
    with room.client(5) as client:
        client.send(bare.replace(b"X: ", b"X: " + filler))
        assert client.answer().status == (431 if more else 200)


@pytest.mark.parametrize("method", ["FOO", "X-PURGE.1", "get", "a" * 24, "!#$%&'*+-.^_`|~"])
def test_any_method_token_is_passed_on(room: Room, method: str) -> None:
    outside, seen = room.place()
    with room.client(5) as client:
        client.send(request(method, outside))
        assert client.answer().status == 200
    assert [one.method for one in room.up.to(seen)] == [method]


def test_an_absolute_target_does_not_excuse_a_host_that_is_none(room: Room) -> None:
    outside, seen = room.place()
    for host in ("a b", "a@b", "", "a..b", "a:99999"):
        with room.client(5) as client:
            client.send(f"GET http://x{outside} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert client.answer().status == 400
    assert room.up.to(seen) == []


@pytest.mark.parametrize("host", ["a..b", ".", "..", ".a", "a.."])
def test_a_host_with_an_empty_label_is_refused(room: Room, host: str) -> None:
    outside, _ = room.place()
    with room.client(5) as client:
        client.send(f"GET {outside} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert client.answer().status == 400


def test_a_caller_of_http_1_0_gets_no_interim_answer(room: Room) -> None:
    outside, seen = room.place()
    with room.client(5) as client:
        head = f"POST {outside} HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        client.send(head.encode() + b"ok")
        got = client.answer()
        assert (got.status, got.interim) == (200, [])
    assert [one.body for one in room.up.to(seen)] == [b"ok"]


@pytest.mark.parametrize(
    "bad", ["Content-Length: x", "X : y", "Connection: Upgrade\r\nTransfer-Encoding: gzip"]
)
def test_a_refused_head_request_gets_no_body(room: Room, bad: str) -> None:
    outside, _ = room.place()
    with room.client(5) as client:
        client.send(f"HEAD {outside} HTTP/1.1\r\nHost: x\r\n{bad}\r\n\r\n".encode())
        assert client.answer(bare=True).status == 400
        assert client.rest() == b""


def test_what_comes_before_a_refused_request_decides_nothing_of_its_answer(room: Room) -> None:
    """A HEAD request, and then one whose method was never read."""
    outside, _ = room.place()
    with room.client(5) as client:
        assert client.ask("HEAD", outside).status == 200
        client.send(b"GET /" + b"a" * 70_000)
        got = client.answer()
        assert (got.status, json.loads(got.body)["code"]) == (431, "request_head_too_large")


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("target", ["/wrap/nobody/x", "/operator/nothing"])
def test_a_caller_that_was_not_told_to_go_on_sends_nothing_more(
    room: Room, target: str, framing: str
) -> None:
    """Whether it sends its body now or its next request, nobody takes one for the other."""
    inside, hidden_seen = room.place()
    hidden = HIDDEN.format(inside=inside).encode()
    line, _ = framed(hidden, framing)
    head = f"POST {target} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{line}\r\n\r\n"
    with room.client(5) as client:
        client.send(head.encode())
        got = client.head()
        if got.status == 100:  # then the body is its body
            return
        assert got.status == 404
        assert got.all("connection") == ["close"]
        with suppress(ConnectionError):
            client.send(hidden + hidden)
        client.rest(1.0)
    assert room.up.to(hidden_seen) == []
