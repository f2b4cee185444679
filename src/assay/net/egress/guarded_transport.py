"""Transports that let client libraries (MCP: httpx2, A2A: httpx) use any `EgressClient`.

Replies are read whole within the limits. That suits event streams too: the answer to a POST ends
its stream (MCP specification, transports), and one that never ends is a time-out, as intended.
"""

from collections.abc import Mapping, Sequence

import httpx
import httpx2
from typing_extensions import override

from assay.net.body import EVENT_STREAM
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)

_DECODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that no longer describe a body after it was decoded and read to its end."""

_METHOD_NOT_ALLOWED = 405


class _CutOff(Exception):
    """The reply exceeded the limit: a truncated message must not look complete."""


class SafeHttpTransport2(httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient`. Failures are raised as httpx2's own errors."""

    def __init__(self, http: EgressClient, limits: Limits) -> None:
        self._http = http
        self._limits = limits

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url, headers = str(request.url), _as_spelled(request.headers.raw)
        if _is_listening(request.method, request.headers):
            return httpx2.Response(_METHOD_NOT_ALLOWED, request=request)
        outgoing = OutboundRequest(request.method, url, headers, await request.aread())
        try:
            reply = await _send_whole(self._http, outgoing, self._limits)
        except _CutOff as error:
            raise httpx2.RemoteProtocolError(str(error), request=request) from error
        except EgressError as error:
            raise _HTTPX2_ERRORS.get(error.failure, httpx2.ConnectError)(
                str(error), request=request
            ) from error
        return httpx2.Response(
            reply.status, headers=plain_headers(reply.headers), content=reply.body, request=request
        )


class SafeHttpTransport(httpx.AsyncBaseTransport):
    """A transport for `httpx.AsyncClient`. Failures are raised as httpx's own errors."""

    def __init__(self, http: EgressClient, limits: Limits) -> None:
        self._http = http
        self._limits = limits

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url, headers = str(request.url), _as_spelled(request.headers.raw)
        if _is_listening(request.method, request.headers):
            return httpx.Response(_METHOD_NOT_ALLOWED, request=request)
        outgoing = OutboundRequest(request.method, url, headers, await request.aread())
        try:
            reply = await _send_whole(self._http, outgoing, self._limits)
        except _CutOff as error:
            raise httpx.RemoteProtocolError(str(error), request=request) from error
        except EgressError as error:
            raise _HTTPX_ERRORS.get(error.failure, httpx.ConnectError)(
                str(error), request=request
            ) from error
        return httpx.Response(
            reply.status, headers=plain_headers(reply.headers), content=reply.body, request=request
        )


_HTTPX2_ERRORS: dict[Failure, type[httpx2.TransportError]] = {
    Failure.TIMEOUT: httpx2.ReadTimeout,
    Failure.PROTOCOL: httpx2.RemoteProtocolError,
}
_HTTPX_ERRORS: dict[Failure, type[httpx.TransportError]] = {
    Failure.TIMEOUT: httpx.ReadTimeout,
    Failure.PROTOCOL: httpx.RemoteProtocolError,
}


def _as_spelled(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers in the client's order and spelling.

    Some servers tell clients apart by these.
    """
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("ascii"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _is_listening(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether this request opens a stream for unsolicited messages of the server.

    Such a stream never ends and would cost the visit its time without an answer to a probe. The
    client receives 405: the server has no such stream, a valid answer (MCP specification,
    transports, "listening for messages"). A request that resumes an answer is let through.
    """
    accepts = headers.get("accept", "")
    return method == "GET" and accepts == EVENT_STREAM and "last-event-id" not in headers


async def _send_whole(
    http: EgressClient, outgoing: OutboundRequest, limits: Limits
) -> EgressResponse:
    reply = await http.send(outgoing, limits)
    if reply.truncated:
        raise _CutOff(f"the reply is longer than {limits.body_bytes_max} bytes")
    return reply


def plain_headers(headers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the headers that still describe a decoded body."""
    return [(name, value) for name, value in headers if name not in _DECODED]
