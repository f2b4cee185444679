"""One upstream: its requests in progress, its connections, its breaker, and its callers.

A request in progress and its answer: read as a stream, or delivered to a sink.

The state of one upstream: its connections, its breaker, and the callers of its open calls.

Addresses, accounts and agents cost little, so a fixed share per caller could be used up by enough
of them. A caller's share is therefore a part of the calls that are still free, and the last caller
still gets some.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from assay.common.circuit_breaker import Breaker
from assay.common.errors import ServiceError, Unavailable
from assay.common.http_heads import HeaderPairs
from assay.http1.connection import ConnectionContext, StaleConnection, UpstreamConnection
from assay.http1.model import (
    Caller,
    ReservedExchange,
    ResponseSink,
    Target,
    UpstreamBusy,
    UpstreamFailed,
    UpstreamRequest,
    upstream_failed,
)


class StreamedResponse:
    """Streams an answer and releases its connection at the end.

    Implements `http1.model.UpstreamResponse`.
    """

    __slots__ = ("_connection", "_give_back", "_sending", "_whole", "headers", "status")

    def __init__(
        self,
        connection: UpstreamConnection,
        give_back: Callable[[UpstreamConnection], None],
        sending: "asyncio.Task[None] | None" = None,
    ) -> None:
        """Create the response; `sending` is the upload still in progress.

        The upload ends with the answer: an upstream that answers before it has the whole body may
        never read the rest, nor a request that follows it.
        """
        self._give_back = give_back
        self._sending = sending
        if sending is not None:
            sending.add_done_callback(self._sent)
            if not sending.done():
                connection.stop_keeping()
        self._connection: UpstreamConnection | None = connection
        self.status = connection.status
        self.headers: HeaderPairs = connection.headers
        self._whole = connection.take_whole()
        if self._whole is not None:
            self.close()

    @property
    def whole(self) -> bytes | None:
        return self._whole

    async def body(self) -> AsyncGenerator[bytes]:
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
        if connection is None:
            return
        if self._sending is not None and not self._sending.done():
            self._sending.cancel()
        self._give_back(connection)

    def _sent(self, sending: "asyncio.Task[None]") -> None:
        """Abort the connection if the upload failed: the upstream must not see it as complete."""
        if not sending.cancelled() and sending.exception() is not None and self._connection:
            self._connection.close()


class EncodedRequestHead(NamedTuple):
    """The head of a request without a body, up to but excluding the final empty line."""

    lines: bytes
    is_head: bool
    timeout_s: float


class SinkExchange:
    """Delivers an answer to a sink and releases its connection at the end.

    Implements `http1.model.ReservedExchange`.
    """

    __slots__ = (
        "_connection", "_give_back", "_is_over", "_request", "_sink",
        "flush", "on_head", "on_piece",
    )  # fmt: skip

    def __init__(
        self,
        connection: UpstreamConnection,
        request: EncodedRequestHead,
        sink: ResponseSink,
        give_back: Callable[[UpstreamConnection], None],
    ) -> None:
        self._connection = connection
        self._is_over = False
        self._request = request
        self._give_back = give_back
        self._sink = sink
        self.on_head = sink.on_head
        self.on_piece = sink.on_piece
        self.flush = sink.flush

    def begin(self, more: bytes) -> bool:
        lines, is_head, timeout_s = self._request
        if self._is_over:
            return False
        try:
            self._connection.begin(b"%b%b\r\n" % (lines, more), is_head, timeout_s, self)
        except StaleConnection:
            self._end()
            return False
        return True

    def release(self) -> None:
        self._end()

    def on_end(self) -> None:
        self._end()
        self._sink.on_end()

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        self._end()
        self._sink.on_failure(error, untouched=untouched)

    def pause(self) -> None:
        if not self._is_over:
            self._connection.pause()

    def resume(self) -> None:
        if not self._is_over:
            self._connection.resume()

    def keep_piece(self) -> None:
        # Also at the end, when the connection may already serve another exchange.
        self._connection.keep_piece()

    def abort(self) -> None:
        if not self._is_over:
            self._connection.stop_keeping()
            self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._give_back(self._connection)


async def pump(connection: UpstreamConnection, request: UpstreamRequest) -> None:
    """Send a body in pieces as they arrive."""
    if isinstance(request.body, bytes):
        return
    chunked = request.content_length is None
    connection.waits_for_caller = True  # The reader of the body bounds its time.
    try:
        async for piece in request.body:
            connection.waits_for_caller = False
            if piece:
                await connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            connection.waits_for_caller = True
    finally:
        connection.waits_for_caller = False
    if chunked:
        await connection.write(b"0\r\n\r\n")


def head_of(request: UpstreamRequest) -> bytes:
    """Return the request line, Host, the given headers and our own framing."""
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


AGE_MAX_S = 60.0
"""A name is resolved again, and its addresses checked, at least this often."""

OPEN_MAX: Final = 2000
"""The default of `ASSAY_CONNECTIONS_MAX`. A caller's connection has one call in progress, so with
as many files for upstreams (`cli/unsafe_connections.py`) every caller can be served at once."""

CALLS_MAX: Final = 1024
"""Concurrent calls to one upstream from one process."""

UNPAID_CALLS_MAX: Final = 768
"""The largest number of unpaid calls among them; a quarter is reserved for paid calls.

A caller gets at most half as many as are free, a network as many, an operator twice as many. If
nobody else calls, that is 256, 384 and 512. Source: dynamic thresholds (Choudhury and Hahne, 1998).
"""

_RETRY_S: Final = 1
"""Seconds after which to retry: how long the open calls will take is unknown."""

_END = b"\r\n"


class UpstreamShares:
    """Counts the open calls to one upstream by caller, network and operator.

    Fast-path calls use it too, so it allocates nothing and never waits.
    """

    __slots__ = ("_find", "_open_calls", "calls")

    def __init__(self) -> None:
        self._open_calls: dict[str, int] = {}
        self._find = self._open_calls.get
        self.calls = 0
        """Calls in progress."""

    def take(self, caller: Caller | None, operator_id: str) -> bool:
        """Count a call if caller and operator are within their shares; return whether it was.

        Without a caller it is a call of this service itself.
        """
        if caller is None:
            is_free = self._free(caller) > 0
            self.calls += is_free
            return is_free
        find, open_calls, calls = self._find, self._open_calls, self.calls
        own_key, group_key = caller.own, caller.group
        own, group, operator = find(own_key, 0), find(group_key, 0), find(operator_id, 0)
        # Below this number, no caller can have more than its share.
        if calls >= UNPAID_CALLS_MAX // 4:
            free = self._free(caller)
            if own * 2 >= free or group >= free or operator >= free * 2:
                return False
        open_calls[own_key], open_calls[group_key], open_calls[operator_id] = (
            own + 1,
            group + 1,
            operator + 1,
        )
        self.calls = calls + 1
        return True

    def give_back(self, caller: Caller | None, operator_id: str) -> None:
        """Stop counting a call that has ended."""
        self.calls -= 1
        if caller is None:
            return
        open_calls = self._open_calls
        for key in (caller.own, caller.group, operator_id):
            count = open_calls[key]
            if count == 1:
                del open_calls[key]
            else:
                open_calls[key] = count - 1

    def refusal(self, caller: Caller | None, operator_id: str) -> ServiceError:
        """Return why `take` just refused. The upstream is not at fault."""
        free = self._free(caller)
        if caller is None:
            return upstream_failed("too many requests to it are under way")
        if free > 0:
            own, group = self._open_calls.get(caller.own, 0), self._open_calls.get(caller.group, 0)
            if own * 2 >= free or group >= free:
                who = "You have" if own * 2 >= free else "Callers of your network have"
                return UpstreamBusy(
                    f"{who} as many calls of this upstream under way as are allowed now: "
                    "try again when one has ended.",
                    retry_after_s=_RETRY_S,
                )
            if self._open_calls.get(operator_id, 0) >= free * 2:
                return _unavailable("Too many calls of this operator's wrappers are under way.")
        return _unavailable("Too many calls of this wrapper's upstream are under way.")

    def _free(self, caller: Caller | None) -> int:
        may = CALLS_MAX if caller is None or caller.is_paid else UNPAID_CALLS_MAX
        return may - self.calls


def _unavailable(message: str) -> Unavailable:
    return Unavailable(message, retry_after_s=_RETRY_S)


class UpstreamConnections:
    """Bounds the connections to all upstreams by closing those that were idle for longest.

    Calls in progress are bounded elsewhere and never refused here.
    """

    def __init__(self, open_max: int = OPEN_MAX) -> None:
        self._open_max = open_max
        self._idle: OrderedDict[UpstreamConnection, UpstreamHost] = OrderedDict()
        self.open = 0
        """Connections being opened, in use and idle."""

    def add(self) -> None:
        """Count a connection being opened, and close idle ones to make room for it."""
        self.open += 1
        self._make_room()

    def remove(self) -> None:
        """Stop counting a connection that has closed or was never opened."""
        self.open -= 1

    def keep(self, connection: UpstreamConnection, host: "UpstreamHost") -> None:
        """Keep a connection that became idle open if the bound allows it."""
        self._idle[connection] = host
        self._make_room()

    def take(self, connection: UpstreamConnection) -> None:
        """Take a connection out of the idle ones."""
        del self._idle[connection]

    def _make_room(self) -> None:
        while self.open > self._open_max and self._idle:
            self._idle[next(iter(self._idle))].close_oldest()


@dataclass(slots=True)
class UpstreamHost:
    """The state of one scheme, name and port."""

    idle: list[UpstreamConnection]
    breaker: Breaker
    sweep: Callable[[], None]
    shared: ConnectionContext
    all: UpstreamConnections
    """The connections to every upstream."""
    open: int = 0
    used_s: float = 0.0
    is_forgotten: bool = False
    """Whether the pool has forgotten this host; a holder must ask the pool for a new one."""
    shares: UpstreamShares = field(default_factory=UpstreamShares)

    def take(self, caller: Caller | None, operator_id: str) -> UpstreamConnection | None:
        """Count a call and return a kept connection for it; None if one must be opened.

        Raises `UpstreamBusy` and `Unavailable` if the call may not be made now.
        """
        if not self.shares.take(caller, operator_id):
            raise self.shares.refusal(caller, operator_id)
        connection = self._kept()
        if connection is not None:
            connection.caller, connection.operator_id = caller, operator_id
        return connection

    def take_kept(self, caller: Caller, operator_id: str) -> UpstreamConnection | None:
        """Count a call and return a kept connection.

        If there is none, count nothing, return None.
        """
        if not self.idle or not self.shares.take(caller, operator_id):
            return None
        connection = self._kept()
        if connection is None:
            self.shares.give_back(caller, operator_id)
        else:
            connection.caller, connection.operator_id = caller, operator_id
        return connection

    def give_back(self, connection: UpstreamConnection) -> None:
        """End a call, and keep its connection or forget it."""
        self.shares.give_back(connection.caller, connection.operator_id)
        if connection.end():
            self.idle.append(connection)
            self.all.keep(connection, self)
            self.sweep()
        else:
            self.forget_one()

    def count_one(self) -> None:
        """Count a connection that is being opened."""
        self.open += 1
        self.all.add()

    def forget_one(self) -> None:
        """Stop counting a connection; with the last one, clear the cached response heads."""
        self.open -= 1
        self.all.remove()
        if not self.open:
            self.shared.heads.forget()

    def close_oldest(self) -> None:
        """Close the connection that has been idle for longest."""
        self._close(self.idle.pop(0))

    def _kept(self) -> UpstreamConnection | None:
        """Return an idle connection that is still open, or None."""
        self.used_s = now = asyncio.get_running_loop().time()
        while self.idle:
            connection = self.idle.pop()
            if connection.is_open and now - connection.made_s < AGE_MAX_S:
                self.all.take(connection)
                return connection
            self._close(connection)
        return None

    def _close(self, idle: UpstreamConnection) -> None:
        self.all.take(idle)
        idle.close()
        self.forget_one()


class PreparedUpstream:
    """A prepared request to one host; implements `http1.model.PreparedUpstreamRequest`."""

    __slots__ = ("_find", "_host", "_operator_id", "_request", "_target")

    def __init__(self, find: Callable[[Target], UpstreamHost], request: UpstreamRequest) -> None:
        lines = head_of(request)[: -len(_END)]
        self._find, self._target = find, request.target
        self._operator_id = request.account
        self._host = find(request.target)
        self._request = EncodedRequestHead(lines, request.method == "HEAD", request.timeout_s)

    def reserve(self, sink: ResponseSink, caller: Caller) -> ReservedExchange | None:
        if self._host.is_forgotten:
            self._host = self._find(self._target)
        connection = self._host.take_kept(caller, self._operator_id)
        if connection is None:
            return None
        return SinkExchange(connection, self._request, sink, self._host.give_back)
