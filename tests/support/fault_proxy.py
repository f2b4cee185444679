"""A TCP proxy on this event loop that can lose, hang or slow whatever is behind it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

PIECE = 65_536


class FaultProxy:
    """Forwards every byte, as far as no fault is set."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_down = False
        self._delay_s = 0.0
        self._open: set[asyncio.StreamWriter] = set()
        self._running: set[asyncio.Task[None]] = set()
        self.port = 0

    def down(self) -> None:
        """Cut every connection, and accept none that lasts."""
        self._is_down = True
        for writer in self._open:
            writer.transport.abort()

    def hang(self) -> None:
        """Connections stay and are accepted; no byte arrives any more."""
        self._flows.clear()

    def slow(self, delay_s: float) -> None:
        """Every piece arrives later, each way."""
        self._delay_s = delay_s

    def heal(self) -> None:
        """Forward everything, and what has waited."""
        self._is_down, self._delay_s = False, 0.0
        self._flows.set()

    def in_front_of(self, url: str) -> str:
        """The same URL through this proxy."""
        parts = urlsplit(url)
        user = "" if parts.username is None else f"{parts.username}@"
        return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{self.port}"))

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection to its end."""
        if self._is_down:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        inner, outer = None, None
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", self._behind)
            self._open |= {writer, outer}
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(reader, outer))
                group.create_task(self._pass_on(inner, writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._running.discard(task)
            for one in (writer, outer):
                if one is not None:
                    self._open.discard(one)
                    one.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE):
            await self._flows.wait()
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            writer.write(piece)
            await writer.drain()
        raise ConnectionError("one side has ended")

    async def close(self) -> None:
        """End what is still open."""
        for task in list(self._running):
            task.cancel()
        for task in list(self._running):
            with suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def fault_proxy(port: int) -> AsyncGenerator[FaultProxy]:
    """A proxy in front of a loopback port."""
    proxy = FaultProxy(port)
    server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
