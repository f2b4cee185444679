"""One hostile connection at a time, in some thirty shapes, each beside its well-formed likeness.

    python -m tests.support.desync.hostile NAME PORT SECONDS OPERATOR

plays one shape and prints what came of it as JSON: a process of its own, so that the sender's work
is not mistaken for the service's. OPERATOR has a free wrapper (`hostile_wrapper.py`).
"""

import asyncio
import json
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal

BLOCK_BYTES = 16 * 1024
SEND_BUFFER_BYTES = 64 * 1024
"""Small, so that what is sent has been taken, less what the service's side of the kernel holds."""

_ANSWER_KEPT_BYTES = 64 * 1024
_ERROR = 400

LOGIN = b"POST /operator/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
MISSING = b"POST /nothing-here HTTP/1.1\r\nHost: x\r\n"
SECRET_PAGE = b"POST /operator/keys HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
GET = b"GET /operator/health HTTP/1.1\r\nHost: x\r\n"
OPERATOR = b"OPERATOR"
"""Stands for the id of the operator whose free wrapper is called."""

WRAPPED = b" /wrap/" + OPERATOR
UPGRADE = b"Upgrade: h2c\r\nConnection: Upgrade\r\n"

End = Literal["cut", "in time", "answered"]


@dataclass(frozen=True)
class Shape:
    """What a connection sends: `opening` once, then `unit` for ever, `gap_s` apart.

    Without `reads` its answers are left unread. With `again` a connection that has ended, or been
    answered, is followed by the next. `ends`: it is to be `cut` for what it sends, ended `in time`
    for how slow it is, or `answered` like any other. `beside` names the well-formed load of the
    same kind.
    """

    name: str
    opening: bytes
    unit: bytes = b""
    gap_s: float = 0.0
    ends: End = "cut"
    beside: str = "upload"
    reads: bool = True
    again: bool = False
    half_closes: bool = False
    resets: bool = False


def _numbered(count: int) -> bytes:
    return b"".join(b"X-%d: y\r\n" % number for number in range(count))


_JSON = b'{"email": "a@example.com", "password": "'
_UPLOAD = (
    MISSING
    + CHUNKED
    + b"".join(b"4000\r\n%b\r\n" % (b"x" * 0x4000) for _ in range(16))
    + b"0\r\n\r\n"
)
_LARGE_HEAD = GET + b"X-Large: " + b"a" * 60_000 + b"\r\n"


def _wrapped(unit: bytes, mark: bytes = b"a=b") -> bytes:
    """A call of a wrapper with 57 kB of one text in its headers and its query."""
    value = (unit * 8200)[:8180]
    lines = b"".join(b"X-A%d: %b\r\n" % (number, value) for number in range(6))
    start = b"GET%b/x?a=%b&%b HTTP/1.1\r\nHost: x\r\n" % (WRAPPED, value, mark)
    return start + lines + b"Cookie: " + mark + b"\r\n\r\n"


_PAIRS = b";".join([b"a" + b"%2525" * 60] * 190)


WELL_FORMED: dict[str, Shape] = {
    one.name: one
    for one in (
        Shape("upload", b"", _UPLOAD, ends="answered"),
        Shape("requests", b"", GET + b"\r\n", ends="answered"),
        Shape("connections", GET + b"\r\n", ends="answered", again=True),
        Shape("idle", GET + b"\r\n", ends="answered"),
        Shape("wrapper calls", b"", _wrapped(b"b"), ends="answered"),
    )
}
"""The loads to compare with: large bodies, requests ahead, one request a connection, silence."""

SHAPES: tuple[Shape, ...] = (
    Shape("endless trailers", LOGIN + CHUNKED + b"0\r\n", b"A: b\r\n"),
    Shape("endless trailers of many names", LOGIN + CHUNKED + b"0\r\n", _numbered(1000)),
    Shape("one trailer without an end", LOGIN + CHUNKED + b"0\r\nA: ", b"b" * BLOCK_BYTES),
    Shape("a trailer's name without an end", LOGIN + CHUNKED + b"0\r\n", b"b" * BLOCK_BYTES),
    Shape("chunks of one byte", LOGIN + CHUNKED, b"1\r\nx\r\n"),
    Shape("chunks of one byte, refused at once", MISSING + CHUNKED, b"1\r\nx\r\n"),
    Shape("an extension on every chunk", LOGIN + CHUNKED, b"1;" + b"a" * 100 + b"\r\nx\r\n"),
    Shape("an extension without an end", LOGIN + CHUNKED + b"1;", b"a" * BLOCK_BYTES),
    Shape("a quoted extension without an end", LOGIN + CHUNKED + b'1;a="', b"a" * BLOCK_BYTES),
    Shape("a chunk size without an end", LOGIN + CHUNKED, b"0" * BLOCK_BYTES),
    Shape("a head without an end", GET + b"X: ", b"a" * BLOCK_BYTES, beside="requests"),
    Shape("header lines without an end", GET, b"a:b\r\n", beside="requests"),
    Shape("header lines without values", GET, b"a:\r\n", beside="requests"),
    Shape("a target without an end", b"GET /", b"a" * BLOCK_BYTES, beside="requests"),
    Shape("a method without an end", b"", b"A" * BLOCK_BYTES, beside="requests"),
    Shape(
        "a refused length goes on",
        LOGIN + b"Content-Length: 9999999999\r\n\r\n",
        b"x" * BLOCK_BYTES,
    ),
    Shape("a refused chunked body goes on", LOGIN + CHUNKED, b"4000\r\n%b\r\n" % (b"x" * 0x4000)),
    Shape(
        "a body where no route is",
        MISSING + b"Content-Length: 9999999999\r\n\r\n",
        b"x" * BLOCK_BYTES,
    ),
    Shape("a body without the key", SECRET_PAGE + CHUNKED, b"4000\r\n%b\r\n" % (b"x" * 0x4000)),
    Shape("bytes after an upgrade", GET + UPGRADE + b"\r\n", b"\x00" * BLOCK_BYTES),
    Shape("bytes after a refusal", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", b"x" * BLOCK_BYTES),
    Shape("bytes after a close", GET + b"Connection: close\r\n\r\n", GET + b"\r\n"),
    Shape("a head by drips", GET, b"a", 0.2, "in time", "idle"),
    Shape("a head of 60 kB, then nothing", _LARGE_HEAD, b"", 0.0, "in time", "idle"),
    Shape(
        "a body by drips", LOGIN + b"Content-Length: 100000\r\n\r\n", b"x", 0.2, "in time", "idle"
    ),
    Shape("chunks by drips", LOGIN + CHUNKED, b"1\r\nx\r\n", 0.2, "in time", "idle"),
    Shape(
        "a body that never comes",
        LOGIN + b"Content-Length: 100000\r\n\r\n",
        b"",
        0.0,
        "in time",
        "idle",
    ),
    Shape(
        "a body waited for with 100",
        LOGIN + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
        b"",
        0.0,
        "in time",
        "idle",
    ),
    Shape(
        "a TLS handshake",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"",
        0.0,
        "in time",
        "idle",
    ),
    Shape("nothing at all", b"", b"", 0.0, "in time", "idle"),
    Shape(
        "half closed within the body",
        LOGIN + b"Content-Length: 9\r\n\r\n" + b"x",
        half_closes=True,
        beside="idle",
    ),
    Shape(
        "half closed after a request",
        GET + b"\r\n",
        half_closes=True,
        ends="answered",
        beside="idle",
    ),
    Shape(
        "answers left unread",
        b"",
        b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n",
        0.0,
        "in time",
        "requests",
        reads=False,
    ),
    Shape("small answers left unread", b"", GET + b"\r\n", 0.0, "in time", "requests", reads=False),
    *(
        Shape(f"wrapper calls full of {name}", b"", unit, ends="answered", beside="wrapper calls")
        for name, unit in (
            ("percent signs", _wrapped(b"%25")),
            ("escapes of escapes", _wrapped(b"%25252541")),
            ("escapes beside a payment", _wrapped(b"%25252541", b"x-payment=1")),
            ("tokens", _wrapped(b"eyJhIjoxfQ.eyJh.x,")),
            (
                "encoded cookies",
                b"GET%b/x HTTP/1.1\r\nHost: x\r\nCookie: %b;x-payment=1\r\n\r\n"
                % (WRAPPED, _PAIRS),
            ),
        )
    ),
    Shape(
        "chunks by drips at a wrapper",
        b"POST" + WRAPPED + b"/x HTTP/1.1\r\nHost: x\r\n" + CHUNKED,
        b"1\r\nx\r\n",
        0.2,
        "in time",
        "idle",
    ),
    Shape(
        "a body by drips at a wrapper",
        b"POST" + WRAPPED + b"/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
        b"x",
        0.2,
        "in time",
        "idle",
    ),
    Shape(
        "a wrapper's answers left unread",
        b"",
        b"GET" + WRAPPED + b"/large HTTP/1.1\r\nHost: x\r\n\r\n",
        0.0,
        "in time",
        "requests",
        reads=False,
    ),
    Shape(
        "a wrapper's answer left unread",
        b"",
        b"GET" + WRAPPED + b"/large HTTP/1.1\r\nHost: x\r\n\r\n",
        1.0,
        "in time",
        "idle",
        reads=False,
    ),
    Shape("empty lines without an end", b"", b"\r\n", beside="requests"),
    Shape(
        "requests with 60 kB heads", b"", _LARGE_HEAD + b"\r\n", ends="answered", beside="requests"
    ),
    Shape(
        "requests with tiny header lines",
        b"",
        GET + b"a:b\r\n" * 2000 + b"\r\n",
        ends="answered",
        beside="requests",
    ),
    Shape(
        "a storm of upgrades",
        GET + UPGRADE + b"\r\n",
        ends="answered",
        beside="connections",
        again=True,
    ),
    Shape(
        "a storm of WebSocket handshakes",
        GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        ends="answered",
        beside="connections",
        again=True,
    ),
    Shape(
        "a storm of tunnels",
        b"CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n",
        ends="answered",
        beside="connections",
        again=True,
    ),
    Shape(
        "a storm of garbage",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        ends="answered",
        beside="connections",
        again=True,
    ),
    Shape(
        "a storm of resets",
        GET + b"\r\n",
        ends="answered",
        beside="connections",
        again=True,
        resets=True,
    ),
)


@dataclass
class Played:
    """What came of a shape. `status`: of the last answer seen; `ended`: by the other side."""

    name: str
    taken_bytes: int = 0
    connections: int = 0
    status: int = 0
    ended: bool = False
    seconds: float = 0.0


class _Ended(Exception):
    """The other side has ended the connection."""


class _Connection:
    def __init__(self, sock: socket.socket, played: Played) -> None:
        self._sock, self._played = sock, played
        self._loop = asyncio.get_running_loop()
        self.over, self.answered = asyncio.Event(), asyncio.Event()
        self.reading: asyncio.Task[None] | None = None

    def start_reading(self) -> None:
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        kept = b""
        with suppress(ConnectionError):
            while data := await self._loop.sock_recv(self._sock, 2**18):
                kept = (kept + data)[:_ANSWER_KEPT_BYTES]
                if kept.startswith(b"HTTP/1.1 ") and len(kept) > 12:
                    self._played.status = int(kept[9:12])
                    self.answered.set()
        self.over.set()
        self.answered.set()

    async def send(self, data: bytes, deadline: float) -> None:
        """All of it, unless the time is over. Raises `_Ended`."""
        view = memoryview(data)
        while view and not self.over.is_set() and time.monotonic() < deadline:
            try:
                sent = self._sock.send(view)
            except BlockingIOError:
                await self._writable(deadline)
                continue
            except ConnectionError as error:
                raise _Ended from error
            self._played.taken_bytes += sent
            view = view[sent:]
            await asyncio.sleep(0)
        if self.over.is_set():
            raise _Ended

    async def _writable(self, deadline: float) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._sock, ready.cancel)
        ended = asyncio.ensure_future(self.over.wait())
        left = max(0.0, deadline - time.monotonic())
        await asyncio.wait({ready, ended}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        self._loop.remove_writer(self._sock)
        ended.cancel()

    async def ended_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self.over.wait(), max(0.0, seconds))
        except TimeoutError:
            return False
        return True


async def play(
    shape: Shape, port: int, *, seconds: float, bytes_max: int = 2**62, connections_max: int = 10**9
) -> Played:
    """The shape, until the service ends it or one of the bounds is reached."""
    played = Played(shape.name)
    begun = time.monotonic()
    deadline = begun + seconds
    while time.monotonic() < deadline and played.connections < connections_max:
        played.connections += 1
        await _connection(shape, port, played, deadline, bytes_max)
        if not shape.again:
            break
    played.seconds = round(time.monotonic() - begun, 2)
    return played


async def _connection(
    shape: Shape, port: int, played: Played, deadline: float, bytes_max: int
) -> None:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(0)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    connection = _Connection(sock, played)
    try:
        if shape.reads:
            connection.start_reading()
        await _talk(shape, connection, sock, played, (deadline, bytes_max))
    except _Ended:
        played.ended = True
    finally:
        if connection.reading is not None:
            connection.reading.cancel()
            await asyncio.wait({connection.reading})
        if shape.resets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


async def _talk(
    shape: Shape,
    connection: _Connection,
    sock: socket.socket,
    played: Played,
    bounds: tuple[float, int],
) -> None:
    deadline, bytes_max = bounds
    await connection.send(shape.opening, deadline)
    if shape.half_closes:
        sock.shutdown(socket.SHUT_WR)
    if shape.again:
        with suppress(TimeoutError):
            await connection.send(shape.unit, deadline)
            await asyncio.wait_for(
                connection.answered.wait(), max(0.0, deadline - time.monotonic())
            )
        return
    block = shape.unit * max(1, 1 if shape.gap_s else BLOCK_BYTES // max(1, len(shape.unit)))
    while block and played.taken_bytes < bytes_max and time.monotonic() < deadline:
        await connection.send(block, deadline)
        if shape.gap_s and await connection.ended_within(shape.gap_s):
            raise _Ended
    if not block and await connection.ended_within(deadline - time.monotonic()):
        raise _Ended


def shape_of(name: str) -> Shape:
    """The shape of that name, a well-formed load among them."""
    return next(one for one in (*SHAPES, *WELL_FORMED.values()) if one.name == name)


def well_formed(shape: Shape) -> Shape:
    """The load it is compared with."""
    return WELL_FORMED[shape.beside]


def aimed(shape: Shape, operator_id: str) -> Shape:
    """The shape against the free wrapper of that operator, where it is one against a wrapper."""
    opening, unit = (
        part.replace(OPERATOR, operator_id.encode()) for part in (shape.opening, shape.unit)
    )
    return replace(shape, opening=opening, unit=unit)


def main() -> None:
    name, port, seconds, operator_id = (
        sys.argv[1],
        int(sys.argv[2]),
        float(sys.argv[3]),
        sys.argv[4],
    )
    played = asyncio.run(play(aimed(shape_of(name), operator_id), port, seconds=seconds))
    sys.stdout.write(json.dumps(asdict(played)) + "\n")


if __name__ == "__main__":
    main()
