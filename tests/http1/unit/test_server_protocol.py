"""The server's protocol by itself: in front of any application, without a fast path."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from assay.common.errors import ServiceError
from assay.http1.connections import BOUNDS, ConnectionCaps, Connections
from assay.http1.server_protocol import ServerProtocol


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"] or scope["path"].encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def reject(error: ServiceError, *, is_head: bool) -> bytes:
    return b"HTTP/1.1 400 Bad Request\r\n\r\n" + (b"" if is_head else error.code.encode())


@pytest.fixture
def protocol() -> type[ServerProtocol[Any]]:
    """Of a server that takes one connection at a time from an address."""
    caps = ConnectionCaps(total=10, per_address=1)
    connections = Connections(caps, lambda _: False, lambda *_: None)
    return ServerProtocol.configured(BOUNDS, connections, reject)


@pytest.fixture
async def port(protocol: type[ServerProtocol[Any]]) -> AsyncGenerator[int]:
    config = uvicorn.Config(echo, log_config=None)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: protocol(config, ServerState(), {}, loop), "127.0.0.1", 0
    )
    async with server:
        yield server.sockets[0].getsockname()[1]


async def asked(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    async with asyncio.timeout(10):
        found = await reader.read()
    writer.close()
    return found


async def test_requests_of_one_connection_are_answered_in_their_order(port: int) -> None:
    first = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none"
    last = b"GET /two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    found = await asked(port, first + last)
    assert found.count(b"HTTP/1.1 200") == 2
    assert found.index(b"\r\n\r\none") < found.index(b"\r\n\r\n/two")


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
async def test_a_malformed_request_is_refused_as_the_service_says(port: int, method: bytes) -> None:
    found = await asked(port, method + b" /a HTTP/1.1\r\n\r\n")
    refused = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    assert found == refused + (b"" if method == b"HEAD" else b"invalid_request")


async def test_a_connection_beyond_a_cap_is_refused_as_the_service_says(port: int) -> None:
    request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    assert (await asked(port, request)).endswith(b"too_many_connections")
    health = await asked(port, b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n")
    assert health.endswith(b"\r\n\r\n/api/health")
    writer.close()


async def test_a_server_that_leaves_ends_each_connection_with_its_next_answer(
    port: int, protocol: type[ServerProtocol[Any]]
) -> None:
    request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(10):
        writer.write(request)
        assert b"connection: close" not in (await reader.readuntil(b"\r\n\r\n/a"))
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(protocol.leave())
            await asyncio.sleep(0)
            assert not leaving.done()
            writer.write(request)
            last = await reader.read()  # to its end
    assert last.count(b"HTTP/1.1 200") == 1
    assert b"\r\nconnection: close\r\n" in last
    writer.close()
