"""The guarded way to operators' upstreams: a small keep-alive client on httptools.

It judges every address a name resolves to and dials what was judged, passes bodies on in both
directions as they come, and holds no more than a bound of either. General clients cost ten times
the processor time of the whole hop (facts, performance).
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpcore2
import httptools
from typing_extensions import override

from assay.egress.ports import EgressError
from assay.egress.url import EgressPolicy, Target
from assay.infra.http.breaker import Breaker
from assay.infra.http.dial import judged_addresses
from assay.infra.http.resolver import Resolver, SystemResolver
from assay.kit.clock import Clock
from assay.payments.model import Headers
from assay.wrapper.model import UpstreamFailed
from assay.wrapper.ports import UpstreamReply, UpstreamRequest

CONNECT_S = 5.0
HEADER_BYTES_MAX = 64 * 1024
HEADERS_MAX = 200
KEEP_ALIVE_S = 4.0
"""Idle time before a connection is closed: below the 5 s after which Node's servers close theirs."""

AGE_MAX_S = 60.0
"""A name is resolved and judged again at least this often."""

CONNECTIONS_MAX = 512
"""At once to one upstream; beyond it a request is refused rather than queued."""

_HIGH_BYTES = 256 * 1024
_LOW_BYTES = 64 * 1024
"""Reading pauses above the one and goes on below the other: what a slow reader costs in memory."""

_NO_BODY = frozenset({204, 304})
_SWEEP_S = 1.0
_SWITCHING = 101
_FINAL = 200


class _Stale(Exception):
    """A kept connection was closed before it gave a byte."""


class _Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    __slots__ = (
        "_chunks",
        "_complete",
        "_deadline_s",
        "_drained",
        "_error",
        "_header_bytes",
        "_headers",
        "_is_head",
        "_keep",
        "_length",
        "_loop",
        "_parser",
        "_paused",
        "_size",
        "_timeout_s",
        "_timer",
        "_until_end",
        "_waiter",
        "busy",
        "idle_since_s",
        "made_s",
        "received",
        "status",
        "transport",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._error: UpstreamFailed | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._paused = False
        self._complete = True
        self._is_head = False
        self._keep = True
        self._until_end = False
        self._length = False
        self._size = self._header_bytes = 0
        self._deadline_s = self._timeout_s = 0.0
        self.transport: asyncio.Transport | None = None
        self.made_s = self.idle_since_s = loop.time()
        self.busy = False
        self.received = False
        self.status = 0

    # -- the exchange ------------------------------------------------------------------------

    def begin(self, head: bytes, *, is_head: bool, timeout_s: float) -> None:
        """Send the head of a request (and a small body with it)."""
        self.busy, self.received, self._complete = True, False, False
        self._is_head, self._keep = is_head, True
        self._error = None
        self._chunks.clear()
        self._size = 0
        self._reset_head()
        self._timeout_s = timeout_s
        self._deadline_s = self._loop.time() + timeout_s
        self._timer = self._loop.call_at(self._deadline_s, self._tick)
        self._write(head)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body, once there is room for it."""
        self._write(data)
        self._deadline_s = self._loop.time() + self._timeout_s
        if self._drained is not None:
            await self._drained

    async def head(self) -> None:
        """Returns when the head of the answer is there. Raises `UpstreamFailed` and `_Stale`."""
        while self.status < _FINAL and self._error is None:
            await self._wait()
        if self._error is not None:
            raise self._error

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The answer's, names in lower case."""
        return self._headers

    def take_whole(self) -> bytes | None:
        """The whole body, where it is there; the exchange is over then."""
        if not self._complete or self._error is not None:
            return None
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        return data

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        while True:
            if self._chunks:
                yield self._take()
            elif self._error is not None:
                raise self._error
            elif self._complete:
                return
            else:
                await self._wait()

    def end(self) -> bool:
        """The exchange is over; whether the connection may serve another."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.busy = False
        transport = self.transport
        reusable = (
            self._complete
            and self._keep
            and self._error is None
            and transport is not None
            and not transport.is_closing()
        )
        if not reusable:
            self.close()
            return False
        if self._is_head:  # its parser still waits for the body that never comes
            self._parser = httptools.HttpResponseParser(self)
        self.idle_since_s = self._loop.time()
        return True

    def stop_keeping(self) -> None:
        """It may finish this exchange and serve no other."""
        self._keep = False

    def close(self) -> None:
        """Give the connection up at once."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.abort()

    @property
    def is_open(self) -> bool:
        """Whether it may be written to."""
        return self.transport is not None and not self.transport.is_closing()

    def _write(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            raise _Stale
        self.transport.write(data)

    def _take(self) -> bytes:
        data = self._chunks.popleft() if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        if self._paused and self.transport is not None:
            self._paused = False
            self._deadline_s = self._loop.time() + self._timeout_s
            self.transport.resume_reading()
        return data

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _tick(self) -> None:
        """The deadline moves with every byte; the timer is only moved when it fires."""
        now = self._loop.time()
        if self._paused:  # our reader is slow, not they
            self._deadline_s = now + self._timeout_s
        if now < self._deadline_s:
            self._timer = self._loop.call_at(self._deadline_s, self._tick)
            return
        self._fail("it did not answer in time")

    def _fail(self, why: str) -> None:
        if self._error is None and not self._complete:
            self._error = _failed(why)
        self.close()
        self._wake()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _reset_head(self) -> None:
        self.status = 0
        self._headers = []
        self._header_bytes = 0
        self._until_end = self._length = False

    # -- asyncio -----------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment] - a stream transport by construction

    @override
    def data_received(self, data: bytes) -> None:
        if not self.busy or (self._complete and self._is_head):
            self._keep = False
            self.close()  # bytes nobody asked for
            return
        self.received = True
        self._deadline_s = self._loop.time() + self._timeout_s
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("it switched protocols")
        except httptools.HttpParserError as error:
            if not (self._complete and self._is_head):
                self._fail(f"not HTTP: {error}")
        if self._size > _HIGH_BYTES and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    @override
    def eof_received(self) -> bool:
        return False

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._keep = False
        if self.busy and not self._complete:
            if self._until_end and self.status >= _FINAL and exc is None:
                self._complete = True
            elif self._error is None:
                self._error = _failed("it closed the connection")
        self._wake()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    @override
    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    @override
    def resume_writing(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    # -- httptools ---------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Of the head, or a trailer, which is dropped (RFC 9110, section 6.5.1)."""
        if self.status:
            return
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > HEADER_BYTES_MAX or len(self._headers) >= HEADERS_MAX:
            raise ValueError("its headers are larger than accepted")
        name = name.lower()
        if name in {b"content-length", b"transfer-encoding"}:
            self._length = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole; a 1xx is passed over."""
        status = self._parser.get_status_code()
        if status == _SWITCHING:
            raise ValueError("it switched protocols")
        if status < _FINAL:
            self._reset_head()
            return
        self.status = status
        self._keep = self._keep and self._parser.should_keep_alive()
        if self._is_head:
            self._complete = True
        else:
            self._until_end = not self._length and status not in _NO_BODY

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._is_head:
            return
        self._chunks.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        """The end, unless it was a 1xx."""
        if self.status >= _FINAL:
            self._complete = True
            self._keep = self._keep and self._parser.should_keep_alive()


@dataclass(slots=True)
class _Host:
    """What is kept of one scheme, name and port."""

    idle: list[_Connection]
    breaker: Breaker
    open: int = 0


class _Reply:
    """Implements `wrapper.ports.UpstreamReply`."""

    __slots__ = ("_connection", "_host", "_pool", "_whole", "headers", "status")

    def __init__(self, pool: "UpstreamPool", host: _Host, connection: _Connection) -> None:
        self._pool = pool
        self._host = host
        self._connection: _Connection | None = connection
        self.status = connection.status
        self.headers: Headers = connection.headers
        self._whole = connection.take_whole()
        if self._whole is not None:
            self.close()

    @property
    def whole(self) -> bytes | None:
        return self._whole

    async def body(self) -> AsyncIterator[bytes]:
        if self._whole is not None:
            yield self._whole
            return
        if self._connection is None:
            return
        async for piece in self._connection.pieces():
            yield piece
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(self._host, connection)


class UpstreamPool:
    """Implements `wrapper.ports.Upstream`."""

    def __init__(
        self,
        policy: EgressPolicy,
        clock: Clock,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._system = SystemResolver()
        self._resolver = resolver or self._system
        self._tls = tls
        self._hosts: dict[tuple[str, str, int], _Host] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    async def send(self, request: UpstreamRequest) -> UpstreamReply:
        target = request.target
        host = self._host(target)
        head = _head(request)
        is_head = request.method == "HEAD"
        small = isinstance(request.body, bytes)
        first = head + request.body if isinstance(request.body, bytes) else head
        while True:
            connection = self._kept(host)
            fresh = connection is None
            if connection is None:
                connection = await self._dial(target, host)
            try:
                connection.begin(first, is_head=is_head, timeout_s=request.timeout_s)
                if small:
                    await connection.head()
                else:
                    await self._send_streamed(connection, request)
            except (_Stale, UpstreamFailed) as error:
                untouched = not connection.received
                self.give_back(host, connection)
                if untouched and not fresh and small and not request.body:
                    continue  # a kept connection that was just being closed
                if isinstance(error, UpstreamFailed):
                    raise
                raise _failed("it closed the connection") from None
            except BaseException:
                connection.close()
                self.give_back(host, connection)
                raise
            return _Reply(self, host, connection)

    def give_back(self, host: _Host, connection: _Connection) -> None:
        """Take a connection back: to be kept, or to be forgotten."""
        if connection.end():
            host.idle.append(connection)
            if self._sweeper is None:
                loop = asyncio.get_running_loop()
                self._sweeper = loop.call_later(_SWEEP_S, self._sweep)
        else:
            host.open -= 1

    async def aclose(self) -> None:
        """Close every idle connection."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for host in self._hosts.values():
            for connection in host.idle:
                connection.close()
            host.idle.clear()
        self._system.close()

    def _host(self, target: Target) -> _Host:
        key = (target.scheme, target.host, target.port)
        host = self._hosts.get(key)
        if host is None:
            host = self._hosts[key] = _Host([], Breaker(self._clock))
        return host

    def _kept(self, host: _Host) -> _Connection | None:
        now = asyncio.get_running_loop().time()
        while host.idle:
            connection = host.idle.pop()
            if connection.is_open and now - connection.made_s < AGE_MAX_S:
                return connection
            connection.close()
            host.open -= 1
        return None

    async def _dial(self, target: Target, host: _Host) -> _Connection:
        if host.open >= CONNECTIONS_MAX:
            raise _failed("too many requests to it are under way")
        if not host.breaker.lets_through():
            raise _failed("it is left alone after failures")
        host.open += 1
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await self._connect(target)
        except BaseException as error:
            host.open -= 1
            if isinstance(error, TimeoutError | OSError | EgressError | ssl.SSLError):
                host.breaker.failed()
                raise _failed(f"it cannot be reached: {error!r}") from error
            raise
        host.breaker.succeeded()
        return connection

    async def _connect(self, target: Target) -> _Connection:
        """To the first judged address that answers."""
        loop = asyncio.get_running_loop()
        addresses = await judged_addresses(target.host, target.port, self._policy, self._resolver)
        tls = self._context() if target.scheme == "https" else None
        problem: OSError | None = None
        for address in addresses[:3]:
            try:
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop),
                    address,
                    target.port,
                    ssl=tls,
                    server_hostname=target.host if tls else None,
                )
            except OSError as error:
                problem = error
            else:
                return connection
        raise problem or OSError("no address")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpcore2.default_ssl_context()
        return self._tls

    async def _send_streamed(self, connection: _Connection, request: UpstreamRequest) -> None:
        """Body and answer at once: an upstream may answer before it has read everything."""
        loop = asyncio.get_running_loop()
        pump = loop.create_task(_pump(connection, request))
        answer = loop.create_task(connection.head())
        try:
            await asyncio.wait({pump, answer}, return_when=asyncio.FIRST_COMPLETED)
            if pump.done():
                pump.result()
            await answer
        finally:
            for task in (pump, answer):
                task.cancel()
            await asyncio.wait({pump, answer})
            if pump.cancelled() or pump.exception() is not None:
                connection.stop_keeping()  # half a request went out on it

    def _sweep(self) -> None:
        """Close what has been idle for too long."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - KEEP_ALIVE_S
        left = False
        for host in self._hosts.values():
            while host.idle and host.idle[0].idle_since_s < oldest:
                host.idle.pop(0).close()
                host.open -= 1
            left = left or bool(host.idle)
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep) if left else None


async def _pump(connection: _Connection, request: UpstreamRequest) -> None:
    if isinstance(request.body, bytes):
        return
    chunked = request.content_length is None
    async for piece in request.body:
        if piece:
            await connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
    if chunked:
        await connection.write(b"0\r\n\r\n")


def _head(request: UpstreamRequest) -> bytes:
    """The request line, Host, the given headers and our own framing."""
    lines = [
        b"%b %b HTTP/1.1\r\nhost: %b\r\n"
        % (request.method.encode(), request.path_and_query, request.target.authority.encode())
    ]
    lines.extend([b"%b: %b\r\n" % header for header in request.headers])
    if not isinstance(request.body, bytes):
        length = request.content_length
        lines.append(
            b"transfer-encoding: chunked\r\n"
            if length is None
            else b"content-length: %d\r\n" % length
        )
    elif request.body or request.method in {"POST", "PUT", "PATCH"}:
        lines.append(b"content-length: %d\r\n" % len(request.body))
    lines.append(b"\r\n")
    return b"".join(lines)


def _failed(detail: str) -> UpstreamFailed:
    return UpstreamFailed("The upstream failed or gave no valid answer.", detail=detail)
