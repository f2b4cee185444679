"""Cross-origin calls of a wrapper from a browser, where its operator has named origins. Pure.

Credentials of a browser (cookies) are never allowed: callers identify themselves and pay by
headers. Source: the Fetch standard, section 3.3 (CORS protocol).
"""

import re
from collections.abc import Awaitable, Callable

from assay.common.http_heads import ANY, HeaderPairs
from assay.wrappers.model import (
    InboundRequest,
    RouteMatch,
    WrapperConfig,
    WrapperNotFound,
    WrapperResponse,
)

MAX_AGE_S = 600
"""How long a browser may remember a preflight."""

PREFIX = b"access-control-"
"""Header fields of the CORS protocol: the wrapper's to say, where it has origins."""

_FIELD_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]{1,4096}")
_NO_CONTENT = 204
_VARY = (b"vary", b"Origin")
_EXPOSE = (b"access-control-expose-headers", b"*")


def preflighted_method(incoming: InboundRequest) -> str | None:
    """The method that a preflight asks about; None for what is no preflight."""
    if incoming.method != "OPTIONS" or _first(incoming, b"origin") is None:
        return None
    method = _first(incoming, b"access-control-request-method")
    return None if method is None else method.decode("latin-1")


async def answer_preflight(
    operator_id: str,
    incoming: InboundRequest,
    find: Callable[[str, str, str], Awaitable[RouteMatch]],
) -> WrapperResponse | None:
    """The answer to a browser that asks before it calls, where the wrapper has origins.

    It is no call: it asks for no payment and no trust, and leaves no row. `find` is `Routes.find`.
    """
    method = preflighted_method(incoming)
    if method is None:
        return None
    try:
        found = await find(operator_id, method, incoming.path)
    except WrapperNotFound:
        return None
    config = found.route.config
    if not config.cors_origins:
        return None
    return WrapperResponse(_NO_CONTENT, _preflight_headers(config, incoming, method), b"")


def _preflight_headers(config: WrapperConfig, incoming: InboundRequest, method: str) -> HeaderPairs:
    """The answer to a preflight of a wrapper with origins; an origin not named gets no leave."""
    allowed = _allowed(config, incoming)
    if allowed is None:
        return [_VARY]
    headers = [
        *allowed,
        (b"access-control-allow-methods", method.encode("latin-1")),
        (b"access-control-max-age", b"%d" % MAX_AGE_S),
    ]
    asked = _first(incoming, b"access-control-request-headers")
    if asked is not None and _FIELD_NAMES.fullmatch(asked):
        headers.append((b"access-control-allow-headers", asked))
    return headers


def cors_headers(config: WrapperConfig, incoming: InboundRequest) -> HeaderPairs:
    """What every answer of the wrapper says to a browser, refusals included; () without origins."""
    if not config.cors_origins:
        return ()
    allowed = _allowed(config, incoming)
    return [_VARY] if allowed is None else [*allowed, _EXPOSE]


def _allowed(config: WrapperConfig, incoming: InboundRequest) -> list[tuple[bytes, bytes]] | None:
    origin = _first(incoming, b"origin")
    if ANY in config.cors_origins:
        return [(b"access-control-allow-origin", b"*")]
    if origin is None or origin.decode("latin-1") not in config.cors_origins:
        return None
    return [(b"access-control-allow-origin", origin), _VARY]


def _first(incoming: InboundRequest, name: bytes) -> bytes | None:
    return next((value for key, value in incoming.headers if key == name), None)
