"""What goes back from a wrapper: the upstream's answer, or a refusal in the one envelope."""

import asyncio

from assay.common.clock import Clock
from assay.common.errors import RequestTimeout, ServiceError
from assay.http1.connections import BOUNDS, PIECE_BYTES
from assay.payments.model import PaymentRequired
from assay.payments.settlement import PaymentPending
from assay.server.errors import envelope, error_headers, status_of
from assay.server.request_context import JSON, RequestContext, Send, date_header
from assay.wrappers.model import CallRecord, RateLimitExceeded, WrapperResponse
from assay.wrappers.stages.forward import SANDBOX
from assay.wrappers.stages.limit import limit_headers

UNREAD_S = BOUNDS.unread_s
"""How long a caller may take to read a whole answer."""

_EXPOSED = (
    b"access-control-expose-headers",
    b"PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt",
)
"""What a browser's client must be able to read. Source: x402.md#both-versions-at-once."""

_NO_BODY = frozenset({204, 304})


class WrapperResponseWriter:
    """What goes back, with the headers every answer here has."""

    __slots__ = ("_call_record", "_clock", "_exchange", "_send", "bytes_out", "status")

    def __init__(
        self, send: Send, exchange: RequestContext, call_record: CallRecord, clock: Clock
    ) -> None:
        self._send = send
        self._clock = clock
        self._exchange = exchange
        self._call_record = call_record
        self.status = 0
        self.bytes_out = 0

    async def answer(self, answer: WrapperResponse) -> None:
        """The upstream's answer, whole or as it comes."""
        headers = [*answer.headers, *self._call_record.answer_headers]
        headers.append((b"x-request-id", self._exchange.request_id.encode()))
        if not any(name == b"date" for name, _ in headers):
            headers.append(date_header(self._clock.now()))
        body = answer.body
        is_head = self._call_record.incoming.method == "HEAD"
        if isinstance(body, bytes):
            if not is_head:
                headers = [header for header in headers if header[0] != b"content-length"]
            if not is_head and answer.status not in _NO_BODY:
                headers.append((b"content-length", b"%d" % len(body)))
            await self._start(answer.status, headers)
            await self._send_whole(body)
            return
        await self._start(answer.status, headers)
        async for piece in body:
            self.bytes_out += len(piece)
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def _send_whole(self, body: bytes) -> None:
        """In pieces, each when the one before is out: held here it is counted, there it is not."""
        size = self.bytes_out = len(body)
        try:
            async with asyncio.timeout(UNREAD_S):
                for start in range(0, max(1, size), PIECE_BYTES):
                    await self._send_piece(body[start : start + PIECE_BYTES], start, size)
        except TimeoutError:
            raise RequestTimeout("The answer was not read in time.") from None

    async def _send_piece(self, piece: bytes, start: int, size: int) -> None:
        is_more = start + len(piece) < size
        await self._send({"type": "http.response.body", "body": piece, "more_body": is_more})

    async def refuse(self, error: ServiceError) -> None:
        """A refusal in the one envelope; nothing, when an answer has begun already."""
        if self.status:
            return
        body = envelope(error, self._exchange.request_id)
        headers = [
            JSON,
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            *SANDBOX,
            date_header(self._clock.now()),
            (b"x-request-id", self._exchange.request_id.encode()),
            *error_headers(error),
            *_extra_headers(error),
            *self._call_record.answer_headers,
        ]
        await self._start(status_of(error), headers)
        self.bytes_out = len(body)
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


def _extra_headers(error: ServiceError) -> list[tuple[bytes, bytes]]:
    """Headers that a refusal of payment or of a limit has."""
    if isinstance(error, PaymentRequired):
        return [*error.demand.headers, _EXPOSED]
    if isinstance(error, PaymentPending):
        return [*error.headers, _EXPOSED]
    if isinstance(error, RateLimitExceeded):
        limit, reset = error.extras.get("limit"), error.extras.get("resetSeconds")
        if isinstance(limit, int) and isinstance(reset, int):
            return list(limit_headers(limit, 0, reset))
    return []
