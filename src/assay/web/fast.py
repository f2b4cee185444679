"""The wrappers' fast lane: at the server's own protocol, before the framework sees a request.

What needs no waiting (a free wrapper, an agent that passed a moment ago, a kept connection to the
upstream, no body) is sent on while the request's head is still in hand, and its answer written back
as it arrives, without a task. Everything else takes the ordinary lane, `web/routes/wrap.py`, with
the same stages and the same answers. Source: facts, performance (both sides at protocol level).
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from assay.kit.errors import ServiceError
from assay.payments.model import Headers
from assay.web.edge import Edge, request_id_of
from assay.web.errors import envelope, error_headers, status_of
from assay.web.exchange import date_header
from assay.web.limits import caller_of
from assay.web.routes.wrap import incoming_of
from assay.wiring import App
from assay.wrapper.model import Journey, UpstreamFailed
from assay.wrapper.pipeline import Begun

PREFIX = b"/wrap/"

CONCURRENCY_MAX = 2000
"""Connections beyond which the server itself sheds load; it is left to do so."""

HEAD_BYTES_MAX = 64 * 1024
"""Largest head of a request, give or take the packet in which it is exceeded."""

_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})
_TARGET = re.compile(
    rb"/wrap/([^/?#]*)(/[\x21\x24-\x3e\x40-\x7e\x22]*)(?:\?([\x21\x22\x24-\x7e]*))?"
)
"""Operator, path, query of a plain target; anything stranger takes the ordinary lane."""

_NO_CONTENT = 204
_NO_BODY = frozenset({_NO_CONTENT, 304})
_ORDINARY = (b"transfer-encoding", b"content-length", b"expect", b"upgrade")
"""Headers of requests that are not for this lane."""


class FastCycle:
    """One request of the fast lane, in the place of the server's own cycle; the answer's sink."""

    __slots__ = (
        "_app", "_begun", "_chunked", "_is_out", "_journey", "_out", "_protocol", "body",
        "bytes_out",
        "disconnected", "is_head", "keep_alive", "more_body", "response_complete", "scope",
        "status",
    )  # fmt: skip

    def __init__(self, app: App, protocol: "FastProtocol", journey: Journey) -> None:
        self._app = app
        self._protocol = protocol
        self._journey = journey
        self._begun: Begun | None = None
        self._out: list[bytes] = []
        self._chunked = False
        self._is_out = False
        self.scope = protocol.scope
        self.is_head = journey.incoming.method == "HEAD"
        self.body = bytearray()
        self.more_body = False
        self.disconnected = False
        self.response_complete = False
        self.keep_alive = True
        self.status = 0
        self.bytes_out = 0

    def begin(self) -> bool:
        """Whether the request is on its way."""
        self._begun = self._app.wrappers.begin(self._journey, self)
        return self._begun is not None

    @property
    def message_event(self) -> "FastCycle":
        """The server sets this when something changed; all that matters here is a caller gone."""
        return self

    def set(self) -> None:
        """The caller may be gone."""
        if self.disconnected and not self.response_complete and self._begun is not None:
            self._begun.exchange.abort()
            self._journey.outcome = "cancelled"
            self.response_complete = True
            self._record()

    # -- wrapper.ports.ReplySink ----------------------------------------------------------------

    def on_head(self, status: int, headers: Headers) -> None:
        """Write the head of the answer."""
        if self._begun is None:
            return
        journey = self._journey
        try:
            passed = self._app.wrappers.answer_headers(self._begun, status, headers)
        except UpstreamFailed as error:
            self._begun.exchange.abort()
            self.on_failure(error, untouched=False)
            return
        self.status = status
        if status == _NO_CONTENT:  # which has no length either (RFC 9110, section 8.6)
            passed = [header for header in passed if header[0] != b"content-length"]
        names = {name for name, _ in passed}
        if b"date" not in names:
            passed.append(date_header(self._app.clock.now()))
        passed.append((b"x-request-id", journey.incoming.request_id.encode()))
        bare = self.is_head or status in _NO_BODY
        self._chunked = not bare and b"content-length" not in names
        if self._chunked:
            passed.append((b"transfer-encoding", b"chunked"))
        if not self.keep_alive:
            passed.append((b"connection", b"close"))
        lines = [b"%b: %b\r\n" % header for header in passed]
        self._out = [STATUS_LINE.get(status) or _status_line(status), *lines, b"\r\n"]

    def on_piece(self, piece: bytes) -> None:
        """Write a piece of the body."""
        self.bytes_out += len(piece)
        self._out.append(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)

    def flush(self) -> None:
        """Send what has been written."""
        if self._out and not self.disconnected:
            self._is_out = True
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out = []
            self._protocol.transport.write(data)

    def on_end(self) -> None:
        """The answer is whole."""
        if self._chunked:
            self._out.append(b"0\r\n\r\n")
        self.flush()
        self._complete()

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        """A 502, or a cut where an answer has begun; a request nobody saw is sent again."""
        if untouched and self._protocol.take_ordinary(self):
            return
        self._journey.outcome = error.code
        if self._is_out:
            self.keep_alive = False
        else:
            self._refuse(error)
        self._complete()

    def pause(self) -> None:
        """The caller reads slowly."""
        if self._begun is not None:
            self._begun.exchange.pause()

    def resume(self) -> None:
        """The caller reads again."""
        if self._begun is not None:
            self._begun.exchange.resume()

    def _refuse(self, error: ServiceError) -> None:
        body = envelope(error, self._journey.incoming.request_id)
        self.status = status_of(error)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-request-id", self._journey.incoming.request_id.encode()),
            date_header(self._app.clock.now()),
            *error_headers(error),
        ]
        lines = [STATUS_LINE[self.status], *(b"%b: %b\r\n" % header for header in headers)]
        self._out = [*lines, b"\r\n", b"" if self.is_head else body]
        self.bytes_out = len(body)
        self.flush()

    def _complete(self) -> None:
        if self.response_complete:
            return
        self.response_complete = True
        self._record()
        if not self.keep_alive:
            self._protocol.transport.close()
        self._protocol.on_response_complete()

    def _record(self) -> None:
        self._app.wrappers.record(self._journey, self.status, self.bytes_out)


class FastProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with the fast lane before it."""

    _edge: Edge
    _fast: FastCycle | None = None
    _client_key: str | None = None
    _head_bytes = 0
    _head_is_whole = True

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._head_is_whole:
            self._head_bytes += len(data)
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
        cycle = self._begin_fast() if self.url.startswith(PREFIX) else None
        if cycle is None:
            super().on_headers_complete()
        else:
            self.cycle = cast("Any", cycle)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._fast is not None and not self._fast.response_complete:
            self._fast.disconnected = True
            self._fast.set()
        super().connection_lost(exc)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._fast is not None and not self._fast.response_complete:
            self._fast.pause()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
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
        cycle = FastCycle(edge.app, self, journey)
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


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d \r\n" % status
