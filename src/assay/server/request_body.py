"""Reads request bodies into memory, within bounds per caller.

Callers without a credential share one buffer budget, and all operators share another; of either,
one caller may use a sixteenth. The reservation is released when the request has been answered or
cancelled.
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
"""Time limit for a body to arrive."""

ANONYMOUS_BYTES: Final = 64 * 1024 * 1024
KEYED_BYTES: Final = 128 * 1024 * 1024
PARTS: Final = 16

CREDENTIAL_BODY_BYTES: Final = 32 * 1024
"""The largest body with a password, a token or a signed challenge: the longest allowed signature of
a contract wallet takes half of it."""


class BodyRooms:
    """The buffer budgets for callers without a credential, and for operators."""

    def __init__(self) -> None:
        self.anonymous = MemoryBudget(ANONYMOUS_BYTES, parts=PARTS)
        self.keyed = MemoryBudget(KEYED_BYTES, parts=PARTS)

    def share(self, exchange: RequestContext) -> Reservation:
        """Return an empty reservation of the caller's budget."""
        if exchange.counted_for is not None:
            return Reservation(self.keyed, exchange.counted_for, SMALL_BYTES)
        return Reservation(self.anonymous, caller_of(exchange.client_address), SMALL_BYTES)


def body_bytes_max(scope: AsgiScope, usual: int) -> int:
    """Return the largest body that this request may have."""
    if scope["path"] in CREDENTIAL_IN_BODY:
        return min(usual, CREDENTIAL_BODY_BYTES)
    return usual


async def read_body(scope: AsgiScope, receive: Receive, bytes_max: int) -> bytes:
    """Read the whole body.

    Raises `TooLarge` beyond `bytes_max`, `RequestTimeout` when it is slow, `InvalidRequest` when it
    is truncated, and `Unavailable` while its caller, or all callers, use up their budget.
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
                if message["type"] == "http.disconnect":  # A partial request is invalid.
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
    """Release the reservations for the request's body and its answer."""
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
"""Operations whose body holds a password, a token or a signature. Each bounds the guesses at it
itself, before it hashes or queries a chain. Looking the account up comes first."""
