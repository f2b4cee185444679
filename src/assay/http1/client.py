"""The guarded way to operators' upstreams: a small keep-alive client on httptools.

It judges every address a name resolves to and dials what was judged, passes bodies on in both
directions as they come, and holds no more than a bound of either. General clients cost ten times
the processor time of the whole hop (measurements.md#forwarding-requests).
"""

import asyncio
import ssl
from collections import OrderedDict

import httpcore2

from assay.common.circuit_breaker import Breaker
from assay.common.clock import Clock
from assay.common.egress_budget import EgressUse, egress_use
from assay.common.errors import Unavailable
from assay.common.write_coalescer import WriteCoalescer
from assay.http1.connection import Connection, ConnectionContext, StaleConnection, failed
from assay.http1.exchange import StreamedResponse, head_of, pump
from assay.http1.host import PreparedUpstream, UpstreamConnections, UpstreamHost
from assay.http1.model import (
    PreparedUpstreamRequest,
    UpstreamFailed,
    UpstreamRequest,
    UpstreamResponse,
)
from assay.http1.shared_reads import SharedReads
from assay.http1.sockets import connected_socket
from assay.net.egress.dial import judged_addresses
from assay.net.egress.host_timeout import host_timeout
from assay.net.egress.ports import EgressError, Failure
from assay.net.egress.request_slots import SlotShare
from assay.net.egress.url import EgressPolicy, Target
from assay.net.resolver import LOOKUPS_MAX, NameResolver, SystemResolver

CONNECT_S = 5.0
KEEP_ALIVE_S = 4.0
"""Idle time before a connection is closed: below the 5 s of Node's servers."""

HOSTS_MAX = 1024
"""Upstreams remembered (heads, breaker); operators choose them, so they are bounded. Beyond it the
one unused for longest is forgotten, unless it has open connections: those are bounded elsewhere."""

FORGOTTEN_S = 60.0
"""An upstream without connections that nobody called for so long is forgotten."""

_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""What may be sent again when a kept connection closed under it (RFC 9110, section 9.2.2)."""

_SWEEP_S = 1.0


class UpstreamPool:
    """Implements `http1.model.Upstream`."""

    def __init__(
        self,
        policy: EgressPolicy | None,
        clock: Clock,
        resolver: NameResolver | None = None,
        tls: ssl.SSLContext | None = None,
        connections: UpstreamConnections | None = None,
    ) -> None:
        """Without a `policy` for configured addresses: nobody is judged or left alone.

        Pools that are given the same `connections` have them together.
        """
        self._connections = connections or UpstreamConnections()
        self._policy = policy
        self._clock = clock
        # No gate asks here, so nothing is kept for one.
        shares = SlotShare(LOOKUPS_MAX, LOOKUPS_MAX) if policy else None
        self._system = SystemResolver(shares)
        self._reads, self._outbox = SharedReads(), WriteCoalescer()
        self._resolver = resolver or self._system
        self._tls = tls
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
                    continue  # a kept connection that was just being closed
                if isinstance(error, UpstreamFailed):
                    raise
                raise failed("it closed the connection") from None
            except BaseException:
                connection.close()
                host.give_back(connection)
                raise
            return StreamedResponse(connection, host.give_back, sending)

    async def _exchange(
        self, connection: Connection, request: UpstreamRequest, first: bytes
    ) -> "asyncio.Task[None] | None":
        """Returns when the head of the answer is there, with the upload where it still goes on."""
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
        self._system.close()

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
        """Forget upstreams without connections, the one unused for longest first."""
        if len(self._hosts) <= HOSTS_MAX:
            return
        newest = next(reversed(self._hosts))
        unused = (key for key, host in self._hosts.items() if not host.open and key != newest)
        key = next(unused, None)
        if key is not None:
            self._forget(key)

    def _forget(self, key: tuple[str, str, int]) -> None:
        self._hosts.pop(key).is_forgotten = True

    async def _dial(self, request: UpstreamRequest, host: UpstreamHost) -> Connection:
        """A new connection, for a call that is counted already."""
        if self._policy is not None and not host.breaker.lets_through():
            host.shares.give_back(request.caller, request.account)
            raise failed("it is left alone after failures")
        host.count_one()
        try:
            with egress_use(EgressUse(account=request.account)):
                async with host_timeout(CONNECT_S):
                    connection = await self._connect(request.target, host)
        except BaseException as error:
            host.forget_one()
            host.shares.give_back(request.caller, request.account)
            if isinstance(error, EgressError) and error.failure is Failure.BUDGET:
                # It waited for us in vain, which says nothing about its upstream.
                raise Unavailable("Many names are being looked up.", retry_after_s=1) from error
            if isinstance(error, TimeoutError | OSError | EgressError | ssl.SSLError):
                host.breaker.failed()
                raise failed(f"it cannot be reached: {error!r}") from error
            raise
        host.breaker.succeeded()
        connection.caller, connection.operator_id = request.caller, request.account
        return connection

    async def _connect(self, target: Target, host: UpstreamHost) -> Connection:
        """To the first judged address that answers."""
        loop = asyncio.get_running_loop()
        addresses = await judged_addresses(
            target.host, target.port, self._policy, self._resolver, target.scheme
        )
        tls = self._context() if target.scheme == "https" else None
        problem: OSError | None = None
        for address in addresses[:3]:
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(loop, host.shared),
                    sock=await connected_socket(address, target.port),
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

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """Close what has been idle for too long, and forget upstreams that nobody calls."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for key, host in list(self._hosts.items()):
            while host.idle and host.idle[0].idle_since_s < now - KEEP_ALIVE_S:
                host.close_oldest()
            if not host.open and host.used_s < now - FORGOTTEN_S:
                self._forget(key)
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep) if self._hosts else None


async def _send_streamed(
    connection: Connection, request: UpstreamRequest
) -> "asyncio.Task[None] | None":
    """Body and answer at once: an upstream may answer before, or while, it reads the body."""
    loop = asyncio.get_running_loop()
    sending = loop.create_task(pump(connection, request))
    answer = loop.create_task(connection.head())
    try:
        await asyncio.wait({sending, answer}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
        await answer
    except BaseException:
        connection.stop_keeping()  # half a request may have gone out on it
        for task in (sending, answer):
            task.cancel()
        await asyncio.wait({sending, answer})
        raise
    return None if sending.done() else sending
