"""Whoever holds connections at the address of metrics keeps no scrape out, and no file for long."""

import contextlib
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from assay.cli.ops import CONNECTIONS_MAX
from tests.support.assay import Served, served
from tests.support.shop import NO_CHAIN

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
HELD = 300
HALF = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Half: "


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("ops"), NO_CHAIN, ASSAY_OPS_BIND="0") as made:
        yield made


@pytest.fixture(scope="module")
def url(server: Served) -> str:
    assert server.process is not None
    assert server.process.stdout is not None
    found = (re.search(r"metrics\s+(http://\S+)", line) for line in server.process.stdout)
    return next(one[1] for one in found if one)


def files(server: Served) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def opened(url: str, source: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), 30, (source, 0))


@pytest.mark.parametrize("sent", [b"", HALF], ids=["idle", "half a head"])
@pytest.mark.parametrize("sources", [1, 100], ids=["one address", "many addresses"])
def test_held_connections_keep_no_scrape_out(
    server: Served, url: str, sent: bytes, sources: int
) -> None:
    before = files(server)
    with contextlib.ExitStack() as stack:
        for number in range(HELD):
            made = stack.enter_context(opened(url, f"127.0.0.{1 + number % sources}"))
            with contextlib.suppress(OSError):  # ended for the next one
                made.sendall(sent)
        for source in ("127.0.0.1", "127.0.1.1"):
            way = httpx2.HTTPTransport(local_address=source)
            with httpx2.Client(transport=way, timeout=20) as http:
                for _ in range(3):
                    assert http.get(url).status_code == 200
        assert files(server) <= before + CONNECTIONS_MAX + 20
    assert httpx2.get(url, trust_env=False).headers["connection"] == "close"


def test_a_connection_without_a_whole_request_is_ended(url: str) -> None:
    """Both are waited for at once."""
    with opened(url, "127.0.2.1") as idle, opened(url, "127.0.2.2") as half:
        half.sendall(HALF)
        for name, held in (("idle", idle), ("half a head", half)):
            try:
                assert held.recv(100) == b"", name
            except ConnectionResetError:
                pass
            except TimeoutError:
                pytest.fail(f"{name}: it was not ended")
