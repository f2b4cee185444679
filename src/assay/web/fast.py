"""The wrappers' fast lane: a request and its answer at the server's own protocol.

What needs no waiting (a free wrapper, an agent that passed a moment ago, a kept connection to the
upstream, no body) is sent on while the request's head is still in hand, and its answer written back
as it arrives, without a task. Everything else takes the ordinary lane, `web/routes/wrap.py`, with
the same stages and the same answers. Source: facts, performance (both sides at protocol level).
"""

import asyncio
from typing import Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from assay.kit.errors import ServiceError
from assay.payments.model import Headers
from assay.web.errors import envelope, error_headers, status_of
from assay.web.exchange import date_header
from assay.wiring import App
from assay.wrapper.model import Journey, UpstreamFailed
from assay.wrapper.pipeline import Begun

_NO_CONTENT = 204
_NO_BODY = frozenset({_NO_CONTENT, 304})


class CallerConnection(Protocol):
    """The connection a request came on."""

    transport: asyncio.Transport

    def take_ordinary(self, cycle: "FastCycle") -> bool:
        """Let the ordinary lane answer, where the upstream has not seen the request."""
        ...

    def on_response_complete(self) -> None:
        """The next request may be answered."""
        ...


class FastCycle:
    """One request of the fast lane, in the place of the server's own cycle; the answer's sink."""

    __slots__ = (
        "_app", "_begun", "_chunked", "_is_out", "_journey", "_out", "_protocol", "body",
        "bytes_out",
        "disconnected", "is_head", "keep_alive", "more_body", "response_complete", "scope",
        "status",
    )  # fmt: skip

    def __init__(
        self, app: App, protocol: CallerConnection, scope: object, journey: Journey
    ) -> None:
        self._app = app
        self._protocol = protocol
        self._journey = journey
        self._begun: Begun | None = None
        self._out: list[bytes] = []
        self._chunked = False
        self._is_out = False
        self.scope = scope
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


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d \r\n" % status
