"""An upstream whose every byte is the test's: raw asyncio, in a thread of its own."""

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.starting import HUNG_S

Play = Callable[["Wire", "Asked"], Awaitable[None]]


@dataclass
class Asked:
    """One request as it came in, byte for byte."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    first_piece_at: float = 0.0
    last_piece_at: float = 0.0

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


@dataclass
class Wire:
    """A connection being answered."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


@dataclass
class WireUpstream:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    plays: dict[str, Play] = field(default_factory=dict)
    connections: int = 0
    lost: int = 0
    """Connections that ended before their answer was whole."""

    def to(self, path: str) -> list[Asked]:
        return [one for one in self.asked if one.target.partition("?")[0] == path]


@contextmanager
def wire_upstream() -> Iterator[WireUpstream]:  # noqa: PLR0915 - a server in a function
    state = WireUpstream()
    ready, over = threading.Event(), threading.Event()

    handlers: set[asyncio.Task[None]] = set()

    async def serve() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            state.connections += 1
            wire = Wire(reader, writer, state.connections)
            task = asyncio.current_task()
            assert task is not None
            handlers.add(task)
            try:
                with suppress(ConnectionError, asyncio.IncompleteReadError, AssertionError):
                    while await _one(state, wire):
                        continue
            except asyncio.CancelledError:
                pass
            finally:
                handlers.discard(task)
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

        server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=2**20)
        state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await asyncio.to_thread(over.wait)
        server.close()
        for task in list(handlers):
            task.cancel()
        if handlers:
            await asyncio.wait(handlers)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(HUNG_S)
    try:
        yield state
    finally:
        over.set()
        thread.join(10)


async def _one(state: WireUpstream, wire: Wire) -> bool:
    """Read and answer one request; False when the connection ends."""
    try:
        head = await wire.reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return False
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    pairs = [line.split(": ", 1) for line in lines]
    asked = Asked(method, target, [(name.lower(), value) for name, value in pairs])
    state.asked.append(asked)
    play = state.plays.get(target.partition("?")[0])
    if play is not None and getattr(play, "reads_nothing", False):
        await play(wire, asked)
        return False
    await _body(wire.reader, asked)
    if play is None:
        digest = hashlib.sha256(asked.body).hexdigest().encode()
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 64\r\n\r\n" + digest)
        return True
    await play(wire, asked)
    return True


async def _body(reader: asyncio.StreamReader, asked: Asked) -> None:
    clock = asyncio.get_running_loop().time
    if asked.all("transfer-encoding"):
        pieces = []
        while size := int(await reader.readline(), 16):
            asked.first_piece_at = asked.first_piece_at or clock()
            pieces.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        asked.body = b"".join(pieces)
    elif asked.all("content-length"):
        asked.body = await reader.readexactly(int(asked.all("content-length")[0]))
    asked.last_piece_at = clock()
