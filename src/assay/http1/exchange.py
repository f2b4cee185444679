"""A request in progress and its answer: read as a stream, or delivered to a sink."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from assay.common.http_heads import HeaderPairs
from assay.http1.connection import StaleConnection, UpstreamConnection
from assay.http1.model import ResponseSink, UpstreamFailed, UpstreamRequest


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
