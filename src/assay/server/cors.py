"""Cross-origin calls of the API from the origins in `ASSAY_CORS_ORIGINS`.

A browser's own credentials (cookies) are never allowed: an API key, a dashboard token or a session
is sent in a header. Source: the Fetch standard, section 3.3 (CORS protocol).
"""

from collections.abc import Sequence
from typing import Final

from assay.common.http_heads import ANY
from assay.server.request_context import CHECK_PREFIX, AsgiScope, RequestContext, Send

MAX_AGE_S: Final = 600
"""How long a browser may cache a preflight."""

METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"

_REQUEST_FIELDS: Final = (
    b"authorization, content-type, if-match, x-agent-address, x-agent-challenge, x-agent-id,"
    b" x-agent-session, x-agent-signature, x-chain, x-request-id"
)
_EXPOSED: Final = (
    b"allow, content-disposition, etag, retry-after, ratelimit-limit, ratelimit-remaining,"
    b" ratelimit-reset, www-authenticate, x-agent-session, x-request-id"
)

_VARY: Final = (b"vary", b"Origin")


class Cors:
    """The CORS headers for pages of other origins."""

    def __init__(self, origins: Sequence[str]) -> None:
        """Allow `origins` in the spelling of browsers, or `*`; without any, send no headers."""
        self._origins = frozenset(origins)

    def headers(self, exchange: RequestContext) -> list[tuple[bytes, bytes]]:
        """Return the headers of every response to this request, refusals included."""
        if not self._origins:
            return []
        allowed = self._allowed(exchange)
        if allowed is None:
            return [_VARY]
        return [*allowed, (b"access-control-expose-headers", _EXPOSED)]

    def is_preflight(self, scope: AsgiScope, exchange: RequestContext) -> bool:
        """Return whether the request is a preflight from an allowed origin.

        A proxy's check never is: some proxies let every 2xx in.
        """
        return (
            scope["method"] == "OPTIONS"
            and not scope["path"].startswith(CHECK_PREFIX)
            and "access-control-request-method" in exchange.headers
            and bool(self._origins)
            and self._allowed(exchange) is not None
        )

    @staticmethod
    async def answer(send: Send) -> None:
        """Answer a preflight; `headers` are added to it as to any other response."""
        headers = [
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", _REQUEST_FIELDS),
            (b"access-control-max-age", b"%d" % MAX_AGE_S),
        ]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _allowed(self, exchange: RequestContext) -> list[tuple[bytes, bytes]] | None:
        origin = exchange.headers.get("origin")
        if origin is None:
            return None
        if ANY in self._origins:
            return [(b"access-control-allow-origin", b"*")]
        if origin not in self._origins:
            return None
        return [(b"access-control-allow-origin", origin.encode("latin-1")), _VARY]
