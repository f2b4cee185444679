"""Forward proxies with source addresses of their own, for visits that must not be recognised."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

SOURCES = "127.99.0"
"""Loopback network that requests through these proxies come from."""


@asynccontextmanager
async def proxies(count: int) -> AsyncGenerator[list[str]]:
    """So many proxies; yields their addresses."""
    async with AsyncExitStack() as stack:
        urls: list[str] = []
        for number in range(1, count + 1):
            server = await asyncio.start_server(_Proxy(f"{SOURCES}.{number}").serve, "127.0.0.1", 0)
            stack.callback(server.close)
            urls.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield urls


class _Proxy:
    """One connection leads to one host: what clients of forward proxies do."""

    def __init__(self, source: str) -> None:
        self._source = source

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._carry(reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # either side left
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b" ", 2)
        is_tunnel = method == b"CONNECT"
        url = urlsplit(("http://" if is_tunnel else "") + target.decode("latin-1"))
        assert url.hostname is not None
        onward = await asyncio.open_connection(
            url.hostname, url.port or 80, local_addr=(self._source, 0)
        )
        if is_tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = url.path + (f"?{url.query}" if url.query else "")
            onward[1].write(head.replace(target, path.encode("latin-1") or b"/", 1))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pipe(reader, onward[1]))
                group.create_task(_pipe(onward[0], writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # either side left
        finally:
            onward[1].close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
