"""Response cycles for callers without chunked coding, and for requests with an unread body."""

import sys
from collections.abc import Callable
from typing import Any

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

CLOSE = (b"connection", b"close")


class UnchunkedCycle(RequestResponseCycle):
    """Answers an HTTP/1.0 caller, which does not support chunked coding.

    A body without a length ends with the connection (RFC 9112, section 6.3).
    """

    _is_open_ended = False

    @override
    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            self._is_open_ended = b"content-length" not in names
            if self._is_open_ended:
                self.chunked_encoding, self.expected_content_length = False, sys.maxsize
        elif self._is_open_ended and not message.get("more_body", False):
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


class EarlyCycle(RequestResponseCycle):
    """Answers a caller whose body may still be arriving.

    If part of the body will not be read, the answer announces the end of the connection: a proxy
    that has written the body to its socket would send the next request, from any caller, after it.
    """

    is_left_unread: Callable[[], bool]

    @override
    async def send(self, message: Any) -> None:
        is_early = message["type"] == "http.response.start" and self.more_body
        if not is_early or not self.keep_alive or not self.is_left_unread():
            await super().send(message)
            return
        ending: Any = {**message, "headers": [*message["headers"], CLOSE]}
        await super().send(ending)
        # If it were closed at once, it would be reset before the caller reads the answer.
        self.keep_alive = True


class ExpectingCycle(EarlyCycle):
    """Answers a caller that waits for `100 Continue` before it sends its body.

    If it is answered without that, it may send its body or its next request. The connection ends,
    so that neither is taken for the other. Source: RFC 9110, section 10.1.1.
    """

    @override
    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and self.waiting_for_100_continue:
            self.keep_alive = self.keep_alive and not self.more_body
        await super().send(message)
