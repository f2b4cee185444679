"""MCP's older transport (HTTP with server-sent events), over guarded egress.

The stream is one request through the visit's `EgressClient`: its address is checked, and its bytes
and its time are bounded and counted like those of any other answer.
Source: MCP 2024-11-05, transports.
"""

import asyncio
import re
from collections.abc import AsyncIterator

import httpx2
from mcp.client import Transport
from mcp.client.sse import sse_client
from typing_extensions import override

from assay.net.egress.guarded_transport import SafeHttpTransport2, plain_headers
from assay.net.egress.ports import EgressClient, EgressResponse, Limits, OutboundRequest
from assay.probing.clients.transport import LIMITS, RecordingTransport, is_readable

STREAM_LIMITS = Limits(connect_s=2.0, total_s=120.0, body_bytes_max=1024 * 1024)
"""Limits of one stream. A visit ends it sooner."""

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")


def sse_transport(url: str, http: EgressClient) -> Transport:
    """Return the official client's transport, for its `Client`.

    Messages are sent only to the stream's own origin, each through `http`.
    """

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=_StreamTransport(http),
            trust_env=False,
            headers=headers,
            timeout=timeout,
            auth=auth,
        )

    return sse_client(url, httpx_client_factory=client)


class _StreamTransport(httpx2.AsyncBaseTransport):
    """Streams the body of an event stream, and returns every other reply whole."""

    def __init__(self, http: EgressClient) -> None:
        self._wire = RecordingTransport(http)
        self._whole = SafeHttpTransport2(self._wire, LIMITS)

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            return await self._whole.handle_async_request(request)
        events = _Events()
        outgoing = OutboundRequest("GET", str(request.url), dict(request.headers), tap=events)
        reading = asyncio.get_running_loop().create_task(self._wire.send(outgoing, STREAM_LIMITS))
        reading.add_done_callback(lambda _: events.end())
        try:
            status, headers = await events.head_of(reading)
        except BaseException:
            reading.cancel()
            raise
        return httpx2.Response(
            status, headers=headers, stream=_Body(events, reading), request=request
        )


class _Events:
    """A `Tap` that passes on whole events, which the libraries' parsers can handle safely."""

    def __init__(self) -> None:
        self._head: asyncio.Future[tuple[int, list[tuple[str, str]]]] = (
            asyncio.get_running_loop().create_future()
        )
        self._open = b""
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        if not self._head.done():
            self._head.set_result((status, plain_headers(headers)))

    def add(self, piece: bytes) -> None:
        *whole, self._open = _BLANK_LINE.split(self._open + piece)
        for event in whole:
            if not is_readable(event):
                self.end()
                return
            self._queue.put_nowait(event + b"\n\n")

    def end(self) -> None:
        """Signal the end."""
        self._queue.put_nowait(None)

    async def head_of(
        self, reading: "asyncio.Task[EgressResponse]"
    ) -> tuple[int, list[tuple[str, str]]]:
        """Return status and headers.

        The host's, or those of a reply that represents its failure.
        """
        await asyncio.wait([self._head, reading], return_when=asyncio.FIRST_COMPLETED)
        if self._head.done():
            return self._head.result()
        reply = reading.result()
        return reply.status, plain_headers(reply.headers)

    async def next(self) -> bytes | None:
        """Return the next event; None at the end."""
        return await self._queue.get()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, events: _Events, reading: "asyncio.Task[EgressResponse]") -> None:
        self._events, self._reading = events, reading

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (event := await self._events.next()) is not None:
            yield event

    @override
    async def aclose(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
