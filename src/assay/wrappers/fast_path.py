"""The wrappers' fast path: plain requests, answered at the server's own protocol.

A request that needs no waiting (a free wrapper, an agent that passed a moment ago, a kept
connection to the upstream, no body) is forwarded while its head is parsed, and its answer is
written back as it arrives, without a task. Every other request takes the ordinary path,
`wrappers/routes_calls.py`, with the same stages and the same answers. Requests are remembered by
their bytes. Source: measurements.md#forwarding-requests.
"""

import asyncio
import re
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from assay.common.clock import Clock
from assay.common.errors import ServiceError
from assay.common.http_heads import END, HeaderPairs, is_plain
from assay.common.tasks import WriteCoalescer
from assay.http1.model import Caller, ResponseHead, UpstreamExchange, UpstreamFailed, anonymous_at
from assay.http1.request_parser import RequestParser
from assay.server.errors import envelope, error_headers, status_of
from assay.server.request_context import date_header, given_request_id
from assay.wrappers.fast_calls import FastCalls, FastPathRequest
from assay.wrappers.model import InboundRequest
from assay.wrappers.routes_calls import incoming_of
from assay.wrappers.stages.forward import SANDBOX

REPEATS_MAX = 1000
"""Requests that are remembered by their bytes. Most callers repeat a few."""

REPEAT_BYTES_MAX = 2048
"""A longer request is not remembered, so that 1000 of them take little memory."""

ANSWERS_REMEMBERED = 8
"""Heads of answers to one request; a date makes most of them useless after a second."""


@dataclass(frozen=True, slots=True)
class RenderedHead:
    """The bytes of an answer's head, without the lines that each answer has of its own."""

    lines: bytes
    is_dated: bool
    is_chunked: bool


@dataclass(slots=True)
class ParsedRequest:
    """A request as its bytes have it: what may come again, and how it was answered."""

    carried: FastPathRequest
    raw_headers: HeaderPairs
    request_id: str | None
    """The caller's own, if it sent a valid one."""
    keep_alive: bool
    agent: str | None = None
    """The agent of the session that it carries."""
    data: bytes = b""
    """The bytes of the request, if they are known to be the whole of one packet."""
    answers: dict[ResponseHead, RenderedHead] = field(
        default_factory=dict[ResponseHead, RenderedHead]
    )

    @property
    def is_head(self) -> bool:
        """Return whether the answer has no body."""
        return self.carried.matched.incoming.method == "HEAD"


class ParsedRequestCache:
    """Requests of the fast path by their bytes: known ones are not parsed again.

    A parser between two messages gives the same result for the same bytes, so only parsing is
    skipped. Whether the request may be forwarded is checked each time
    (`wrappers.fast_calls.FastCalls.begin`).
    """

    def __init__(self) -> None:
        self._known: dict[bytes, ParsedRequest] = {}
        self.find = self._known.get
        """Returns the request of exactly these bytes, or None."""

    def remember(self, data: bytes, repeat: ParsedRequest) -> None:
        """Remember a request that a parser has just read from `data`, and from nothing else."""
        if (
            len(data) <= REPEAT_BYTES_MAX
            and data.endswith(END)
            and is_plain(data, len(repeat.raw_headers))
        ):
            if len(self._known) >= REPEATS_MAX:
                self._known.clear()
            repeat.data = data
            self._known[data] = repeat


JOINED_BYTES_MAX = 16 * 1024
"""A piece of up to this size is copied behind its head, and waits for the end of the turn."""

_NO_CONTENT = 204
_NO_BODY = frozenset({_NO_CONTENT, 304})


class CallerConnection(Protocol):
    """The connection that a request came on."""

    transport: asyncio.Transport
    outbox: WriteCoalescer

    def take_ordinary(self, cycle: "FastCycle") -> bool:
        """Let the ordinary path answer a request that the upstream has not seen.

        Returns False if the caller is gone.
        """
        ...

    def on_response_complete(self) -> None:
        """Allow the next request to be answered."""
        ...


class FastCycle:
    """One request of the fast path: it replaces the server's own cycle, and takes the answer.

    Implements `wrappers.model.FastPathCall` and `ReplySink`.
    """

    __slots__ = (
        "_clock", "_direct", "_exchange", "_is_chunked", "_is_out", "_limits", "_out", "_protocol",
        "begun_s", "body", "bytes_out", "caller", "client_address", "disconnected", "is_repeated",
        "is_waiting", "keep_alive", "more_body", "outcome", "repeat", "request_id",
        "response_complete", "status",
    )  # fmt: skip

    body: bytearray
    more_body: bool

    def __init__(  # noqa: PLR0913, PLR0917 - by position: made for every fast call
        self,
        protocol: CallerConnection,
        direct: FastCalls,
        clock: Clock,
        repeat: ParsedRequest,
        client: tuple[str, Caller],
        request_id: str,
        is_repeated: bool,  # noqa: FBT001
    ) -> None:
        self._protocol = protocol
        self._direct = direct
        self._clock = clock
        self._exchange: UpstreamExchange | None = None
        self._limits = b""
        self._out: list[bytes | memoryview] = []
        self._is_chunked = self._is_out = self.is_waiting = False
        self.repeat = repeat
        self.is_repeated = is_repeated
        self.client_address, self.caller = client
        self.request_id = request_id
        self.begun_s = clock.monotonic_s()
        self.keep_alive = repeat.keep_alive
        self.outcome = "forwarded"
        self.disconnected = self.response_complete = False
        self.status = self.bytes_out = 0

    def begin(self) -> bool:
        """Forward the request; return whether it is on its way."""
        begun = self._direct.begin(self.repeat.carried, self, self)
        if begun is None:
            return False
        self._exchange, self._limits = begun
        return True

    @property
    def message_event(self) -> "FastCycle":
        """Return the event that the server sets on a change; only a lost caller matters here."""
        return self

    def set(self) -> None:
        """Note that the caller may be gone."""
        if self.disconnected and not self.response_complete and self._exchange is not None:
            self._exchange.abort()
            self.outcome = "cancelled"
            self._end()

    # -- wrapper.ports.ReplySink ----------------------------------------------------------------

    def on_head(self, head: ResponseHead) -> None:
        """Write the head of the answer."""
        known = self.repeat.answers.get(head)
        if known is None:
            try:
                known = self._render(head)
            except UpstreamFailed as error:
                if self._exchange is not None:
                    self._exchange.abort()
                self.on_failure(error, untouched=False)
                return
        self.status = head.status
        self._is_chunked = known.is_chunked
        own = b"%bx-request-id: %b\r\n" % (self._limits, self.request_id.encode())
        if not known.is_dated:
            own += b"%b: %b\r\n" % date_header(self._clock.now())
        if not self.keep_alive:
            own += b"connection: close\r\n"
        self._out = [b"%b%b\r\n" % (known.lines, own)]

    def on_piece(self, piece: bytes | memoryview) -> None:
        """Write a piece of the body."""
        self.bytes_out += len(piece)
        self._out.append(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    def flush(self) -> None:
        """Send what was written: much of it at once, little with all data of this turn."""
        out = self._out
        if not out:
            return
        if len(out[-1]) > JOINED_BYTES_MAX:  # its data is in the processor's cache now
            self.send()
            if self._protocol.transport.get_write_buffer_size() and self._exchange is not None:
                self._exchange.keep_piece()
            return
        self._out = [b"".join(out)]
        if not self.is_waiting:
            self.is_waiting = True
            self._protocol.outbox.add(self)

    def send(self) -> None:
        """Send it now, with what waits of earlier pieces."""
        out, self._out = self._out, []
        self.is_waiting = False
        transport = self._protocol.transport
        if not out or transport.is_closing():
            return
        self._is_out = True
        if len(out) == 1:
            transport.write(out[0])
        else:
            transport.writelines(out)

    def on_end(self) -> None:
        """Finish: the answer is whole."""
        if self._is_chunked:
            self._out.append(b"0\r\n\r\n")
        self.flush()
        self._complete()

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        """Answer 502, or cut an answer that has begun; resend a request that nobody saw."""
        if untouched and self._protocol.take_ordinary(self):
            return
        self.outcome = error.code
        if self._is_out:
            self.keep_alive = False
        else:
            self._refuse(error)
        self._complete()

    def pause(self) -> None:
        """Stop the upstream: the caller reads slowly."""
        if self._exchange is not None:
            self._exchange.pause()

    def resume(self) -> None:
        """Continue: the caller reads again."""
        if self._exchange is not None:
            self._exchange.resume()

    def _render(self, head: ResponseHead) -> RenderedHead:
        """Return what all answers with this head to this request share. Raises like `Direct`."""
        repeat, status = self.repeat, head.status
        passed = list(self._direct.answer_headers(repeat.carried, head))
        if status == _NO_CONTENT:  # it has no length either (RFC 9110, section 8.6)
            passed = [header for header in passed if header[0] != b"content-length"]
        names = {name for name, _ in passed}
        is_bare = repeat.is_head or status in _NO_BODY
        is_chunked = not is_bare and b"content-length" not in names
        if is_chunked:
            passed.append((b"transfer-encoding", b"chunked"))
        lines = [STATUS_LINE.get(status) or _status_line(status)]
        lines += [b"%b: %b\r\n" % header for header in passed]
        rendered = RenderedHead(b"".join(lines), b"date" in names, is_chunked)
        if len(repeat.answers) >= ANSWERS_REMEMBERED:
            repeat.answers.clear()
        repeat.answers[head] = rendered
        return rendered

    def _refuse(self, error: ServiceError) -> None:
        body = envelope(error, self.request_id)
        self.status = status_of(error)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            *SANDBOX,
            (b"x-request-id", self.request_id.encode()),
            date_header(self._clock.now()),
            *error_headers(error),
            *self.repeat.carried.cors,
        ]
        lines = [STATUS_LINE[self.status], *(b"%b: %b\r\n" % header for header in headers)]
        self._out = [*lines, b"\r\n", b"" if self.repeat.is_head else body]
        self.bytes_out = len(body)
        self.flush()

    def _complete(self) -> None:
        if self.response_complete:
            return
        self._end()
        if not self.keep_alive:
            self.send()
            self._protocol.transport.close()
        self._protocol.on_response_complete()

    def _end(self) -> None:
        self.response_complete = True
        self._exchange = None  # it refers to this one: a cycle would be left to the collector
        self._direct.record(self.repeat.carried, self)


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d \r\n" % status


_METHODS = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})
_TARGET = re.compile(
    rb"/wrap/([^/?#]*)(/[\x21\x24-\x3e\x40-\x7e\x22]*)(?:\?([\x21\x22\x24-\x7e]*))?"
)
"""Operator, path and query."""

_ORDINARY = (b"transfer-encoding", b"content-length", b"expect")
"""Headers of requests that have a body, or need more than an answer."""


_NOBODY = anonymous_at("")
"""The caller differs between two equal requests, so `FastPathCall` has it."""


class PlainRequest(NamedTuple):
    """A request without a body; `incoming` lacks what differs between equal requests."""

    operator_id: str
    incoming: InboundRequest
    request_id: str | None
    """The caller's own, if it sent a valid one."""


def read_plain(requests: RequestParser) -> PlainRequest | None:
    """Return the request whose head was just parsed, if it is a plain one."""
    method, raw = requests.method, requests.headers
    found = _TARGET.fullmatch(requests.target)
    if method not in _METHODS or found is None or requests.version != "1.1":
        return None
    headers: dict[str, str] = {}
    for name, value in raw:
        if name in _ORDINARY:
            return None
        headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    incoming = incoming_of(
        method=method.decode("ascii"),
        path=found[2].decode("ascii"),
        query=None if found[3] is None else found[3].decode("ascii"),
        raw=raw,
        headers=headers,
        client="",
        request_id="",
        content_length=0,
        caller=_NOBODY,
    )
    return PlainRequest(found[1].decode("ascii"), incoming, given_request_id(headers))
