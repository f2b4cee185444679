"""A reverse proxy with a fault on purpose: of a request with `FORGET`, it passes no length on.

All callers share its one connection to the service, so that what it calls a body is the service's
next request. The campaign has to find it leaking, or the campaign finds nothing.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.support.desync.wire import answers_in

FORGET = b"X-Forget: length"
PATIENCE_S = 5.0


class _FaultyProxy:
    def __init__(self, backend: int) -> None:
        self._backend = backend
        self._turn = asyncio.Lock()
        self._numbers = itertools.count()
        self._kept: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._unread = b""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            top = await reader.readuntil(b"\r\n\r\n")
            lines = top.split(b"\r\n")[:-2]
            declared = [line for line in lines if line.lower().startswith(b"content-length:")]
            body = await reader.readexactly(int(declared[0][15:]) if declared else 0)
            dropped = (b"connection:", *([b"content-length:"] if FORGET in lines else []))
            passed = [line for line in lines if not line.lower().startswith(dropped)]
            passed.append(b"X-Proxy-Request: %d" % next(self._numbers))
            async with self._turn:
                writer.write(await self._ask(b"\r\n".join([*passed, b"", b""]) + body))
            await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def _ask(self, data: bytes) -> bytes:
        """The next answer on the shared connection, whoever's it is."""
        if self._kept is None:
            self._kept = await asyncio.open_connection("127.0.0.1", self._backend)
            self._unread = b""
        reader, writer = self._kept
        writer.write(data)
        try:
            while not answers_in(self._unread):
                piece = await asyncio.wait_for(reader.read(2**16), PATIENCE_S)
                if not piece:
                    raise ConnectionError  # noqa: TRY301 - as where it is reset
                self._unread += piece
        except (ConnectionError, TimeoutError):
            self.close()
            raise
        end = self._unread.index(b"\r\n\r\n") + 4 + len(answers_in(self._unread)[0].body)
        answer, self._unread = self._unread[:end], self._unread[end:]
        return answer

    def close(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
            self._kept = None


@asynccontextmanager
async def faulty_proxy(backend: int) -> AsyncIterator[int]:
    """Its port."""
    proxy = _FaultyProxy(backend)
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0, limit=2**20)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        proxy.close()
        server.close()
