"""The server's protocol with the wrappers' fast lane before it, and bounds on both sides' time.

A subclass of the server's own, for what it leaves open: a head that is endless in size or time, a
caller that never reads, one that leaves with requests sent ahead, one that knows no chunks.
"""

import asyncio
from typing import Any, cast

from httptools import HttpRequestParser
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from assay.kit.ids import new_id
from assay.kit.outbox import Outbox
from assay.web.bounds import BOUNDS, Bounds
from assay.web.edge import Edge
from assay.web.fast import FastCycle
from assay.web.limits import caller_of
from assay.web.malformed import StrictProtocol, require_sound
from assay.web.plain import read_plain
from assay.web.repeats import Repeat, Repeats
from assay.web.routes.course import CUT
from assay.web.routes.wrap import EMPTY_QUERY
from assay.web.unchunked import UnchunkedCycle

PREFIX = b"/wrap/"
COURSE = b"/operator/sandbox/course/"

CONCURRENCY_MAX = 2000
"""Connections beyond which the server itself sheds load; it is left to do so."""


class FastProtocol(StrictProtocol):
    """Uvicorn's protocol with the fast lane before it."""

    _edge: Edge
    _repeats: Repeats
    outbox: Outbox
    _fast: FastCycle | None = None
    _running: Any = None
    """The cycle being answered; the server's own `cycle` is the last one that came."""
    _ahead = b""
    _caller: tuple[str, str] | None = None
    """The caller's address, and whom the limit counts; None where each request has its own."""
    _head_bytes = 0
    _head_is_whole = True
    _is_between = True
    """Whether the parser has read all of a message and nothing of the next."""
    _is_ordinary = False
    """Whether a request is parsed again, for the ordinary lane."""
    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_since_s = 0.0

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self._bounds.head_s, transport.abort)
        if not self._edge.believes_proxies:
            client = self._edge.client_of(self.client, ())
            self._caller = client, caller_of(client)

    @override
    def data_received(self, data: bytes) -> None:
        if self.pipeline or self._ahead:
            self._keep_ahead(data)
            return
        if self._fast is not None and self._fast.is_waiting:
            self._fast.send()  # whatever this means, its answer goes out behind the last one
        was_between = self._is_between
        if was_between:
            repeat = self._repeats.find(data)
            if repeat is not None and self._is_free() and self._carry(repeat, is_repeated=True):
                return
        before = self._fast
        super().data_received(data)
        fast = self._fast
        is_all = was_between and self._is_between and not self.pipeline
        if is_all and fast is not None and fast is not before:
            self._repeats.remember(data, fast.repeat)
        if not self._head_is_whole:
            self._bound_head(len(data))

    def _bound_head(self, more_bytes: int) -> None:
        self._head_bytes += more_bytes
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._bounds.head_s, self.transport.abort)
        if self._head_bytes > self._bounds.head_bytes and not self.transport.is_closing():
            self.send_400_response("The request's head is larger than accepted.")

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes, self._head_is_whole, self._is_between = 0, False, False

    @override
    def on_message_complete(self) -> None:
        self._is_between = True
        super().on_message_complete()

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_is_whole:  # else a trailer, which is no header (RFC 9110, section 6.5.1)
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        self._head_is_whole = True
        self._stop_head_timer()
        require_sound(self.headers, cast("HttpRequestParser", self.parser).get_http_version())
        if self.url.startswith(PREFIX) and self._begin_fast():
            return
        super().on_headers_complete()
        if self.url.startswith(COURSE):
            self.scope["extensions"] = {CUT: {"cut": self.transport.abort}}
        elif self.url.find(b"?") == len(self.url) - 1:
            self.scope["extensions"] = {EMPTY_QUERY: {}}
        if self.scope["http_version"] == "1.0":
            self.cycle.__class__ = UnchunkedCycle
        if self.pipeline:  # the server would stop reading, and never hear that the caller left
            self.flow.resume_reading()

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @override
    def on_response_complete(self) -> None:
        if self._fast is None or self._running is not self._fast or self.pipeline:
            super().on_response_complete()
        else:
            self._await_next()
        if self._ahead:
            self.loop.call_soon(self._take_ahead)

    @override
    def shutdown(self) -> None:
        if self._fast is not None:
            self._fast.send()
        super().shutdown()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._unread_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        self._ahead = b""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer = self.loop.call_later(self._bounds.unread_s, self.transport.abort)
        if self._fast is not None and not self._fast.response_complete:
            self._fast.pause()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        if self._fast is not None and not self._fast.response_complete:
            self._fast.resume()

    def take_ordinary(self, cycle: FastCycle) -> bool:
        """Let the ordinary lane answer a request that the upstream has not seen."""
        is_current = self.cycle is cast("Any", cycle) and self._is_between
        if not is_current or self.transport.is_closing():
            return False  # the next request has begun on this connection already
        cycle.response_complete = True
        if not cycle.is_repeated:
            HttpToolsProtocol.on_headers_complete(self)
            HttpToolsProtocol.on_message_complete(self)
            return True
        self._is_ordinary = True  # the parser has not seen this one
        try:
            HttpToolsProtocol.data_received(self, cycle.repeat.data)
        finally:
            self._is_ordinary = False
        return True

    def _keep_ahead(self, data: bytes) -> None:
        self._ahead += data
        if len(self._ahead) > self._bounds.ahead_bytes:
            self.flow.pause_reading()

    def _take_ahead(self) -> None:
        """Parse what came ahead, now that its turn has come."""
        if not self.pipeline and not self.transport.is_closing():
            data, self._ahead = self._ahead, b""
            self.data_received(data)

    def _is_free(self) -> bool:
        """Whether nothing is being answered here, or waits to be."""
        cycle = cast("FastCycle | None", self.cycle)
        return (cycle is None or cycle.response_complete) and not self.pipeline

    def _begin_fast(self) -> bool:
        """Whether the request that was just parsed is on its way; else nothing is done."""
        parser = self.parser
        if parser is None or self._is_ordinary or not self._is_free():
            return False
        repeat = self._parsed(parser)
        return repeat is not None and self._carry(repeat)

    def _parsed(self, parser: HttpRequestParser) -> Repeat | None:
        """The request, where it is one for the fast lane."""
        plain = read_plain(parser, self.url, self.headers)
        carried = plain and self._edge.app.direct.prepare(plain.operator_id, plain.incoming)
        if not plain or not carried:
            return None
        return Repeat(carried, self.headers, plain.request_id, parser.should_keep_alive())

    def _carry(self, repeat: Repeat, *, is_repeated: bool = False) -> bool:
        """Whether the request is on its way; else nothing is done."""
        if len(self.connections) >= CONCURRENCY_MAX:
            return False
        edge = self._edge
        client, key = self._caller or self._caller_by(repeat)
        limit = edge.wrap.limit
        room = limit.room(key)
        if room is None:
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

    def _caller_by(self, repeat: Repeat) -> tuple[str, str]:
        client = self._edge.client_of(self.client, repeat.raw_headers)
        return client, caller_of(client)

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
        is_ours = self._is_between and self.timeout_keep_alive_task is None and self._is_free()
        if not is_ours:
            return  # an answer is under way, or another timer is set: the next answer looks again
        left_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._idle_timer = self.loop.call_later(left_s, self._end_idle)
        else:
            self.timeout_keep_alive_handler()


def protocol_for(edge: Edge, bounds: Bounds = BOUNDS) -> type[FastProtocol]:
    """The server's protocol in front of this service."""
    own = {"_edge": edge, "_repeats": Repeats(), "_bounds": bounds, "outbox": Outbox()}
    return type("Protocol", (FastProtocol,), own)
