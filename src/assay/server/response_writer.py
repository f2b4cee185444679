"""Writes API responses: common headers, and buffer budgets for large answers.

An answer stays in memory until its caller has read it. Answers to strangers are small, or the same
bytes for all; an answer to an operator may be megabytes each time.
"""

import asyncio
from typing import Final

from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.common.memory_budget import SMALL_BYTES, MemoryBudget, Reservation
from assay.http1.connections import BOUNDS, PIECE_BYTES
from assay.server.request_context import AsgiMessage, RequestContext, Send, date_header, refuse

ANSWERS_BYTES: Final = 128 * 1024 * 1024
"""Buffer budget of large answers to operators that are not read yet. One operator may use a
sixteenth, or more for a single answer."""

UNREAD_S: Final = BOUNDS.unread_s
"""Time a caller may take to read such an answer."""

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_NO_STORE = (b"cache-control", b"no-store")


class ApiResponseWriter:
    """Wraps `send`: adds the headers that every answer has, and remembers the status.

    A large answer to an operator reserves memory until it is sent; without free memory it is
    refused.
    """

    __slots__ = ("_clock", "_exchange", "_is_over", "_room", "_send", "status")

    def __init__(
        self, send: Send, exchange: RequestContext, clock: Clock, room: MemoryBudget
    ) -> None:
        self._send = send
        self._clock = clock
        self._exchange = exchange
        self._room = room
        self._is_over = False
        self.status = 0

    async def __call__(self, message: AsgiMessage) -> None:
        """Send a message, unless the answer was refused or abandoned."""
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._exchange.answer_share is None:
            await self._send(message)
        else:
            await self._send_in_pieces(message)

    async def _begin(self, message: AsgiMessage) -> None:
        exchange = self._exchange
        try:
            await self._hold(message)
        except Unavailable as error:
            await refuse(self, error, exchange.request_id)
            self._is_over = True
            return
        self.status = message["status"]
        headers = message["headers"] = [
            *message["headers"],
            (b"x-request-id", exchange.request_id.encode()),
            date_header(self._clock.now()),
            *_ALWAYS,
            *exchange.answer_headers,
        ]
        if not any(name == b"cache-control" for name, _ in headers):
            headers.append(_NO_STORE)
        await self._send(message)

    async def _hold(self, message: AsgiMessage) -> None:
        """Reserve memory for what is about to be sent. Raises `Unavailable`."""
        whose = self._exchange.counted_for
        length = next((value for name, value in message["headers"] if name == b"content-length"), 0)
        if whose is not None and int(length) > SMALL_BYTES:
            share = Reservation(self._room, whose)
            await share.take(int(length))
            self._exchange.answer_share = share

    async def _send_in_pieces(self, message: AsgiMessage) -> None:
        """Send each piece once the one before is sent; stop if that takes too long.

        The server ends the connection of an incomplete answer.
        """
        body, is_more = message.get("body", b""), message.get("more_body", False)
        try:
            async with asyncio.timeout(UNREAD_S):
                for start in range(0, max(1, len(body)), PIECE_BYTES):
                    piece, end = body[start : start + PIECE_BYTES], start + PIECE_BYTES
                    more = {"body": piece, "more_body": is_more or end < len(body)}
                    await self._send({"type": message["type"], **more})
        except TimeoutError:
            self._is_over = True
