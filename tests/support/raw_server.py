"""A loopback server that sends exactly the bytes, pauses and cuts a test asks for."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Request:
    """What came in, as it was sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Respond = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawServer:
    """A running server and what it has seen."""

    port: int
    tls: bool
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"


def plain(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole, well-formed reply."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def sends(*pieces: bytes | float) -> Respond:
    """Bytes are sent, numbers are seconds to wait, and then the connection is closed."""

    async def respond(_: Request, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            else:
                await asyncio.sleep(piece)
        writer.close()

    return respond


def keeps_open(reply: bytes) -> Respond:
    """The reply, and the connection stays for the next request."""

    async def respond(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await writer.drain()

    return respond


@asynccontextmanager
async def serving(
    respond: Respond, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[RawServer]:
    """Serve on a free port of an address of this machine until the end of the block."""
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        server.connections += 1
        try:
            while not writer.is_closing():
                request = await _read_request(reader)
                server.requests.append(request)
                await respond(request, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            handlers.discard(task)
            writer.transport.abort()

    listener = await asyncio.start_server(handle, address, 0, ssl=tls)
    server = RawServer(listener.sockets[0].getsockname()[1], tls is not None)
    try:
        yield server
    finally:
        listener.close()
        for task in list(handlers):
            task.cancel()
        if handlers:
            await asyncio.wait(list(handlers))


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:-2])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)
