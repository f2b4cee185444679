"""One bounded request to an address that the operator configured, over the HTTP/1.1 client."""

from contextlib import aclosing
from dataclasses import dataclass

from assay.http1.model import Upstream, UpstreamRequest
from assay.net.body import ACCEPTED_ENCODINGS, DecodedBody, read_body
from assay.net.configured_address import configured

_ASKED = (
    (b"accept", b"application/json"),
    (b"accept-encoding", ACCEPTED_ENCODINGS.encode()),
    (b"user-agent", b"assay"),
)
_SENT = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class ExchangeBounds:
    """Bounds of a request: seconds, decoded bytes, and decoded bytes for each received byte."""

    timeout_s: float
    bytes_max: int
    ratio_max: int


async def exchange(
    client: Upstream, method: str, url: str, content: bytes, bounds: ExchangeBounds
) -> tuple[int, DecodedBody]:
    """Send a request and return the status and the decoded body, cut at the bounds.

    Content, if any, is sent as JSON. The request may be sent twice, so it must be repeatable.
    Raises `UpstreamFailed`, `BodyBroken`, and `ValueError` for an invalid address.
    """
    place = configured(url)
    request = UpstreamRequest(
        method=method,
        target=place.target,
        path_and_query=place.path_and_query,
        headers=(*_ASKED, *((_SENT,) if content else ()), *place.headers),
        body=content,
        content_length=len(content),
        timeout_s=bounds.timeout_s,
        repeatable=True,
    )
    reply = await client.send(request)
    try:
        encoding = b",".join(v for n, v in reply.headers if n == b"content-encoding")
        async with aclosing(reply.body()) as pieces:
            body = await read_body(
                pieces, encoding.decode("latin-1"), bounds.bytes_max, bounds.ratio_max
            )
    finally:
        reply.close()
    return reply.status, body
