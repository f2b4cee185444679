"""Answers without chunks, for callers that know none."""

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
