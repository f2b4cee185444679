"""The body of a wrapper call as it arrives, and whether its caller is still there."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, RequestTimeout
from assay.server.request_context import Receive, RequestContext
from assay.wrappers.model import WrapperTooLarge

PIECE_S: Final = 15.0
"""How long the next piece of a body may take."""

SLOW_S: Final = 30.0
"""How long a caller may keep us waiting for a body in all, whatever it sends."""

BYTES_PER_S: Final = 1024
"""What a caller has to send for each further second: less than a bad line carries. It holds a
connection to the upstream meanwhile. The time that the upstream takes to read is not counted."""

WATCH_AFTER_S: Final = 0.05
"""When an answer takes longer than this, the caller's going away is listened for."""


class WrapperBody:
    """The request's body, and whether the caller is still there."""

    def __init__(self, receive: Receive, exchange: RequestContext, clock: Clock) -> None:
        self._receive = receive
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        self.is_gone = False
        self.length = _length(exchange)
        """As declared; None for a body in chunks, 0 for none."""

    async def pieces(self, bytes_max: int) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `WrapperTooLarge`, `RequestTimeout`, `InvalidRequest`."""
        size, waited_s = 0, 0.0
        while not self._ended:
            asked_s = self._clock.monotonic_s()
            try:
                async with asyncio.timeout(PIECE_S):
                    message = await self._receive()
            except TimeoutError:
                raise RequestTimeout("The body stopped arriving.") from None
            waited_s += self._clock.monotonic_s() - asked_s
            if message["type"] == "http.disconnect":
                self.is_gone = True
                raise InvalidRequest("The body ended before it was whole.")
            self._ended = not message.get("more_body", False)
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > bytes_max:
                raise WrapperTooLarge(
                    f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max
                )
            if waited_s > SLOW_S + size / BYTES_PER_S and not self._ended:
                raise RequestTimeout(
                    f"The body arrives too slowly: send at least {BYTES_PER_S} bytes a second."
                )
            yield piece

    def watch_later(self, task: "asyncio.Task[Any] | None") -> None:
        """In a moment, and once the body is in, a caller that goes away ends `task`."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(WATCH_AFTER_S, self._watch, task)

    def unwatch(self) -> None:
        """Stop listening."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._timer = self._task = None  # which know this one: a circle is left to the collector

    def _watch(self, task: "asyncio.Task[Any] | None") -> None:
        if task is None:
            return
        if self._ended or self.length == 0:
            self._task = asyncio.get_running_loop().create_task(self._listen(task))
        else:  # whoever reads the body hears of it; look again when it is in
            self.watch_later(task)

    async def _listen(self, task: "asyncio.Task[Any]") -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
        self.is_gone = True
        task.cancel()


def _length(exchange: RequestContext) -> int | None:
    """The declared length; None for a body in chunks, 0 for none."""
    if "transfer-encoding" in exchange.headers:
        return None
    declared = exchange.headers.get("content-length", "0").strip(" \t")
    # What the server's parser took for a length and we do not read is a body all the same.
    return int(declared[:20]) if declared.isdecimal() else None
