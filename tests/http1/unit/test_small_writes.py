"""Small writes leave at once: the system does not hold them until the last one is acknowledged."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.cli.serve import listen
from assay.net.egress.dial import connected_socket
from assay.settings import Settings


def holds_small_writes(sock: socket.socket) -> bool:
    return not sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@contextmanager
def accepted(door: socket.socket) -> Generator[socket.socket]:
    with socket.create_connection(door.getsockname()[:2]), door.accept()[0] as connection:
        yield connection


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_answers_are_not_held(tmp_path: Path, host: str) -> None:
    with listen(Settings(data_dir=tmp_path, host=host, port=0)) as (door, _), accepted(door) as one:
        assert not holds_small_writes(one)


def test_requests_to_upstreams_are_not_held() -> None:
    door = socket.create_server(("127.0.0.1", 0))
    with door, asyncio.run(connected_socket(*door.getsockname())) as one:
        assert not holds_small_writes(one)
