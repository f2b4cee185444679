"""Both ends of the campaign's connections: a sender of exact bytes, an upstream that keeps all."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

PIECE_GAP_S = 0.01
"""How long an early answer is waited for between two pieces, which also keeps them apart."""

TAKEN_S = 2.0
QUIET_S = 0.02
"""How long an answer nobody should send is waited for."""

_BARE = frozenset({204, 304})
_FINAL = 200


@dataclass(frozen=True)
class Answered:
    """One answer of a service or a proxy."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Exchange:
    """What one connection brought back."""

    raw: bytes = b""
    answers: list[Answered] = field(default_factory=list[Answered])
    closed: bool = False

    @property
    def status(self) -> int:
        """Of the first answer; 0 where there was none."""
        return self.answers[0].status if self.answers else 0


def answers_in(raw: bytes, *, bare: bool = False, ended: bool = False) -> list[Answered]:
    """The whole answers in these bytes. `bare`: the first belongs to a HEAD."""
    found: list[Answered] = []
    while raw.startswith(b"HTTP/1."):
        top, split, rest = raw.partition(b"\r\n\r\n")
        if not split:
            break
        first, *lines = top.decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if status < _FINAL and status != 101:
            raw = rest
            continue
        empty = status in _BARE or status == 101 or (bare and not found)
        body, raw_or_none = (b"", rest) if empty else _body(headers, rest, ended=ended)
        if raw_or_none is None:
            break
        found.append(Answered(status, headers, body))
        raw = raw_or_none
    return found


def _body(headers: dict[str, str], rest: bytes, *, ended: bool) -> tuple[bytes, bytes | None]:
    """A body and what comes after it; None where it is not whole."""
    if "chunked" in headers.get("transfer-encoding", ""):
        pieces: list[bytes] = []
        while True:
            line, split, rest = rest.partition(b"\r\n")
            if not split:
                return b"", None
            size = int(line.split(b";")[0], 16)
            if len(rest) < size + 2:
                return b"", None
            pieces.append(rest[:size])
            rest = rest[size + 2 :]
            if not size:
                return b"".join(pieces), rest
    if "content-length" in headers:
        size = int(headers["content-length"])
        return (rest[:size], rest[size:]) if len(rest) >= size else (b"", None)
    return rest, b"" if ended else None


class Sender:
    """One connection that sends exactly what it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.got = Exchange()

    async def send(self, pieces: Sequence[bytes], *, bare: bool = False) -> None:
        """The pieces apart; stops where the other side has ended the connection."""
        for number, piece in enumerate(pieces):
            if number:
                await self.listen(PIECE_GAP_S)
            if self.got.closed:
                break
            with suppress(ConnectionError, TimeoutError):  # a refused body is not read to its end
                self._writer.write(piece)
                await asyncio.wait_for(self._writer.drain(), TAKEN_S)
        self._parse(bare=bare)

    async def until(self, answers: int, patience_s: float, *, bare: bool = False) -> Exchange:
        """Until so many answers are whole, the connection ends or nothing comes for so long."""
        while len(self.got.answers) < answers and not self.got.closed:
            if not await self.listen(patience_s):
                break
            self._parse(bare=bare)
        self._parse(bare=bare)
        return self.got

    async def to_the_end(self, patience_s: float, *, bare: bool = False) -> Exchange:
        """Until the connection ends or nothing comes for so long."""
        while not self.got.closed and await self.listen(patience_s):
            continue
        self._parse(bare=bare)
        return self.got

    async def listen(self, for_s: float) -> bool:
        """Whether something came, the end included."""
        try:
            data = await asyncio.wait_for(self._reader.read(262_144), for_s)
        except TimeoutError:
            return False
        except ConnectionError:
            data = b""
        self.got.raw += data
        self.got.closed = self.got.closed or not data
        return True

    def _parse(self, *, bare: bool) -> None:
        self.got.answers = answers_in(self.got.raw, bare=bare, ended=self.got.closed)


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Sender]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    try:
        yield Sender(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


@dataclass
class Arrived:
    """One request as an upstream got it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    is_whole: bool = False

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


class KeepingUpstream:
    """Answers each request with its own target, and keeps every byte it is sent.

    Where `is_mute`, its answers have no body. `watched` are bytes that must never come here;
    `seen` says which did, and with what.
    """

    def __init__(self, mark: str, *, is_mute: bool = False) -> None:
        self.mark, self.is_mute, self.port = mark, is_mute, 0
        self.arrived: list[Arrived] = []
        self.watched: tuple[bytes, ...] = ()
        self.seen: list[tuple[bytes, bytes]] = []
        self._handlers: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["KeepingUpstream"]:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0, limit=2**20)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(self._handlers):
                task.cancel()
            if self._handlers:
                await asyncio.wait(self._handlers)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._one(reader, writer):
                    continue
        except asyncio.CancelledError:
            pass
        finally:
            self._handlers.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        top = await reader.readuntil(b"\r\n\r\n")
        self._watch(top)
        first, *lines = top.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines)
        one = Arrived(method, target, [(name.lower(), value.strip()) for name, _, value in pairs])
        self.arrived.append(one)
        try:
            await self._read(reader, one)
        finally:
            self._watch(one.body)
        one.is_whole = True
        if self.is_mute:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            return True
        said = f"{self.mark} answers {target}".encode()
        shown = b"" if method == "HEAD" else said
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(said) + shown)
        await writer.drain()
        return True

    def _watch(self, data: bytes) -> None:
        self.seen += [(mark, data) for mark in self.watched if mark in data]

    @staticmethod
    async def _read(reader: asyncio.StreamReader, one: Arrived) -> None:
        """The body, kept also where the connection breaks off in it."""
        if one.all("transfer-encoding"):
            while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
                one.body += await reader.readexactly(size)
                await reader.readuntil(b"\r\n")
            while await reader.readuntil(b"\r\n") != b"\r\n":
                continue  # a trailer, which a proxy may pass on
        elif one.all("content-length"):
            missing = int(one.all("content-length")[0])
            while missing:
                data = await reader.read(missing)
                if not data:
                    raise asyncio.IncompleteReadError(one.body, missing)
                one.body += data
                missing -= len(data)
