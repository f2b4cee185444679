"""A host that never asked to be called: it counts what it really got and really had to send."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

SEND_BUFFER_BYTES = 4096
"""Small, so that what the victim has handed to its system has mostly left it."""

_ACKED_AT = 120
"""Offset of `tcpi_bytes_acked`; `tcpi_bytes_received` follows. Source: linux/tcp.h."""


@dataclass
class Victim:
    """What came, and the bytes that went over the wire in both directions, TCP payload alone."""

    port: int = 0
    scheme: str = "http"
    requests: list[bytes] = field(default_factory=list)
    """The first line of each request."""
    connections: int = 0
    closed_bytes: int = 0
    open: set[socket.socket] = field(default_factory=set)

    @property
    def size_bytes(self) -> int:
        """Sent and received so far."""
        return self.closed_bytes + sum(_bytes_of(one) for one in self.open)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def suffering(
    *answers: bytes,
    endless: bool = False,
    respond: Callable[[bytes], bytes] | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Victim]:
    """A victim that gives `answers` in turn, round and round; `endless` ones never end.

    Where `respond` is given, it makes the answer to a request's first line instead.
    """
    victim = Victim(scheme="https" if tls else "http")
    respond = respond or (lambda _: answers[len(victim.requests) % len(answers)])
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            with _counted(victim, writer):
                await _converse(victim, reader, writer, respond, endless=endless)
        finally:
            handlers.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    victim.port = server.sockets[0].getsockname()[1]
    try:
        yield victim
    finally:
        server.close()
        for task in list(handlers):
            task.cancel()
        if handlers:
            await asyncio.wait(list(handlers))


@contextmanager
def _counted(victim: Victim, writer: asyncio.StreamWriter) -> Iterator[None]:
    """The connection's bytes are the victim's, while it is open and after."""
    plain: socket.socket = writer.get_extra_info("socket")._sock
    twin = plain.dup()  # it outlives the transport, and still knows what was counted
    twin.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    victim.open.add(twin)
    victim.connections += 1
    try:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            yield
    finally:
        writer.transport.abort()
        victim.open.discard(twin)
        victim.closed_bytes += _bytes_of(twin)
        twin.close()


async def _converse(
    victim: Victim,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    respond: Callable[[bytes], bytes],
    *,
    endless: bool,
) -> None:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        victim.requests.append(head.partition(b"\r\n")[0])
        names = head.lower().split(b"\r\n")
        length = next(
            (n.partition(b":")[2] for n in names if n.startswith(b"content-length")), b"0"
        )
        await reader.readexactly(int(length))
        writer.write(respond(victim.requests[-1]))
        while endless:
            writer.write(b"x" * 1024)
            await writer.drain()
        await writer.drain()


def _bytes_of(connected: socket.socket) -> int:
    info = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AT + 16)
    acked, received = struct.unpack_from("<QQ", info, _ACKED_AT)
    return int(acked) + int(received)
