"""One request over HTTP/2, on a checked and counted connection (ADR 0040).

`h2` parses the frames and does no I/O; the connection is ours and serves this one request. Only
gRPC needs it. Importing this module requires the optional library.
"""

from collections.abc import AsyncIterator, Sequence

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import httpcore2
from h2.settings import SettingCodes

from assay.net.body import BodyBroken

FRAMING_BYTES_MAX = 16 * 1024
"""Bytes of an answer besides its headers and body: frame heads, padding, pings, settings. Every
frame costs nine bytes of it, so it bounds the number of frames."""

READ_BYTES = 4 * 1024
"""Bytes per read: about 450 of the smallest frames, which take 10 ms."""

STREAM = 1
"""The first stream of a client. Source: RFC 9113, section 5.1.1."""

Headers = list[tuple[bytes, bytes]]


class Http2Exchange:
    """A request and its answer over HTTP/2. Methods raise `BodyBroken` for invalid HTTP/2.

    Time-outs and connection failures are raised as the stream's own errors.
    """

    def __init__(
        self, stream: httpcore2.AsyncNetworkStream, header_bytes_max: int, timeout_s: float
    ) -> None:
        self._stream = stream
        self._timeout_s = timeout_s
        self._framing_bytes_max = header_bytes_max + FRAMING_BYTES_MAX
        self._framing_bytes = 0
        config = h2.config.H2Configuration(client_side=True, header_encoding=None)
        self._frames = h2.connection.H2Connection(config)
        self._frames.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.MAX_CONCURRENT_STREAMS: 0,
                SettingCodes.MAX_HEADER_LIST_SIZE: header_bytes_max,
            },
        )
        # Our own bound applies until the host has acknowledged our settings.
        self._frames.decoder.max_header_list_size = header_bytes_max
        self.status = 0
        self.headers: Headers = []
        self.trailers: Headers = []
        self._has_head = self._has_ended = False
        self._pieces: list[bytes] = []

    async def send(self, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        """Send the request and read the head of its answer."""
        frames = self._frames
        frames.initiate_connection()
        if len(body) > frames.outbound_flow_control_window:
            raise BodyBroken("the body is longer than HTTP/2 lets a client send at once")
        frames.send_headers(STREAM, list(headers), end_stream=not body)
        size = frames.max_outbound_frame_size
        for begin in range(0, len(body), size):
            piece = body[begin : begin + size]
            frames.send_data(STREAM, piece, end_stream=begin + size >= len(body))
        await self._flush()
        while not self._has_head:
            await self._read()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; afterwards the trailers are known."""
        while True:
            for piece in self._pieces:
                yield piece
            self._pieces.clear()
            if self._has_ended:
                return
            await self._read()

    async def _read(self) -> None:
        data = await self._stream.read(READ_BYTES, self._timeout_s)
        if not data:
            raise BodyBroken("the connection was closed before the answer ended")
        self._framing_bytes += len(data)
        try:
            for event in self._frames.receive_data(data):
                self._note(event)
        except (h2.exceptions.H2Error, ValueError, LookupError) as error:
            # The libraries below refuse some frames with errors that they do not declare.
            raise BodyBroken(f"no HTTP/2: {type(error).__name__}: {error}"[:300]) from error
        if self._framing_bytes > self._framing_bytes_max:
            raise BodyBroken("more frames than an answer needs")
        await self._flush()

    def _note(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.DataReceived):
            data = event.data or b""
            self._framing_bytes -= len(data)
            self._pieces.append(data)
            size = event.flow_controlled_length or 0
            self._frames.acknowledge_received_data(size, STREAM)
        elif isinstance(event, h2.events.ResponseReceived):
            self._begin([(_bytes(n), _bytes(v)) for n, v in event.headers or ()])
        elif isinstance(event, h2.events.TrailersReceived):
            self.trailers = [(_bytes(n), _bytes(v)) for n, v in event.headers or ()]
        elif isinstance(event, h2.events.StreamEnded):
            self._has_ended = True
        elif isinstance(event, h2.events.StreamReset):
            # Source: RFC 9113, section 8.1: a whole answer may be followed by NO_ERROR.
            if not self._has_ended:
                raise BodyBroken(f"the host reset the stream: {event.error_code}")
        elif isinstance(event, h2.events.ConnectionTerminated) and not self._has_ended:
            raise BodyBroken(f"the host ends the connection: {event.error_code}")

    def _begin(self, headers: Headers) -> None:
        status = dict(headers).get(b":status", b"")
        if not status.isdigit() or len(status) != 3:  # noqa: PLR2004 - RFC 9110, section 15
            raise BodyBroken("the answer has no status")
        self.status = int(status)
        self.headers = [(name, value) for name, value in headers if not name.startswith(b":")]
        self._has_head = True

    async def _flush(self) -> None:
        data = self._frames.data_to_send()
        if data:
            await self._stream.write(data, self._timeout_s)


def _bytes(text: bytes | str) -> bytes:
    return text.encode("latin-1", "replace") if isinstance(text, str) else bytes(text)
