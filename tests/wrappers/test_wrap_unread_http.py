"""A connection that has been closed does not stay because its last answer is left unread."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from assay.app.protocol import FastProtocol, protocol_for
from assay.app.web import build
from assay.http1.connections import BOUNDS
from tests.support.eventually import eventually_here
from tests.support.live_service import start_test_service
from tests.support.wire_upstream import Asked, Wire, wire_upstream
from tests.wrappers.test_wrap_repeats_http import Shop

KERNEL_BYTES = 4096
"""What the system holds of an answer; asyncio holds the rest, and is not full of it."""

ANSWER_BYTES = 48_000


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[tuple[Shop, ServerState]]:
    """The service, with little room in the system for what it sends."""
    with wire_upstream() as up:
        async with start_test_service(folder / "data") as service:
            edge = build(service.app)
            bounds = replace(BOUNDS, unread_s=0.5)
            config = uvicorn.Config(
                edge,
                http=protocol_for(edge, bounds),
                ws="none",
                lifespan="off",
                log_level="critical",
                timeout_keep_alive=1,
            )
            config.load()
            state, loop = ServerState(), asyncio.get_running_loop()
            made = cast("Any", config).http_protocol_class

            def make() -> FastProtocol:
                return cast("FastProtocol", made(config, state, {}, loop))

            door = socket.create_server(("127.0.0.1", 0))
            door.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)
            server = await loop.create_server(make, sock=door)
            shop = Shop(service, up, door.getsockname()[1])
            await shop.open()
            try:
                yield shop, state
            finally:
                server.close()
                for connection in list(state.connections):
                    cast("Any", connection).transport.abort()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("last", ["close", "keep-alive"])
async def test_an_answer_left_unread_holds_its_connection_for_a_bounded_time(
    tmp_path: Path, method: str, last: str
) -> None:
    """In both lanes, whether the answer ends the connection or its idleness does."""

    async def play(wire: Wire, _asked: Asked) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % ANSWER_BYTES
        await wire.send(head + bytes(ANSWER_BYTES))

    async with opened(tmp_path) as (shop, state):
        await shop.wrap("/some", play)
        await shop.warm(shop.request("/some"))
        loop = asyncio.get_running_loop()
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)
            deaf.setblocking(False)  # noqa: FBT003
            await loop.sock_connect(deaf, ("127.0.0.1", shop.port))
            data = shop.request("/some", method, Connection=last, Content_Length="0")
            await loop.sock_sendall(deaf, data)
            await eventually_here(lambda: any(map(_waits, state.connections)))  # it is answered
            await eventually_here(lambda: not state.connections)


def _waits(connection: Any) -> bool:
    return bool(connection.transport.get_write_buffer_size())


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX: ",
        b"POST /operator/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n",
        b"POST /operator/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n270f\r\n",
    ],
)
async def test_a_drip_sets_no_timer_for_its_bytes(
    tmp_path: Path, start: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as (shop, state):
        loop = asyncio.get_running_loop()
        async with shop.caller() as caller:
            caller.writer.write(b"OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n")
            await caller.answer()
            [connection] = cast("Any", state.connections)
            connection.data_received(start)
            await asyncio.sleep(0)
            timers: list[float] = []
            call_at = loop.call_at

            def counted(when: float, *rest: Any, **more: Any) -> asyncio.TimerHandle:
                timers.append(when)
                return call_at(when, *rest, **more)

            monkeypatch.setattr(loop, "call_at", counted)
            for _ in range(200):
                connection.data_received(b"a")
                await asyncio.sleep(0)
            monkeypatch.undo()
            assert len(timers) <= 5
