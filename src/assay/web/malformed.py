"""Requests that a parser takes and a proxy must not, and what is said to those that are none."""

from collections.abc import Sequence

from assay.kit.errors import InvalidRequest
from assay.kit.ids import new_id
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
