"""A trusted proxy's unused connections stay open for longer than a stranger's."""

import http.client
import select
from collections.abc import Iterator
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import pytest

from tests.support.assay import Served, served
from tests.support.shop import NO_CHAIN
from tests.support.starting import HUNG_S

pytestmark = pytest.mark.e2e

PROXY, STRANGER = "127.0.0.2", "127.0.0.3"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = {"ASSAY_TRUSTED_PROXIES": PROXY, "ASSAY_KEEP_ALIVE_S": "3600"}
    with served(tmp_path_factory.mktemp("kept"), NO_CHAIN, **settings) as running:
        yield running


def opened(server: Served, own: str) -> http.client.HTTPConnection:
    parts = urlsplit(server.address)
    connection = http.client.HTTPConnection(
        str(parts.hostname), parts.port, timeout=HUNG_S, source_address=(own, 0)
    )
    assert status(connection) == 200
    return connection


def status(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/livez")
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_a_strangers_connection_ends_first_and_the_proxys_is_used_again(server: Served) -> None:
    with ExitStack() as stack:
        proxy, stranger = (
            stack.enter_context(closing(opened(server, own))) for own in (PROXY, STRANGER)
        )
        ended, _, _ = select.select([proxy.sock, stranger.sock], [], [], HUNG_S)
        assert ended == [stranger.sock]
        assert stranger.sock.recv(1) == b""
        assert status(proxy) == 200
