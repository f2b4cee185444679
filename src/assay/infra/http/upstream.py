"""The guarded way to operators' upstreams: a small keep-alive client on httptools.

It judges every address a name resolves to and dials what was judged, passes bodies on in both
directions as they come, and holds no more than a bound of either. General clients cost ten times
the processor time of the whole hop (facts, performance).
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpcore2

from assay.egress.ports import EgressError
from assay.egress.url import EgressPolicy, Target
from assay.infra.http.breaker import Breaker
from assay.infra.http.dial import judged_addresses
from assay.infra.http.resolver import Resolver, SystemResolver
from assay.infra.http.upstream_connection import Connection, Stale, failed
from assay.kit.clock import Clock
from assay.payments.model import Headers
from assay.wrapper.model import UpstreamFailed
from assay.wrapper.ports import Exchange, ReplySink, UpstreamReply, UpstreamRequest

CONNECT_S = 5.0
KEEP_ALIVE_S = 4.0
"""Idle time before a connection is closed: below the 5 s of Node's servers."""

AGE_MAX_S = 60.0
"""A name is resolved and judged again at least this often."""

CONNECTIONS_MAX = 512
"""At once to one upstream; beyond it a request is refused rather than queued."""

_SWEEP_S = 1.0


@dataclass(slots=True)
class _Host:
    """What is kept of one scheme, name and port."""

    idle: list[Connection]
    breaker: Breaker
    open: int = 0


class _Reply:
    """Implements `wrapper.ports.UpstreamReply`."""

    __slots__ = ("_connection", "_host", "_pool", "_whole", "headers", "status")

    def __init__(self, pool: "UpstreamPool", host: _Host, connection: Connection) -> None:
        self._pool = pool
        self._host = host
        self._connection: Connection | None = connection
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


class _Exchange:
    """Implements `wrapper.ports.Exchange`; gives its connection back when the answer is over."""

    __slots__ = ("_connection", "_host", "_pool", "_sink", "flush", "on_head", "on_piece")

    def __init__(
        self, pool: "UpstreamPool", host: _Host, connection: Connection, sink: ReplySink
    ) -> None:
        self._pool = pool
        self._host = host
        self._connection: Connection | None = connection
        self._sink = sink
        self.on_head = sink.on_head
        self.on_piece = sink.on_piece
        self.flush = sink.flush

    def on_end(self) -> None:
        self._give_back()
        self._sink.on_end()

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        self._give_back()
        self._sink.on_failure(error, untouched=untouched)

    def pause(self) -> None:
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        if self._connection is not None:
            self._connection.resume()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.stop_keeping()
            self._give_back()

    def _give_back(self) -> None:
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
            except (Stale, UpstreamFailed) as error:
                untouched = connection.was_stale or isinstance(error, Stale)
                self.give_back(host, connection)
                if untouched and not fresh and small and not request.body:
                    continue  # a kept connection that was just being closed
                if isinstance(error, UpstreamFailed):
                    raise
                raise failed("it closed the connection") from None
            except BaseException:
                connection.close()
                self.give_back(host, connection)
                raise
            return _Reply(self, host, connection)

    def has_kept(self, target: Target) -> bool:
        host = self._hosts.get((target.scheme, target.host, target.port))
        if host is None:
            return False
        connection = self._kept(host)
        if connection is None:
            return False
        host.idle.append(connection)
        return True

    def begin(self, request: UpstreamRequest, sink: ReplySink) -> Exchange | None:
        host = self._host(request.target)
        connection = self._kept(host)
        if connection is None:
            return None
        under_way = _Exchange(self, host, connection, sink)
        try:
            connection.begin(
                _head(request),
                is_head=request.method == "HEAD",
                timeout_s=request.timeout_s,
                sink=under_way,
            )
        except Stale:
            self.give_back(host, connection)
            return None
        return under_way

    def give_back(self, host: _Host, connection: Connection) -> None:
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

    def _kept(self, host: _Host) -> Connection | None:
        now = asyncio.get_running_loop().time()
        while host.idle:
            connection = host.idle.pop()
            if connection.is_open and now - connection.made_s < AGE_MAX_S:
                return connection
            connection.close()
            host.open -= 1
        return None

    async def _dial(self, target: Target, host: _Host) -> Connection:
        if host.open >= CONNECTIONS_MAX:
            raise failed("too many requests to it are under way")
        if not host.breaker.lets_through():
            raise failed("it is left alone after failures")
        host.open += 1
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await self._connect(target)
        except BaseException as error:
            host.open -= 1
            if isinstance(error, TimeoutError | OSError | EgressError | ssl.SSLError):
                host.breaker.failed()
                raise failed(f"it cannot be reached: {error!r}") from error
            raise
        host.breaker.succeeded()
        return connection

    async def _connect(self, target: Target) -> Connection:
        """To the first judged address that answers."""
        loop = asyncio.get_running_loop()
        addresses = await judged_addresses(target.host, target.port, self._policy, self._resolver)
        tls = self._context() if target.scheme == "https" else None
        problem: OSError | None = None
        for address in addresses[:3]:
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(loop),
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

    async def _send_streamed(self, connection: Connection, request: UpstreamRequest) -> None:
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


async def _pump(connection: Connection, request: UpstreamRequest) -> None:
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
