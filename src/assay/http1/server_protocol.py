"""The HTTP/1.1 server protocol: strict requests, one at a time, within bounds; fast paths.

Response cycles for callers without chunked coding, and for requests with an unread body.

It subclasses the server's own protocol with another parser (`http1/request_parser.py`), and adds
bounds that the server lacks. They cover heads that are endless in size or time, callers that never
read or that leave with pipelined requests, callers of HTTP/1.0, and callers with too many
connections.
"""

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, Self, TypeVar, cast

from httptools import HttpParserError
from typing_extensions import override
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from assay.common.errors import InvalidRequest, ServiceError, Unavailable
from assay.http1.connections import (
    ALWAYS_ANSWERED,
    ConnectionBounds,
    Connections,
    TooManyConnections,
)
from assay.http1.request_parser import RequestParser

CLOSE = (b"connection", b"close")


class UnchunkedCycle(RequestResponseCycle):
    """Answers an HTTP/1.0 caller, which does not support chunked coding.

    A body without a length ends with the connection (RFC 9112, section 6.3).
    """

    _is_open_ended = False

    @override
    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            self._is_open_ended = b"content-length" not in names
            if self._is_open_ended:
                self.chunked_encoding, self.expected_content_length = False, sys.maxsize
        elif self._is_open_ended and not message.get("more_body", False):
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class EarlyCycle(RequestResponseCycle):
    """Answers a caller whose body may still be arriving.

    If part of the body will not be read, the answer announces the end of the connection: a proxy
    that has written the body to its socket would send the next request, from any caller, after it.
    """

    is_left_unread: Callable[[], bool]

    @override
    async def send(self, message: Any) -> None:
        is_early = message["type"] == "http.response.start" and self.more_body
        if not is_early or not self.keep_alive or not self.is_left_unread():
            await super().send(message)
            return
        ending: Any = {**message, "headers": [*message["headers"], CLOSE]}
        await super().send(ending)
        # If it were closed at once, it would be reset before the caller reads the answer.
        self.keep_alive = True


class ExpectingCycle(EarlyCycle):
    """Answers a caller that waits for `100 Continue` before it sends its body.

    If it is answered without that, it may send its body or its next request. The connection ends,
    so that neither is taken for the other. Source: RFC 9110, section 10.1.1.
    """

    @override
    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and self.waiting_for_100_continue:
            self.keep_alive = self.keep_alive and not self.more_body
        await super().send(message)


_UNREAD_BYTES: Final = 64 * 1024

_RETRY_S: Final = 5
"""Seconds after which a caller beyond a connection cap may try again."""

_STALLED_BYTES: Final = 1024 * 1024
"""Bytes an upstream may have sent beyond what a caller that stopped reading received: the receive
buffer of its connection, and what is buffered here until the caller reads."""

_BEGUN_BYTES: Final = 16 * 1024
"""The same if no part of the answer was flowing when the caller left: what a server sends before it
learns of the disconnect. Source: RFC 6928, ten segments."""

_LEAVING_S: Final = 0.05
"""Seconds between two looks at the connections of a server that leaves."""

_INT: Final = struct.Struct("i")


class Reject(Protocol):
    """Writes a refusal as a complete answer, after which the connection ends."""

    def __call__(self, error: ServiceError, *, is_head: bool) -> bytes:
        """Return the answer; for a HEAD request, only its head."""
        ...


class FastCall(Protocol):
    """A request answered by a fast path in place of the server's cycle, without the application."""

    is_waiting: bool
    """Whether part of its answer is buffered until the end of the turn."""
    response_complete: bool

    def send(self) -> None:
        """Write what is buffered."""
        ...

    def pause(self) -> None:
        """Stop writing until `resume`: the caller reads too slowly."""
        ...

    def resume(self) -> None:
        """Continue writing."""
        ...


C = TypeVar("C", bound=FastCall)


class _PausableFlow(FlowControl):
    """The server's flow control, which leaves reading paused where the protocol paused it."""

    is_paused = False

    @override
    def resume_reading(self) -> None:
        if not self.is_paused:
            super().resume_reading()


class ServerProtocol(HttpToolsProtocol, Generic[C]):
    """Uvicorn's protocol with a strict parser and bounds; a subclass may add fast paths.

    A request is parsed when the one before it has been answered: what comes earlier waits as bytes,
    so that a refusal is never taken for the answer to another request.
    """

    _bounds: ConnectionBounds
    _all_connections: Connections
    _reject: Reject
    requests: RequestParser
    _flow: _PausableFlow
    fast: C | None = None
    """The last call handled by a fast path."""
    running: Any = None
    """The cycle being answered; the server's own `cycle` is the one that arrived last."""
    _ahead = b""
    is_admitted = True
    """Whether the connection is within the caps."""
    is_leaving = False
    """Whether each connection ends with its next answer."""
    _goes_on = False
    """Whether the parser is called again at the next turn."""
    _is_lingering = False
    """Whether a request was answered before its whole body arrived."""
    _late_bytes = 0
    """Bytes of a body that arrived after its request was answered, or after the last request."""
    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_since_s = 0.0

    @classmethod
    def configured(
        cls, bounds: ConnectionBounds, connections: Connections, reject: Reject, **own: object
    ) -> "type[Self]":
        """Return a protocol class for one server, with these values and the subclass's `own`."""
        common = {
            "_bounds": bounds,
            "_all_connections": connections,
            "_reject": staticmethod(reject),
        }
        made = type("Protocol", (cls,), common | own)
        return cast("type[Self]", made)  # The type checker ignores the bases given to `type`.

    @classmethod
    async def leave(cls) -> None:
        """Let each connection of this server end with the answer to its next request.

        That answer says so, hence no caller sends a request to a connection that is closed under
        it. Connections without a request stay open for as long as they would otherwise. Returns
        once there is no connection.
        """
        cls.is_leaving = True
        while cls._all_connections.held:  # noqa: ASYNC110 - wanted by nobody else
            await asyncio.sleep(_LEAVING_S)

    # -- fast paths, which a subclass implements ------------------------------------------------

    def begin_repeated(self, data: bytes) -> bool:
        """Answer a request with exactly these bytes if it is cached; return whether it was."""
        del data
        return False

    def begin_fast(self) -> bool:
        """Answer the request whose head was parsed if a fast path can; return whether it did."""
        return False

    def remember(self, data: bytes, call: C) -> None:
        """Cache that these bytes were the only request of a call."""

    def answer_by(self, call: C) -> None:
        """Let a call answer the request; it calls `on_response_complete` at its end."""
        self.fast = self.running = call
        self.cycle = cast("Any", call)
        self._stop_head_timer()
        self._unset_keepalive_if_required()

    def begin_whole(self) -> None:
        """Pass a request without a body, which no fast path took, to the application."""
        self.begin_ordinary()
        super().on_message_complete()

    def left_unread_bytes(self) -> int:
        """Return the bytes sent but not read.

        During an answer, also the bytes buffered on the way.
        """
        left_bytes = _unread_bytes(self.transport)
        if self.running is not None and not self.running.response_complete:
            is_stalled = left_bytes > 0 or self.flow.write_paused
            left_bytes += _STALLED_BYTES if is_stalled else _BEGUN_BYTES
        return left_bytes

    # -- the connection --------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.parser = cast("Any", RequestParser(self, self._bounds.head_bytes))
        self.requests = cast("RequestParser", self.parser)
        self.flow = self._flow = _PausableFlow(transport)
        peer = self.client[0] if self.client else "unknown"
        self.is_admitted = self._all_connections.admit(self, peer)
        head_s = self._bounds.head_s if self.is_admitted else self._bounds.provisional_s
        self._head_timer = self.loop.call_later(head_s, transport.abort)

    def drop(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        if self.fast is not None and self.fast.is_waiting:
            self.fast.send()  # Whatever these bytes are, their answer would follow the last one.
        requests = self.requests
        if requests.is_idle:
            if self._ahead or not self.is_free():
                self._keep_ahead(data)
                return
            if not self.is_leaving and self.begin_repeated(data):
                return
        elif (self._is_lingering and not requests.keep_alive) or requests.is_stopped:
            self._bound_late(len(data))
        self.feed(data)

    def feed(self, data: bytes) -> None:
        """Continue parsing; bytes of the next request wait until this one is answered."""
        requests, before = self.requests, self.fast
        was_idle, was_behind = requests.is_idle, requests.is_behind
        self._unset_keepalive_if_required()
        try:
            rest = requests.feed(data)
        except ServiceError as error:
            self._refuse(error)
            return
        except (HttpParserError, UnicodeError):  # Raised by the server's own reading of the target.
            self._refuse(InvalidRequest("The request target is not well formed."))
            return
        fast = self.fast
        if rest:
            self._keep_ahead(rest)
            self.loop.call_soon(self._take_ahead)
        elif was_idle and requests.is_idle and fast is not None and fast is not before:
            self.remember(data, fast)
        if requests.is_behind or was_behind:
            self._hold()
        if requests.is_in_head and self._head_timer is None:
            self._head_timer = self.loop.call_later(self._bounds.head_s, self.transport.abort)

    def _go_on(self) -> None:
        """Continue parsing after the parser let others run."""
        self._goes_on = False
        if not self.transport.is_closing() and self.requests.is_behind:
            self.feed(b"")

    def _refuse(self, error: ServiceError) -> None:
        """Refuse the request, if it has no answer yet, and end the connection."""
        self.requests.stop()
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            is_unanswered = not self._is_lingering
        else:
            is_unanswered = not cycle.response_started
            cycle.disconnected = True
            cycle.message_event.set()
        if is_unanswered:
            self.transport.write(self._reject(error, is_head=self.requests.method == b"HEAD"))
        self.transport.close()
        self._cut_unread()

    def _bound_late(self, more_bytes: int) -> None:
        """Bound the unread rest of a refused body, so that it is not read or parsed for ever."""
        self._late_bytes += more_bytes
        if self.requests.is_chunked and self._late_bytes > self._bounds.late_parsed_bytes:
            self.requests.stop()
        if self._late_bytes > self._bounds.late_bytes:
            self.requests.stop()
            self._flow.pause_reading()
            self._flow.is_paused = True
            # Otherwise the system would buffer megabytes for us (Linux: up to the last number of
            # tcp_rmem).
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD_BYTES)

    # -- the parser's events ---------------------------------------------------------------------

    def on_head(self) -> None:
        """Answer the request whose head was just parsed."""
        self._stop_head_timer()
        requests = self.requests
        self.on_message_begin()
        self.url = requests.target
        self.headers.extend(requests.headers)
        self.expect_100_continue = requests.expects_continue
        self._late_bytes = 0
        if not self.is_admitted:
            self._require_place()
        if self.is_leaving:
            requests.keep_alive = False
        if not self.begin_fast():
            self.begin_ordinary()

    def begin_ordinary(self) -> None:
        """Pass the request whose head was parsed to the application."""
        super().on_headers_complete()
        if self.scope["http_version"] == "1.0":
            self.cycle.__class__ = UnchunkedCycle
        elif self.requests.is_in_body:
            early = ExpectingCycle if self.expect_100_continue else EarlyCycle
            self.cycle.__class__ = early
            cast("EarlyCycle", self.cycle).is_left_unread = self._leaves_body

    def _require_place(self) -> None:
        """Raise unless the connection is within the caps or the path is always answered."""
        requests = self.requests
        requests.keep_alive = False
        if requests.target in ALWAYS_ANSWERED and requests.method in {b"GET", b"HEAD"}:
            return
        if self._all_connections.is_full:
            raise Unavailable("Every connection is taken: try again soon.", retry_after_s=_RETRY_S)
        raise TooManyConnections(
            "Your address or network holds as many connections as it may: close some of them.",
            retry_after_s=_RETRY_S,
        )

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.running = cycle
        super()._start_asgi_task(cycle, app)

    @override
    def on_response_complete(self) -> None:
        if self.requests.is_in_body:  # Each piece of it postpones the idle timeout.
            self._is_lingering = True
            self.loop.call_later(self._bounds.linger_s, self._end_unfinished, self.cycle)
        elif self.requests.is_stopped:
            self.transport.close()
        if self.fast is None or self.running is not self.fast:
            super().on_response_complete()
        else:
            self._await_next()
        if self._ahead:
            self.loop.call_soon(self._take_ahead)
        self._cut_unread()

    def _cut_unread(self) -> None:
        """Give a closed connection a limited time to send what remains.

        The transport itself waits for its reader for ever.
        """
        transport = self.transport
        if (
            self._unread_timer is None
            and transport.is_closing()
            and transport.get_write_buffer_size()
        ):
            self._unread_timer = self.loop.call_later(self._bounds.unread_s, transport.abort)

    @override
    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._cut_unread()

    @override
    def on_message_complete(self) -> None:
        if self._is_lingering and self.requests.is_stopped:
            self.transport.close()
            self._cut_unread()
        self._is_lingering = False
        super().on_message_complete()

    def _leaves_body(self) -> bool:
        """Return whether part of the body will stay unread; the connection then ends with it."""
        rest_bytes = self.requests.rest_bytes
        if rest_bytes is not None and rest_bytes <= self._bounds.late_bytes:
            return False
        self.requests.keep_alive = False
        return True

    def _end_unfinished(self, cycle: RequestResponseCycle) -> None:
        """Close a connection on which the body of an answered request is still arriving."""
        if self._is_lingering and self.cycle is cycle:
            self.transport.close()
            self._cut_unread()

    @override
    def shutdown(self) -> None:
        if self.fast is not None:
            self.fast.send()
        super().shutdown()
        self._cut_unread()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._unread_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        self._ahead = b""
        self._all_connections.release(self)
        if self.running is not None and not self.running.response_complete:
            self.running.disconnected = True
            self.running.message_event.set()
        super().connection_lost(exc)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        self._unread_timer = self.loop.call_later(self._bounds.unread_s, self.transport.abort)
        if self.fast is not None and not self.fast.response_complete:
            self.fast.pause()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_timer is not None and not self.transport.is_closing():
            self._unread_timer.cancel()
            self._unread_timer = None
        if self.fast is not None and not self.fast.response_complete:
            self.fast.resume()

    def _keep_ahead(self, data: bytes) -> None:
        self._ahead += data
        self._hold()

    def _take_ahead(self) -> None:
        """Parse pipelined bytes, now that the previous request is answered."""
        if self._ahead and self.is_free() and not self.transport.is_closing():
            data, self._ahead = self._ahead, b""
            self._hold()
            self.data_received(data)

    def _hold(self) -> None:
        """Pause reading when too much is buffered; a disconnect is then not detected."""
        flow = self._flow
        is_behind = self.requests.is_behind
        if is_behind and not self._goes_on:
            self._goes_on = True
            self.loop.call_soon(self._go_on)
        flow.is_paused = is_behind or len(self._ahead) > self._bounds.ahead_bytes
        if flow.is_paused:
            flow.pause_reading()
        else:
            flow.resume_reading()

    def is_free(self) -> bool:
        """Return whether no request is being answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _await_next(self) -> None:
        """Start the idle timeout as the server does, but with one timer for many answers."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._idle_since_s = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._end_idle)

    def _end_idle(self) -> None:
        """Close the connection if it has been idle for too long; otherwise check again later."""
        self._idle_timer = None
        is_ours = self.requests.is_idle and self.timeout_keep_alive_task is None
        is_ours = is_ours and self.is_free()
        if not is_ours:
            # An answer is in progress, or another timer is set: the next answer checks again.
            return
        left_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._idle_timer = self.loop.call_later(left_s, self._end_idle)
        else:
            self.timeout_keep_alive_handler()


def _unread_bytes(transport: asyncio.BaseTransport) -> int:
    """Return the bytes sent but not acknowledged by the caller's system; 0 if unknown."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None:
        return 0
    try:
        # Linux: the bytes in the send queue. Source: tcp(7), SIOCOUTQ.
        answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(_INT.size))
    except OSError:
        return 0
    return max(0, int(_INT.unpack(answer)[0]))
