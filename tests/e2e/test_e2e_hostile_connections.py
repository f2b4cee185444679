"""One hostile connection, or many of one address, do not take the service from the others."""

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.assay import Served, served
from tests.support.raw_client import CutOff, RawClient, request
from tests.support.shop import NO_CHAIN

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CHUNKED = "Transfer-Encoding: chunked"
PER_ADDRESS = 40
SETTINGS = {"ASSAY_CONNECTIONS_PER_ADDRESS": str(PER_ADDRESS), "ASSAY_CONNECTIONS_MAX": "60"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hostile"), NO_CHAIN, **SETTINGS) as made:
        yield made


def opened(server: Served, source: str = "127.0.0.1") -> socket.socket:
    parts = urlsplit(server.address)
    return socket.create_connection((parts.hostname, parts.port), 10, (source, 0))


def taken(sock: socket.socket, piece: bytes, most: int) -> int:
    """How many bytes the service takes of an endless message, at most `most`."""
    sent = 0
    sock.settimeout(3)
    with contextlib.suppress(OSError):
        while sent < most:
            sent += sock.send(piece)
    return sent


ENDLESS = {
    "trailers": (b"0\r\n", b"A: b\r\n" * 10_000),
    "one long trailer": (b"0\r\nA: ", b"b" * 60_000),
    "tiny chunks": (b"", b"1\r\nx\r\n" * 20_000),
    "long extensions": (b"", (b"1;" + b"a" * 800 + b"\r\nx\r\n") * 30),
    "one long extension": (b"1;", b"a" * 60_000),
    "a chunk size without an end": (b"", b"0" * 60_000),
}


@pytest.mark.parametrize("shape", ENDLESS)
def test_a_message_without_an_end_is_refused_soon(server: Served, shape: str) -> None:
    """What is beyond it waits in the sockets' buffers, and nobody parses it."""
    first, piece = ENDLESS[shape]
    head = f"POST /operator/login HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n\r\n".encode()
    with RawClient(server.address) as client:
        client.send(head + first + piece)
        got = client.answer()
        assert (got.status, json.loads(got.body)["code"]) == (400, "invalid_request")
        assert got.all("connection") == ["close"]
        assert taken(client.sock, piece, 100_000_000) < 20_000_000


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_a_refused_body_is_not_read_for_ever(server: Served, framing: str) -> None:
    line = CHUNKED if framing == "chunked" else "Content-Length: 9000000000"
    piece = b"8000\r\n" + b"x" * 0x8000 + b"\r\n" if framing == "chunked" else b"x" * 0x8000
    head = f"POST /nothing HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode()
    with RawClient(server.address) as client:
        client.send(head + piece * 40)  # beyond the largest body
        assert client.answer().status == 413
        assert taken(client.sock, piece, 200_000_000) < 50_000_000


def test_an_answer_under_way_is_cut_and_not_written_into(server: Served) -> None:
    """A refusal inside another answer would be read as a part of it, or as the next one."""
    with RawClient(server.address) as client:
        client.send(b"GET /operator/health HTTP/1.1\r\nHost: x\r\n\r\nno request at all\r\n\r\n")
        assert client.answer().status == 200
        assert client.answer().status == 400
        with pytest.raises(CutOff):
            client.head()


def test_idle_connections_of_one_address_leave_the_others_theirs(server: Served) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(opened(server))
        with contextlib.closing(opened(server)) as crowded:
            crowded.sendall(request("GET", "/openapi.json"))
            said = crowded.recv(4096)
        assert b" 429 " in said.split(b"\r\n")[0]
        assert b"too_many_connections" in said
        assert b"retry-after" in said
        with contextlib.closing(opened(server, "127.0.1.1")) as other:
            other.sendall(request("GET", "/nothing"))
            assert b" 404 " in other.recv(4096).split(b"\r\n")[0]
        for path in ("/operator/health", "/api/health", "/.well-known/jwks.json"):
            with contextlib.closing(opened(server)) as crowded:
                crowded.sendall(request("GET", path))
                said = crowded.recv(4096)
            assert b" 200 " in said.split(b"\r\n")[0], path
            assert b"connection: close" in said
    data_dir = Path(server.environment["ASSAY_DATA_DIR"])
    found = json.loads((data_dir / "connections.json").read_text("utf-8"))
    assert found["address"] == "127.0.0.1"
    assert 2 * found["held"] > found["of"]
    assert "ASSAY_TRUSTED_PROXIES" in server.said()


def test_when_every_connection_is_taken_health_is_answered(server: Served) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(80):
            stack.enter_context(opened(server, f"127.0.{number}.1"))
        with contextlib.closing(opened(server, "127.1.1.1")) as late:
            late.sendall(request("GET", "/nothing"))
            said = late.recv(4096)
        assert b" 503 " in said.split(b"\r\n")[0]
        assert b"retry-after" in said
        with contextlib.closing(opened(server, "127.1.1.1")) as late:
            late.sendall(request("GET", "/operator/health"))
            assert b" 200 " in late.recv(4096).split(b"\r\n")[0]


def test_a_trusted_proxy_may_hold_every_connection(tmp_path: Path) -> None:
    settings = SETTINGS | {"ASSAY_TRUSTED_PROXIES": "127.0.0.0/8"}
    with served(tmp_path / "data", NO_CHAIN, **settings) as server, contextlib.ExitStack() as stack:
        for _ in range(PER_ADDRESS + 5):
            stack.enter_context(opened(server))
        with contextlib.closing(opened(server)) as one:
            one.sendall(request("GET", "/nothing"))
            assert b" 404 " in one.recv(4096).split(b"\r\n")[0]
        assert not (tmp_path / "data" / "connections.json").exists()
