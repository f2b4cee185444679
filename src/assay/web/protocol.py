"""The server's protocol with the wrappers' fast lane before it, and bounds on both sides' time.

A subclass of the server's own, for what it leaves open: a head that is endless in size or time, a
caller that never reads, one that leaves with requests sent ahead, one that knows no chunks.
"""

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from assay.web.edge import Edge, request_id_of
from assay.web.fast import FastCycle
from assay.web.limits import caller_of
from assay.web.routes.course import CUT
from assay.web.routes.wrap import incoming_of
from assay.wrapper.model import Journey

PREFIX = b"/wrap/"
COURSE = b"/operator/sandbox/course/"

CONCURRENCY_MAX = 2000
"""Connections beyond which the server itself sheds load; it is left to do so."""

HEAD_BYTES_MAX = 64 * 1024
"""Largest head of a request, give or take the packet in which it is exceeded."""

HEAD_S = 15.0
"""How long the head of a request may take, from the connection or its first byte on."""

UNREAD_S = 60.0
"""How long a caller may leave what waits for it unread before the connection is cut."""

AHEAD_BYTES = 64 * 1024
"""What is kept of requests sent ahead, so that a caller's going away is still heard."""

_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})
_TARGET = re.compile(
    rb"/wrap/([^/?#]*)(/[\x21\x24-\x3e\x40-\x7e\x22]*)(?:\?([\x21\x22\x24-\x7e]*))?"
)
"""Operator, path, query of a plain target; anything stranger takes the ordinary lane."""

_ORDINARY = (b"transfer-encoding", b"content-length", b"expect", b"upgrade")
"""Headers of requests that are not for this lane."""


class UnchunkedCycle(RequestResponseCycle):
    """Answers a caller of HTTP/1.0, which knows no chunks.

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


class FastProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with the fast lane before it."""

    _edge: Edge
    _fast: FastCycle | None = None
    _running: Any = None
    """The cycle being answered; the server's own `cycle` is the last one that came."""
    _ahead = b""
    _client_key: str | None = None
    _head_bytes = 0
    _head_is_whole = True
    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_S, transport.abort)

    @override
    def data_received(self, data: bytes) -> None:
        if self.pipeline or self._ahead:
            self._keep_ahead(data)
            return
        super().data_received(data)
        if not self._head_is_whole:
            self._head_bytes += len(data)
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(HEAD_S, self.transport.abort)
            if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
                self.send_400_response("The request's head is larger than accepted.")

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes, self._head_is_whole = 0, False

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_is_whole:  # else a trailer, which is no header (RFC 9110, section 6.5.1)
            super().on_header(name, value)

    @override
    def on_headers_complete(self) -> None:
        self._head_is_whole = True
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        cycle = self._begin_fast() if self.url.startswith(PREFIX) else None
        if cycle is not None:
            self.cycle = self._running = cast("Any", cycle)
            return
        super().on_headers_complete()
        if self.url.startswith(COURSE):
            self.scope["extensions"] = {CUT: {"cut": self.transport.abort}}
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
        super().on_response_complete()
        if self._ahead:
            self.loop.call_soon(self._take_ahead)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._unread_timer):
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
        self._unread_timer = self.loop.call_later(UNREAD_S, self.transport.abort)
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
        is_current = self.cycle is cast("Any", cycle) and self.scope is cycle.scope
        if not is_current or self.transport.is_closing():
            return False  # the next request has begun on this connection already
        cycle.response_complete = True
        HttpToolsProtocol.on_headers_complete(self)
        HttpToolsProtocol.on_message_complete(self)
        return True

    def _keep_ahead(self, data: bytes) -> None:
        self._ahead += data
        if len(self._ahead) > AHEAD_BYTES:
            self.flow.pause_reading()

    def _take_ahead(self) -> None:
        """Parse what came ahead, now that its turn has come."""
        if not self.pipeline and not self.transport.is_closing():
            data, self._ahead = self._ahead, b""
            self.data_received(data)

    def _begin_fast(self) -> FastCycle | None:
        """The cycle of a request that is on its way, or None and nothing done."""
        cycle, parser = cast("FastCycle | None", self.cycle), self.parser
        busy = cycle is not None and not cycle.response_complete
        if parser is None or busy or self.pipeline or len(self.connections) >= CONCURRENCY_MAX:
            return None
        method = parser.get_method()
        found = _TARGET.fullmatch(self.url)
        if method not in _METHODS or found is None or parser.get_http_version() != "1.1":
            return None
        headers: dict[str, str] = {}
        for name, value in self.headers:
            if name in _ORDINARY:
                return None
            headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        edge = self._edge
        client = edge.client_of(self.client, self.headers)
        key = self._client_key
        if key is None or edge.believes_proxies:
            key = self._client_key = caller_of(client)
        journey = self._journey(method.decode("ascii"), found, headers, client)
        cycle = FastCycle(edge.app, self, self.scope, journey)
        cycle.keep_alive = parser.should_keep_alive()
        if not edge.wrap.limit.allows(key) or not cycle.begin():
            return None
        edge.wrap.limit.take(key)
        self._fast = cycle
        return cycle

    def _journey(
        self,
        method: str,
        found: re.Match[bytes],
        headers: Mapping[str, str],
        client: str,
    ) -> Journey:
        return Journey(
            incoming=incoming_of(
                method=method,
                path=found[2].decode("ascii"),
                query=(found[3] or b"").decode("ascii"),
                raw=self.headers,
                headers=headers,
                client=client,
                request_id=request_id_of(headers),
                content_length=0,
            ),
            operator_id=found[1].decode("ascii"),
            begun_s=self._edge.app.clock.monotonic_s(),
        )


def protocol_for(edge: Edge) -> type[FastProtocol]:
    """The server's protocol in front of this service."""
    return type("Protocol", (FastProtocol,), {"_edge": edge})
