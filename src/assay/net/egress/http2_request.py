"""An HTTP/2 request on a guarded connection of its own: gRPC (ADR 0040)."""

import ssl

import httpcore2

from assay.net.body import DecodedBody, read_body
from assay.net.egress.ports import EgressError, Failure, Limits

Headers = list[tuple[bytes, bytes]]

_HTTP1 = frozenset({b"host", b"connection", b"content-length", b"accept", b"accept-encoding"})
"""Headers that gRPC clients do not send. Source: gRPC over HTTP/2, Request-Headers."""


async def exchange_http2(
    request: httpcore2.Request,
    body: bytes,
    backend: httpcore2.AsyncNetworkBackend,
    tls: ssl.SSLContext,
    limits: Limits,
) -> tuple[int, Headers, DecodedBody, Headers]:
    """Return status, headers, body and trailers of the answer. Raises as the pool does.

    `backend` checks the address and opens a connection, which is closed at the end. Nothing is
    decompressed: a gRPC message states itself whether it is compressed.
    """
    from assay.net.egress.http2 import Http2Exchange  # noqa: PLC0415 - an optional library

    stream = await _connected(request, backend, tls, min(limits.connect_s, limits.total_s))
    try:
        made = Http2Exchange(stream, limits.header_bytes_max, limits.total_s)
        await made.send(_headers(request), body)
        read = await read_body(
            made.chunks(), "", limits.body_bytes_max, limits.decompression_ratio_max
        )
    finally:
        await stream.aclose()
    return made.status, made.headers, read, made.trailers


async def _connected(
    request: httpcore2.Request,
    backend: httpcore2.AsyncNetworkBackend,
    tls: ssl.SSLContext,
    connect_s: float,
) -> httpcore2.AsyncNetworkStream:
    """Connect to a checked address; with TLS, only to a server that proves the host's name."""
    host, port = request.url.host.decode("ascii"), request.url.port or 0
    stream = await backend.connect_tcp(host, port, connect_s)
    if request.url.scheme != b"https":
        return stream
    tls.set_alpn_protocols(["h2"])
    secured = await stream.start_tls(tls, host, connect_s)
    if secured.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
        await secured.aclose()
        raise EgressError(Failure.PROTOCOL, f"{host} does not speak HTTP/2")
    return secured


def _headers(request: httpcore2.Request) -> Headers:
    """Return the head of a gRPC request, in the order of the stock client."""
    sent = [(name.lower(), value) for name, value in request.headers]
    said = [(name, value) for name, value in sent if name not in _HTTP1]
    typed = [(name, value) for name, value in said if name == b"content-type"]
    return [
        (b":path", request.url.target),
        (b":authority", dict(sent)[b"host"]),
        (b":method", request.method),
        (b":scheme", request.url.scheme),
        *typed,
        (b"te", b"trailers"),
        *(one for one in said if one not in typed),
    ]
