"""Cross-origin calls of a wrapper from a browser, if its operator has named origins. Pure.

A browser's credentials (cookies) are never allowed: callers identify themselves and pay by headers.
Source: the Fetch standard, section 3.3 (CORS protocol).
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
"""Seconds for which a browser may remember a preflight."""

PREFIX = b"access-control-"
"""Header fields of the CORS protocol: the wrapper sets them if it has origins."""

_FIELD_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]{1,4096}")
_NO_CONTENT = 204
_VARY = (b"vary", b"Origin")
_EXPOSE = (b"access-control-expose-headers", b"*")


def preflighted_method(incoming: InboundRequest) -> str | None:
    """Return the method that a preflight asks about; None if it is not a preflight."""
    if incoming.method != "OPTIONS" or _first(incoming, b"origin") is None:
        return None
    method = _first(incoming, b"access-control-request-method")
    return None if method is None else method.decode("latin-1")


async def answer_preflight(
    operator_id: str,
    incoming: InboundRequest,
    find: Callable[[str, str, str], Awaitable[RouteMatch]],
) -> WrapperResponse | None:
    """Return the answer to a preflight, if the wrapper has origins.

    A preflight is not a call: it asks for no payment and no trust, and leaves no row. `find` is
    `Routes.find`.
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
    """Return the answer to a preflight; an origin that is not named is not allowed."""
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
    """Return the CORS headers of every answer of the wrapper, refusals too; () without origins."""
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
