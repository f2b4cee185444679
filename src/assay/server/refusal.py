"""Refusals written before any application has seen a request."""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from assay.common.errors import ServiceError
from assay.common.ids import new_id
from assay.server.errors import envelope, error_headers, status_of

_ALLOW = (b"allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")


def refusal(error: ServiceError, *, is_head: bool = False) -> bytes:
    """Return the whole response, in the error envelope; the connection ends after it.

    A HEAD request gets only its head.
    """
    request_id = new_id()
    body = envelope(error, request_id)
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        *error_headers(error),
    ]
    if error.code == "method_not_allowed":
        headers.append(_ALLOW)
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"".join((STATUS_LINE[status_of(error)], lines, b"\r\n", b"" if is_head else body))
