"""Reading a whole body into memory, of which nobody may take much.

A caller without a credential shares one room with all such callers, an operator one with all
operators; of either, one caller has a sixteenth. What is held is given back when the request has
been answered, or has gone.
"""

import asyncio
from typing import Final

from assay.common.addresses import caller_of
from assay.common.errors import InvalidRequest, RequestTimeout, TooLarge
from assay.common.memory_budget import MemoryBudget, Reservation
from assay.server.request_context import (
    SMALL_BYTES,
    AsgiScope,
    Receive,
    RequestContext,
    exchange_of,
)

BODY_S = 15.0
"""How long a body may take to arrive."""

ANONYMOUS_BYTES: Final = 64 * 1024 * 1024
KEYED_BYTES: Final = 128 * 1024 * 1024
PARTS: Final = 16

CREDENTIAL_BODY_BYTES: Final = 32 * 1024
"""The largest body that brings a password, a token or a signed challenge: the longest signature
that a contract wallet may have is half of it."""


class BodyRooms:
    """The rooms for bodies of callers without a credential, and of operators."""

    def __init__(self) -> None:
        self.anonymous = MemoryBudget(ANONYMOUS_BYTES, parts=PARTS)
        self.keyed = MemoryBudget(KEYED_BYTES, parts=PARTS)

    def share(self, exchange: RequestContext) -> Reservation:
        """What the request's caller holds of its room: nothing yet."""
        if exchange.counted_for is not None:
            return Reservation(self.keyed, exchange.counted_for, SMALL_BYTES)
        return Reservation(self.anonymous, caller_of(exchange.client_address), SMALL_BYTES)


def body_bytes_max(scope: AsgiScope, usual: int) -> int:
    """The largest body that this request may have."""
    if scope["path"] in CREDENTIAL_IN_BODY:
        return min(usual, CREDENTIAL_BODY_BYTES)
    return usual


async def read_body(scope: AsgiScope, receive: Receive, bytes_max: int) -> bytes:
    """The whole body.

    Raises `TooLarge` beyond `bytes_max`, `RequestTimeout` when it is slow, `InvalidRequest` when it
    is cut off, and `Unavailable` while its caller, or all callers, send too many.
    """
    exchange = exchange_of(scope)
    declared = exchange.headers.get("content-length", "0").strip(" \t")
    if not declared.isdecimal():
        raise InvalidRequest("The header Content-Length is not a number.")
    if int(declared[:20]) > bytes_max:
        raise _too_large(bytes_max)
    if declared == "0" and "transfer-encoding" not in exchange.headers:
        return b""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":  # half a request is no request
                    raise InvalidRequest("The body ended before it was whole.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > bytes_max:
                    raise _too_large(bytes_max)
                await _hold(exchange, len(body))
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {BODY_S:g} seconds.") from None
    return bytes(body)


def give_back(exchange: RequestContext) -> None:
    """Give back what is held for the request's body and its answer."""
    for share in (exchange.body_share, exchange.answer_share):
        if share is not None:
            share.close()


async def _hold(exchange: RequestContext, size: int) -> None:
    if size <= SMALL_BYTES:
        return
    if exchange.body_share is None and exchange.bodies is not None:
        exchange.body_share = exchange.bodies.share(exchange)
    if exchange.body_share is not None:
        await exchange.body_share.take(size)


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max)


CREDENTIAL_IN_BODY: Final = frozenset(
    {
        "/operator/login",
        "/operator/password/reset",
        "/operator/email/verify",
        "/operator/key/verify",
    }
)
"""A password, a token or a signature comes in the body, and each of these operations bounds the
guesses at it by itself, before it hashes or asks a chain. Looking the account up comes first."""
