"""Answers to callers that know no chunks, and to those that wait to be told to send a body."""

import sys
from typing import Any

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class UnchunkedCycle(RequestResponseCycle):
    """Answers a caller of HTTP/1.0, which knows no chunks.

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


class ExpectingCycle(RequestResponseCycle):
    """Answers a caller that sends its body only when it is told to (`Expect: 100-continue`).

    One that is answered without being told may send its body or its next request: the connection
    ends, so that neither is taken for the other. Source: RFC 9110, section 10.1.1.
    """

    @override
    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and self.waiting_for_100_continue:
            self.keep_alive = self.keep_alive and not self.more_body
        await super().send(message)
