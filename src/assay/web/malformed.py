"""Requests that a parser takes and a proxy must not, and what is said to those that are none."""

from collections.abc import Sequence

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from assay.kit.errors import InvalidRequest
from assay.kit.ids import new_id
from assay.web.bounds import Bounds
from assay.web.errors import envelope

_HOSTLESS = frozenset({"0.9", "1.0"})
"""Versions that know no Host."""

_SERVERS_OWN = "Invalid HTTP request received."


class Unsound(ValueError):
    """Raised within a parser, which stops then: the server answers 400."""


def require_sound(headers: Sequence[tuple[bytes, bytes]], version: str) -> None:
    """Raises `Unsound` for a head that is refused though it could be parsed.

    Two hosts, or none, could be read as another's request by whoever stands before or behind us; a
    coding beneath the chunks would reach the upstream undone and unsaid. Source: RFC 9112, sections
    3.2 and 6.1.
    """
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise Unsound
    if hosts > 1 or (hosts == 0 and version not in _HOSTLESS):
        raise Unsound


def bad_request(message: str) -> bytes:
    """The whole answer, after which the connection ends; in the one envelope, as any refusal."""
    request_id = new_id()
    if message == _SERVERS_OWN:
        message = "This is no well-formed request: it has one Host and no coding but chunked."
    body = envelope(InvalidRequest(message), request_id)
    return b"".join(
        (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n",
            b"cache-control: no-store\r\nx-content-type-options: nosniff\r\n",
            b"x-request-id: %b\r\ncontent-length: %d\r\n" % (request_id.encode(), len(body)),
            b"connection: close\r\n\r\n",
            body,
        )
    )


class StrictProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, in the envelope and within bounds where it has none of its own."""

    _bounds: Bounds
    _in_body = False
    """Whether a body is still to come."""

    @override
    def send_400_response(self, msg: str) -> None:
        self.transport.write(bad_request(msg))
        self.transport.close()

    @override
    def on_headers_complete(self) -> None:
        self._in_body = True
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        if self._in_body:  # each piece of it puts off the end of an idle connection, for ever
            self.loop.call_later(self._bounds.linger_s, self._end_unfinished, self.cycle)
        super().on_response_complete()

    def _end_unfinished(self, cycle: RequestResponseCycle) -> None:
        """Close a connection on which an answered request's body is still coming."""
        if self._in_body and self.cycle is cycle and cycle.response_complete:
            self.transport.close()
