"""One connection to an upstream: writes requests and reads answers into bounded buffers."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import httptools
from typing_extensions import override

from assay.common.http_heads import END
from assay.common.tasks import WriteCoalescer
from assay.http1.model import Caller, ResponseHead, ResponseSink, UpstreamFailed, upstream_failed
from assay.http1.response_heads import HEAD_BYTES_MAX, CachedResponseHead, ResponseHeadCache

HEADER_BYTES_MAX = 64 * 1024
HEADERS_MAX = 200

_HIGH_BYTES = 256 * 1024
"""Reading pauses above this many buffered bytes: the memory that one slow reader costs."""

CHUNKS_PER_READ = 512
"""After more chunks than this in one read, later reads are smaller: each chunk costs as much as a
large one, and no other connection is served meanwhile."""

CHOPPY_READ_BYTES = 16 * 1024
TRAILER_BYTES_MAX = 8 * 1024

READ_BYTES: Final = 256 * 1024
"""Bytes read at once."""

_SLICE_BYTES = 16 * 1024
_NO_BODY = frozenset({204, 304})
_INTERIM, _SWITCHING, _LAST = 100, 101, 599
_FINAL = 200


class SharedReads:
    """A read buffer shared by all connections of a loop.

    Data stays in it until the next read of any connection. Code that hands a view to a consumer
    that keeps it must call `renew`.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Allocate a new buffer for later reads.

        The old one belongs to the views that still use it.
        """
        self.memory = memoryview(bytearray(READ_BYTES))


class StaleConnection(Exception):
    """A kept connection was closed before it gave a byte."""


@dataclass(slots=True)
class ConnectionContext:
    """State that connections of one loop share; the cached heads are those of one upstream."""

    reads: SharedReads = field(default_factory=SharedReads)
    outbox: WriteCoalescer = field(default_factory=WriteCoalescer)
    heads: ResponseHeadCache = field(default_factory=ResponseHeadCache)


class UpstreamConnection(asyncio.BufferedProtocol):
    """A connection that serves one exchange at a time."""

    caller: Caller | None = None
    operator_id = ""
    """The operator whose wrapper the exchange belongs to, and for which it is counted."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, shared: ConnectionContext | None = None
    ) -> None:
        """Create an unconnected connection; without `shared` it has a context of its own."""
        self._loop = loop
        shared = shared or ConnectionContext()
        self._reads, self._outbox, self._heads = shared.reads, shared.outbox, shared.heads
        self._head: ResponseHead | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._error: UpstreamFailed | None = None
        self._sink: ResponseSink | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._paused = False
        self._complete = True
        self._is_head = False
        self._keep = True
        self._until_end = False
        self._length = False
        self.waits_for_caller = self._is_choppy = False
        self._chunks_read = self._trailer_bytes = 0
        self._size = self._header_bytes = self._head_bytes = self._left = 0
        """`_left`: remaining bytes of a body that is only counted because its head is known."""
        self._deadline_s = self._timeout_s = self._timer_s = 0.0
        self.transport: asyncio.Transport | None = None
        self.made_s = self.idle_since_s = loop.time()
        self.busy = self.received = self.was_stale = False
        """`was_stale`: closed before it returned a byte, as a kept connection may be, so that the
        upstream did not process the request."""
        self.status = 0
        self._request = b""

    # -- the exchange ------------------------------------------------------------------------

    def begin(
        self,
        head: bytes,
        is_head: bool,  # noqa: FBT001 - names cost more than they say on the way of every request
        timeout_s: float,
        sink: ResponseSink | None = None,
    ) -> None:
        """Send the head of a request (and a small body with it).

        With a `sink` the answer is delivered there, and none of it is buffered here.
        """
        self._sink = sink
        self.busy, self.received, self.was_stale, self._complete = True, False, False, False
        self._head_bytes = 0
        self._is_head, self._keep = is_head, True
        self.waits_for_caller = False
        self._error = None
        self._chunks.clear()
        self._size = 0
        self._reset_head()
        self._timeout_s = timeout_s
        self._deadline_s = self._loop.time() + timeout_s
        self._watch()
        if sink is None:
            self._write(head)
            return
        if not self.is_open:
            raise StaleConnection
        self._request = head
        self._outbox.add(self)

    def send(self) -> None:
        """Send the request head when the answer goes to a sink."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(self._request)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body as soon as the write buffer has room."""
        self._write(data)
        self._deadline_s = self._loop.time() + self._timeout_s
        if self._drained is not None:
            await self._drained

    async def head(self) -> None:
        """Wait for the head of the answer. Raises `UpstreamFailed` and `StaleConnection`."""
        while self.status < _FINAL and self._error is None:
            await self._wait()
        if self._error is not None:
            raise self._error

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the response headers, names in lower case."""
        return self._headers

    def take_whole(self) -> bytes | None:
        """Return the body if all of it has arrived and end the exchange; otherwise return None."""
        if not self._complete or self._error is not None:
            return None
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        return data

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        while True:
            if self._chunks:
                yield self._take()
            elif self._error is not None:
                raise self._error
            elif self._complete:
                return
            else:
                await self._wait()

    def end(self) -> bool:
        """End the exchange, and return whether the connection may serve another."""
        self.busy = False
        self._sink = None
        transport = self.transport
        reusable = (
            self._complete
            and self._keep
            and self._error is None
            and transport is not None
            and not transport.is_closing()
        )
        if not reusable:
            self.close()
            return False
        if self._is_head:  # The parser still expects a body that an answer to HEAD does not have.
            self._parser = httptools.HttpResponseParser(self)
        self.idle_since_s = self._loop.time()
        return True

    def pause(self) -> None:
        """Stop reading until `resume`."""
        if not self._paused and self.transport is not None and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Continue reading."""
        if self._paused and self.transport is not None and not self.transport.is_closing():
            self._paused = False
            self._deadline_s = self._loop.time() + self._timeout_s
            self.transport.resume_reading()

    def keep_piece(self) -> None:
        """Keep the memory of the last piece valid: later reads use another buffer."""
        self._reads.renew()

    def stop_keeping(self) -> None:
        """Close the connection after this exchange instead of reusing it."""
        self._keep = False

    def close(self) -> None:
        """Close the connection at once."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.abort()

    @property
    def is_open(self) -> bool:
        """Return whether the connection can still be written to."""
        return self.transport is not None and not self.transport.is_closing()

    def _write(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            raise StaleConnection
        self.transport.write(data)

    def _take(self) -> bytes:
        data = self._chunks.popleft() if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        self.resume()
        return data

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _watch(self) -> None:
        """Start the timer if none runs.

        One serves many exchanges: setting one costs more than a header.
        """
        if self._timer is not None:
            if self._timer_s <= self._deadline_s:
                return
            self._timer.cancel()
        self._timer_s = self._deadline_s
        self._timer = self._loop.call_at(self._timer_s, self._tick)

    def _tick(self) -> None:
        """Check the deadline, which moves with every byte.

        The timer is only reset when it fires.
        """
        self._timer = None
        if not self.busy:
            return
        now = self._loop.time()
        if self._paused or self.waits_for_caller:  # The consumer is slow, not the upstream.
            self._deadline_s = now + self._timeout_s
        if now < self._deadline_s:
            self._watch()
            return
        self._fail("it did not answer in time")

    def _fail(self, why: str) -> None:
        if self._error is None and not self._complete:
            self._error = upstream_failed(why)
        self.close()
        self._tell_sink()
        self._wake()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _tell_sink(self) -> None:
        """Pass a parsed piece of data, or the end of the answer, to the sink."""
        sink = self._sink
        if sink is None:
            return
        if self._error is not None:
            self._sink = None
            sink.on_failure(self._error, untouched=self.was_stale)
        elif self._complete:
            self._sink = None
            sink.on_end()
        else:
            sink.flush()

    def _says_it_stays(self) -> bool:
        """Return whether the connection persists after an answer with neither body nor length.

        The parser would report that such an answer ends the connection.
        """
        ends = any(n == b"connection" and b"close" in v.lower() for n, v in self._headers)
        return self._parser.get_http_version() == "1.1" and not ends

    def _reset_head(self) -> None:
        self.status = self._left = 0
        self._head = None
        self._headers = []
        self._header_bytes = self._trailer_bytes = 0
        self._until_end = self._length = False

    # -- asyncio -----------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment] - a stream transport by construction

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        memory = self._reads.memory
        return memory[:CHOPPY_READ_BYTES] if self._is_choppy else memory

    @override
    def buffer_updated(self, nbytes: int) -> None:
        data = self._reads.memory[:nbytes]
        if not self.busy or (self._complete and self._is_head):
            self._keep = False
            self.close()  # Bytes that no request asked for.
            return
        if self._left:
            self._count(data)
            return
        is_first, self.received = not self.received, True
        front = b""
        if is_first and self._sink is not None and not self._is_head:
            front = bytes(data[:HEAD_BYTES_MAX])
            end = front.find(END) + len(END)
            known = self._heads.find(front[:end])
            if known is not None:
                self._begin_counted(known, data[end:])
                return
        self._parse(data)
        if is_first and self._head is not None and self._keep and self._error is None:
            self._heads.remember(front, self._head)
        if self._size > _HIGH_BYTES:
            self.pause()
        if self._sink is not None:
            self._tell_sink()
        else:
            self._wake()

    def _parse(self, data: memoryview) -> None:
        """Parse received data; a malformed answer ends the exchange."""
        self._chunks_read = 0
        if self.status >= _FINAL:  # A head that arrives byte by byte does not extend its deadline.
            self._deadline_s = self._loop.time() + self._timeout_s
        try:
            self._feed(data)
        except httptools.HttpParserUpgrade:
            self._fail("it switched protocols")
        except httptools.HttpParserError as error:
            if not (self._complete and self._is_head):
                self._fail(f"not HTTP: {error}")

    def _begin_counted(self, known: CachedResponseHead, rest: memoryview) -> None:
        """Begin an answer whose head is cached and whose body only needs counting."""
        self.status = known.head.status
        if self._sink is not None:
            self._sink.on_head(known.head)
        if self.busy:  # Otherwise the answer was refused and the exchange aborted.
            self._left = known.body_bytes
            self._count(rest)

    def _count(self, piece: memoryview) -> None:
        """Pass on the bytes that belong to the body; bytes after its end are unsolicited."""
        sink, size = self._sink, len(piece)
        if sink is None:
            return
        self._deadline_s = self._loop.time() + self._timeout_s
        if size > self._left:
            self._keep = False
            piece, size = piece[: self._left], self._left
        self._left -= size
        if size:
            sink.on_piece(piece)
        if self._left:
            sink.flush()
            return
        self._complete, self._sink = True, None
        sink.on_end()

    def _feed(self, data: memoryview) -> None:
        """Feed the parser: a head in slices, so that its size is bounded; a body in one go."""
        at = 0
        while self.status < _FINAL and at < len(data):
            piece = data[at : at + _SLICE_BYTES]
            at += _SLICE_BYTES
            self._head_bytes += len(piece)
            if self._head_bytes > HEADER_BYTES_MAX + _SLICE_BYTES:
                self._fail("its head is larger than accepted")
                return
            self._parser.feed_data(piece)
        if at < len(data):
            self._parser.feed_data(data[at:])

    @override
    def eof_received(self) -> bool:
        return False

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._keep = False
        if self._timer is not None:
            self._timer.cancel()
        if self.busy and not self._complete:
            if self._until_end and self.status >= _FINAL and exc is None:
                self._complete = True
            elif self._error is None:
                self._error = upstream_failed("it closed the connection")
                self.was_stale = not self.received
            self._tell_sink()
        self._wake()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    @override
    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    @override
    def resume_writing(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    # -- httptools ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Refuse a second answer that follows the first without a request."""
        if self._complete:
            self._keep = False
            raise ValueError("bytes after the end")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header of the head; trailers are dropped (RFC 9110, section 6.5.1)."""
        if self.status:
            self._trailer_bytes += len(name) + len(value) + 4
            if self._trailer_bytes > TRAILER_BYTES_MAX:
                raise ValueError("its trailers are larger than accepted")
            return
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > HEADER_BYTES_MAX or len(self._headers) >= HEADERS_MAX:
            raise ValueError("its headers are larger than accepted")
        name = name.lower()
        if name in {b"content-length", b"transfer-encoding"}:
            if self._length:  # The answer declares its framing twice, even if in the same way.
                raise ValueError("framed twice")
            self._length = True
            if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
                # The chunked coding would be removed here, and any other coding passed on without
                # its header.
                raise ValueError("a coding beneath the chunks")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Complete the head; a 1xx response is skipped."""
        status = self._parser.get_status_code()
        if status == _SWITCHING or not _INTERIM <= status <= _LAST:
            raise ValueError("it switched protocols, or its status is none")
        if status < _FINAL:
            self._reset_head()
            return
        self.status = status
        bare = self._is_head or status in _NO_BODY
        self._keep = self._keep and (
            self._says_it_stays() if bare else self._parser.should_keep_alive()
        )
        if self._sink is not None:
            self._head = ResponseHead(status, self._headers)
            self._sink.on_head(self._head)
        if self._is_head:
            self._complete = True
        else:
            self._until_end = not self._length and status not in _NO_BODY

    def on_chunk_header(self) -> None:
        """Note that a body uses chunks, which an answer to HEAD cannot have."""
        self._chunks_read += 1
        if self._chunks_read > CHUNKS_PER_READ:
            self._is_choppy = True
        if self._is_head:
            self._keep = False

    def on_body(self, body: bytes) -> None:
        """Receive a piece of the body."""
        if self._is_head:
            self._keep = False
            return
        if self._sink is not None:
            self._sink.on_piece(body)
            return
        self._chunks.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        """End the answer, unless it was a 1xx response."""
        if self.status >= _FINAL:
            self._complete = True
