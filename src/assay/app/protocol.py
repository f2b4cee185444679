"""The server's protocol: strict requests, one at a time; the wrappers' fast lane; bounds.

A subclass of the server's own, with another parser (`http1/request_parser.py`) and with what the
server leaves open: a head that is endless in size or time, a caller that never reads, one that
leaves with requests sent ahead, one that knows no chunks, one that holds too many connections.
"""

import asyncio
import socket
from typing import Any, cast

from httptools import HttpParserError
from typing_extensions import override
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from assay.app.application import Application
from assay.caller_behaviour.routes import CUT
from assay.common.errors import InvalidRequest, ServiceError, Unavailable
from assay.common.ids import new_id
from assay.common.write_coalescer import WriteCoalescer
from assay.http1.callers import Caller, agent_at, anonymous_at
from assay.http1.connections import (
    ALWAYS_ANSWERED,
    BOUNDS,
    ConnectionBounds,
    ConnectionCaps,
    Connections,
)
from assay.http1.request_parser import RequestParser
from assay.http1.response_cycles import EarlyCycle, ExpectingCycle, UnchunkedCycle
from assay.http1.unread_answers import BEGUN_BYTES, STALLED_BYTES, unread_bytes
from assay.server.errors import TooManyConnections
from assay.server.refusal import refusal
from assay.server.request_context import KEY, RequestContext
from assay.wrappers.fast_path import FastCycle
from assay.wrappers.fast_path_requests import read_plain
from assay.wrappers.parsed_request_cache import ParsedRequest, ParsedRequestCache
from assay.wrappers.routes_calls import EMPTY_QUERY

PREFIX = b"/wrap/"
COURSE = b"/operator/sandbox/course/"

_UNREAD_BYTES = 64 * 1024

_RETRY_S = 5
"""When a caller beyond a cap of connections may try again."""


class _HeldFlow(FlowControl):
    """The server's flow control, which does not resume what the protocol holds back."""

    is_held = False

    @override
    def resume_reading(self) -> None:
        if not self.is_held:
            super().resume_reading()


class FastProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with a strict parser, and the fast lane before it.

    A request is parsed when the one before it has been answered: what comes earlier waits as
    bytes, so that a refusal is never taken for the answer to another request.
    """

    _edge: Application
    _repeats: ParsedRequestCache
    _bounds: ConnectionBounds
    _all_connections: Connections
    outbox: WriteCoalescer
    _requests: RequestParser
    _flow: _HeldFlow
    _fast: FastCycle | None = None
    _running: Any = None
    """The cycle being answered; the server's own `cycle` is the last one that came."""
    _ahead = b""
    _caller: tuple[str, Caller] | None = None
    """The caller's address, and who calls from there; None where each request has its own."""
    _is_admitted = True
    """Whether the connection is within the caps."""
    _is_ordinary = False
    """Whether a request is parsed again, for the ordinary lane."""
    _goes_on = False
    """Whether the parser is called again at the next turn."""
    _is_lingering = False
    """Whether a request is answered whose body is not whole."""
    _has_wrapped = False
    """Whether a wrapper was called in the ordinary lane."""
    _late_bytes = 0
    """What came of a body after its request was answered, or behind the last request."""
    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_since_s = 0.0

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.parser = cast("Any", RequestParser(self, self._bounds.head_bytes))
        self._requests = cast("RequestParser", self.parser)
        self.flow = self._flow = _HeldFlow(transport)
        peer = self.client[0] if self.client else "unknown"
        self._is_admitted = self._all_connections.admit(self, peer)
        head_s = self._bounds.head_s if self._is_admitted else self._bounds.provisional_s
        self._head_timer = self.loop.call_later(head_s, transport.abort)
        if not self._edge.believes_proxies:
            client = self._edge.client_of(self.client, ())
            self._caller = client, anonymous_at(client)

    def drop(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        if self._fast is not None and self._fast.is_waiting:
            self._fast.send()  # whatever this means, its answer goes out behind the last one
        requests = self._requests
        if requests.is_idle:
            if self._ahead or not self._is_free():
                self._keep_ahead(data)
                return
            repeat = self._repeats.find(data)
            if repeat is not None and self._carry(repeat, is_repeated=True):
                return
        elif (self._is_lingering and not requests.keep_alive) or requests.is_stopped:
            self._bound_late(len(data))
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Parse on; what belongs to the next request waits until this one is answered."""
        requests, before = self._requests, self._fast
        was_idle, was_behind = requests.is_idle, requests.is_behind
        self._unset_keepalive_if_required()
        try:
            rest = requests.feed(data)
        except ServiceError as error:
            self._refuse(error)
            return
        except (HttpParserError, UnicodeError):  # of the server's own reading of the target
            self._refuse(InvalidRequest("The request target is not well formed."))
            return
        fast = self._fast
        if rest:
            self._keep_ahead(rest)
            self.loop.call_soon(self._take_ahead)
        elif was_idle and requests.is_idle and fast is not None and fast is not before:
            self._repeats.remember(data, fast.repeat)
        if requests.is_behind or was_behind:
            self._hold()
        if requests.is_in_head and self._head_timer is None:
            self._head_timer = self.loop.call_later(self._bounds.head_s, self.transport.abort)

    def _go_on(self) -> None:
        """Parse on where the parser gave others a turn."""
        self._goes_on = False
        if not self.transport.is_closing() and self._requests.is_behind:
            self._feed(b"")

    def _refuse(self, error: ServiceError) -> None:
        """End the connection, with an answer where the request has none yet."""
        self._requests.stop()
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            is_unanswered = not self._is_lingering
        else:
            is_unanswered = not cycle.response_started
            cycle.disconnected = True
            cycle.message_event.set()
        if is_unanswered:
            self.transport.write(refusal(error, is_head=self._requests.method == b"HEAD"))
        self.transport.close()
        self._cut_unread()

    def _bound_late(self, more_bytes: int) -> None:
        """What nobody waits for (the rest of a refused body) is not parsed or read for ever."""
        self._late_bytes += more_bytes
        if self._requests.is_chunked and self._late_bytes > self._bounds.late_parsed_bytes:
            self._requests.stop()
        if self._late_bytes > self._bounds.late_bytes:
            self._requests.stop()
            self._flow.pause_reading()
            self._flow.is_held = True
            # The system would go on taking megabytes for us (Linux: up to tcp_rmem's last number).
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD_BYTES)

    # -- the parser's events ---------------------------------------------------------------------

    def on_head(self) -> None:
        """Answer the request whose head was just parsed."""
        self._stop_head_timer()
        requests = self._requests
        self.on_message_begin()
        self.url = requests.target
        self.headers.extend(requests.headers)
        self.expect_100_continue = requests.expects_continue
        self._late_bytes = 0
        if not self._is_admitted:
            self._require_place()
        if self.url.startswith(PREFIX):
            self._has_wrapped = True
            if self._begin_fast():
                return
        self._begin_ordinary()

    def _begin_ordinary(self) -> None:
        super().on_headers_complete()
        if self.url.startswith(COURSE):
            self.scope["extensions"] = {CUT: {"cut": self.transport.abort}}
        elif self.url.find(b"?") == len(self.url) - 1:
            self.scope["extensions"] = {EMPTY_QUERY: {}}
        if self.scope["http_version"] == "1.0":
            self.cycle.__class__ = UnchunkedCycle
        elif self._requests.is_in_body:
            early = ExpectingCycle if self.expect_100_continue else EarlyCycle
            self.cycle.__class__ = early
            cast("EarlyCycle", self.cycle).is_left_unread = self._leaves_body

    def _require_place(self) -> None:
        """Raises unless the path is answered beyond every cap."""
        requests = self._requests
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
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @override
    def on_response_complete(self) -> None:
        if self._requests.is_in_body:  # each piece of it puts off the end of an idle connection
            self._is_lingering = True
            self.loop.call_later(self._bounds.linger_s, self._end_unfinished, self.cycle)
        elif self._requests.is_stopped:
            self.transport.close()
        if self._fast is None or self._running is not self._fast:
            super().on_response_complete()
        else:
            self._await_next()
        if self._ahead:
            self.loop.call_soon(self._take_ahead)
        self._cut_unread()

    def _cut_unread(self) -> None:
        """Give what a closed connection has left to send its time, and no more.

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
        if self._is_lingering and self._requests.is_stopped:
            self.transport.close()
            self._cut_unread()
        self._is_lingering = False
        super().on_message_complete()

    def _leaves_body(self) -> bool:
        """Whether more of the body comes than is read of it; the connection then ends with it."""
        rest_bytes = self._requests.rest_bytes
        if rest_bytes is not None and rest_bytes <= self._bounds.late_bytes:
            return False
        self._requests.keep_alive = False
        return True

    def _end_unfinished(self, cycle: RequestResponseCycle) -> None:
        """Close a connection on which an answered request's body is still coming."""
        if self._is_lingering and self.cycle is cycle:
            self.transport.close()
            self._cut_unread()

    @override
    def shutdown(self) -> None:
        if self._fast is not None:
            self._fast.send()
        super().shutdown()
        self._cut_unread()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._unread_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        self._ahead = b""
        self._all_connections.release(self)
        if self._fast is not None or self._has_wrapped:
            self._count_unread()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def _count_unread(self) -> None:
        """The caller of a wrapper is gone: what it left unread was sent for nothing."""
        left_bytes = unread_bytes(self.transport)
        if self._running is not None and not self._running.response_complete:
            is_stalled = left_bytes > 0 or self.flow.write_paused
            left_bytes += STALLED_BYTES if is_stalled else BEGUN_BYTES
        if left_bytes:
            self._edge.wrap.unread.note(self._last_caller(), left_bytes)

    def _last_caller(self) -> Caller:
        """Whom the last request is counted for: its agent or payer, else its address."""
        if self._fast is not None and self._running is self._fast:
            return self._fast.caller
        exchange: RequestContext | None = self._running.scope.get(KEY) if self._running else None
        caller = exchange.wrapper_caller if exchange else None
        return caller or anonymous_at(self._edge.client_of(self.client, self.headers))

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
        self._unread_timer = self.loop.call_later(self._bounds.unread_s, self.transport.abort)
        if self._fast is not None and not self._fast.response_complete:
            self._fast.pause()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_timer is not None and not self.transport.is_closing():
            self._unread_timer.cancel()
            self._unread_timer = None
        if self._fast is not None and not self._fast.response_complete:
            self._fast.resume()

    def take_ordinary(self, cycle: FastCycle) -> bool:
        """Let the ordinary lane answer a request that the upstream has not seen."""
        if self.cycle is not cast("Any", cycle) or self.transport.is_closing():
            return False
        cycle.response_complete = True
        if not cycle.is_repeated:
            self._begin_ordinary()
            super().on_message_complete()
            return True
        self._is_ordinary = True  # the parser has not seen this one
        try:
            self._feed(cycle.repeat.data)
        finally:
            self._is_ordinary = False
        return True

    def _keep_ahead(self, data: bytes) -> None:
        self._ahead += data
        self._hold()

    def _take_ahead(self) -> None:
        """Parse what came ahead, now that its turn has come."""
        if self._ahead and self._is_free() and not self.transport.is_closing():
            data, self._ahead = self._ahead, b""
            self._hold()
            self.data_received(data)

    def _hold(self) -> None:
        """Read from the caller unless more waits here than is kept; then its leaving is unheard."""
        flow = self._flow
        is_behind = self._requests.is_behind
        if is_behind and not self._goes_on:
            self._goes_on = True
            self.loop.call_soon(self._go_on)
        flow.is_held = is_behind or len(self._ahead) > self._bounds.ahead_bytes
        if flow.is_held:
            flow.pause_reading()
        else:
            flow.resume_reading()

    def _is_free(self) -> bool:
        """Whether nothing is being answered here."""
        cycle = cast("FastCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def _begin_fast(self) -> bool:
        """Whether the request that was just parsed is on its way; else nothing is done."""
        if self._is_ordinary or not self._is_free():
            return False
        repeat = self._parsed()
        return repeat is not None and self._carry(repeat)

    def _parsed(self) -> ParsedRequest | None:
        """The request, where it is one for the fast lane."""
        requests = self._requests
        plain = read_plain(requests)
        carried = plain and self._edge.app.direct.prepare(plain.operator_id, plain.incoming)
        if not plain or not carried:
            return None
        session = plain.incoming.agent.session
        agent = None if session is None else self._edge.app.sessions.owner_of(session)
        return ParsedRequest(
            carried, requests.headers, plain.request_id, requests.keep_alive, agent
        )

    def _carry(self, repeat: ParsedRequest, *, is_repeated: bool = False) -> bool:
        """Whether the request is on its way; else nothing is done."""
        if not self._is_admitted:
            return False
        edge = self._edge
        client = self._caller or self._caller_by(repeat)
        key, limit = client[1].own, edge.wrap.limit
        if repeat.agent is not None:
            client = client[0], agent_at(repeat.agent, client[0])
        room = limit.room(key)
        if room is None or edge.wrap.unread.wait_s(client[1]):
            return False
        request_id = repeat.request_id or new_id()
        cycle = FastCycle(edge.app, self, repeat, client, request_id, is_repeated)
        if not cycle.begin():
            return False
        limit.count(key, room)
        self._fast = self._running = cycle
        self.cycle = cast("Any", cycle)
        self._stop_head_timer()
        self._unset_keepalive_if_required()
        return True

    def _caller_by(self, repeat: ParsedRequest) -> tuple[str, Caller]:
        client = self._edge.client_of(self.client, repeat.raw_headers)
        return client, anonymous_at(client)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _await_next(self) -> None:
        """As the server does after an answer, but with one timer for many answers."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        self._idle_since_s = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._end_idle)

    def _end_idle(self) -> None:
        """Close a connection that has been idle for so long; look again where it has not."""
        self._idle_timer = None
        is_ours = self._requests.is_idle and self.timeout_keep_alive_task is None
        is_ours = is_ours and self._is_free()
        if not is_ours:
            return  # an answer is under way, or another timer is set: the next answer looks again
        left_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._idle_timer = self.loop.call_later(left_s, self._end_idle)
        else:
            self.timeout_keep_alive_handler()


def protocol_for(edge: Application, bounds: ConnectionBounds = BOUNDS) -> type[FastProtocol]:
    """The server's protocol in front of this service."""
    settings = edge.app.settings
    caps = ConnectionCaps(
        settings.connections_max,
        settings.connections_per_address,
        settings.connections_per_network,
    )
    own = {
        "_edge": edge,
        "_repeats": ParsedRequestCache(),
        "_bounds": bounds,
        "_all_connections": Connections(caps, edge.trusts, edge.app.on_crowd),
        "outbox": WriteCoalescer(),
    }
    return type("Protocol", (FastProtocol,), own)
