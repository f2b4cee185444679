"""Upstreams over HTTP/1.1: a small keep-alive client on httptools.

It streams bodies in both directions and buffers only a bounded part of each. General clients cost
ten times the processor time of the whole hop (measurements.md#forwarding-requests).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from assay.common.circuit_breaker import Breaker
from assay.common.clock import Clock
from assay.common.tasks import WriteCoalescer
from assay.http1.connection import (
    ConnectionContext,
    SharedReads,
    StaleConnection,
    UpstreamConnection,
)
from assay.http1.host import (
    PreparedUpstream,
    StreamedResponse,
    UpstreamConnections,
    UpstreamHost,
    head_of,
    pump,
)
from assay.http1.model import (
    PreparedUpstreamRequest,
    Target,
    Upstream,
    UpstreamFailed,
    UpstreamRequest,
    UpstreamResponse,
    upstream_failed,
)

Connect: TypeAlias = Callable[
    [Target, str, Callable[[], UpstreamConnection]], Awaitable[UpstreamConnection]
]
"""Opens a connection to a target for an operator. It returns the protocol that the given function
makes, once it is connected and, over https, TLS is established. Raises `UpstreamFailed` if the
upstream cannot be reached, and `Unavailable` if this service had no capacity for the attempt."""

KEEP_ALIVE_S = 4.0
"""Idle time before a connection is closed: below the 5 s of Node's servers."""

HOSTS_MAX = 1024
"""Upstreams remembered (heads, breaker). Operators choose them, so they are bounded. Beyond it the
least recently used is forgotten, unless it has open connections: those are bounded elsewhere."""

FORGOTTEN_S = 60.0
"""An upstream without connections is forgotten when it has not been called for this long."""

_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""Methods that may be retried when a kept connection closed before the answer (RFC 9110, section
9.2.2)."""

_SWEEP_S = 1.0


class UpstreamPool:
    """A pool of keep-alive connections; implements `http1.model.Upstream`."""

    def __init__(
        self,
        connect: Connect,
        clock: Clock,
        connections: UpstreamConnections | None = None,
        *,
        has_breaker: bool = True,
    ) -> None:
        """Create a pool of the connections that `connect` opens; nothing is opened yet.

        `connect` must have put every address that it connects to through the egress guard: the pool
        reuses a connection for requests to the same scheme, name and port without another check.
        Pools that are given the same `connections` share that bound. Without a breaker an upstream
        is tried again however often it failed.
        """
        self._connections = connections or UpstreamConnections()
        self._connect = connect
        self._has_breaker = has_breaker
        self._clock = clock
        self._reads, self._outbox = SharedReads(), WriteCoalescer()
        self._hosts: OrderedDict[tuple[str, str, int], UpstreamHost] = OrderedDict()
        self._sweeper: asyncio.TimerHandle | None = None

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        host = self._host(request.target)
        first = head_of(request) + (request.body if isinstance(request.body, bytes) else b"")
        whole = isinstance(request.body, bytes)
        harmless = request.method in _IDEMPOTENT and not request.body
        again = whole and (request.repeatable or harmless)
        while True:
            connection = host.take(request.caller, request.account)
            fresh = connection is None
            if connection is None:
                connection = await self._dial(request, host)
            try:
                sending = await self._exchange(connection, request, first)
            except (StaleConnection, UpstreamFailed) as error:
                untouched = connection.was_stale or isinstance(error, StaleConnection)
                host.give_back(connection)
                if untouched and not fresh and again:
                    continue  # The kept connection was closing when the request was sent.
                if isinstance(error, UpstreamFailed):
                    raise
                raise upstream_failed("it closed the connection") from None
            except BaseException:
                connection.close()
                host.give_back(connection)
                raise
            return StreamedResponse(connection, host.give_back, sending)

    async def _exchange(
        self, connection: UpstreamConnection, request: UpstreamRequest, first: bytes
    ) -> "asyncio.Task[None] | None":
        """Send a request and wait for the response head.

        Return the upload task if it still runs.
        """
        is_head = request.method == "HEAD"
        connection.begin(first, is_head, request.timeout_s)
        if not isinstance(request.body, bytes):
            return await _send_streamed(connection, request)
        await connection.head()
        return None

    def prepare(self, request: UpstreamRequest) -> PreparedUpstreamRequest:
        return PreparedUpstream(self._host, request)

    async def aclose(self) -> None:
        """Close every idle connection."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for host in self._hosts.values():
            while host.idle:
                host.close_oldest()

    def _host(self, target: Target) -> UpstreamHost:
        key = (target.scheme, target.host, target.port)
        host = self._hosts.get(key)
        if host is None:
            shared = ConnectionContext(self._reads, self._outbox)
            breaker = Breaker(self._clock)
            host = UpstreamHost([], breaker, self._sweep_later, shared, self._connections)
            self._hosts[key] = host
            self._sweep_later()
            self._make_room()
        else:
            self._hosts.move_to_end(key)
        host.used_s = asyncio.get_running_loop().time()
        return host

    def _make_room(self) -> None:
        """Forget upstreams without connections, the least recently used first."""
        if len(self._hosts) <= HOSTS_MAX:
            return
        newest = next(reversed(self._hosts))
        unused = (key for key, host in self._hosts.items() if not host.open and key != newest)
        key = next(unused, None)
        if key is not None:
            self._forget(key)

    def _forget(self, key: tuple[str, str, int]) -> None:
        self._hosts.pop(key).is_forgotten = True

    async def _dial(self, request: UpstreamRequest, host: UpstreamHost) -> UpstreamConnection:
        """Open a new connection for a call that is already counted."""
        if self._has_breaker and not host.breaker.lets_through():
            host.shares.give_back(request.caller, request.account)
            raise upstream_failed("it is left alone after failures")
        host.count_one()
        loop = asyncio.get_running_loop()
        try:
            connection = await self._connect(
                request.target, request.account, lambda: UpstreamConnection(loop, host.shared)
            )
        except BaseException as error:
            host.forget_one()
            host.shares.give_back(request.caller, request.account)
            if isinstance(error, UpstreamFailed):
                host.breaker.failed()
            raise
        host.breaker.succeeded()
        connection.caller, connection.operator_id = request.caller, request.account
        return connection

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """Close connections that were idle for too long, and forget unused upstreams."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for key, host in list(self._hosts.items()):
            while host.idle and host.idle[0].idle_since_s < now - KEEP_ALIVE_S:
                host.close_oldest()
            if not host.open and host.used_s < now - FORGOTTEN_S:
                self._forget(key)
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep) if self._hosts else None


class UpstreamsByOperator:
    """Chooses between two pools by operator; implements `http1.model.Upstream`.

    A kept connection to an opened address is found by its host name. So named operators have a pool
    of their own: a request of another operator for the same name is never sent on its connections.
    """

    def __init__(self, everybody: Upstream, named: Upstream, operators: AbstractSet[str]) -> None:
        self._everybody = everybody
        self._named = named
        self._operators = operators

    def prepare(self, request: UpstreamRequest) -> PreparedUpstreamRequest:
        return self._of(request).prepare(request)

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        return await self._of(request).send(request)

    def _of(self, request: UpstreamRequest) -> Upstream:
        return self._named if request.account in self._operators else self._everybody


async def _send_streamed(
    connection: UpstreamConnection, request: UpstreamRequest
) -> "asyncio.Task[None] | None":
    """Send a streamed body while waiting for the response head.

    An upstream may answer before, or while, it reads the body.
    """
    loop = asyncio.get_running_loop()
    sending = loop.create_task(pump(connection, request))
    answer = loop.create_task(connection.head())
    try:
        await asyncio.wait({sending, answer}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
        await answer
    except BaseException:
        connection.stop_keeping()  # Part of the request may have been sent on this connection.
        for task in (sending, answer):
            task.cancel()
        await asyncio.wait({sending, answer})
        raise
    return None if sending.done() else sending
