"""Bodies of requests: held for the sake of a payment, sent at once, or passed on as they come."""

import asyncio
from collections.abc import AsyncIterator

from assay.common.errors import RequestTimeout
from assay.common.memory_budget import Reservation
from assay.wrappers.model import InboundRequest, PayableRequest, WrapperConfig, WrapperTooLarge

BUFFERED_BODY_S = 60.0
"""How long the body of a paid call may take: nobody keeps room from others by dribbling."""

SMALL_BODY_BYTES = 64 * 1024
"""A body up to this size is read before the upstream is called, and sent in one go."""


def require_size(size: int | None, bytes_max: int) -> None:
    """Raises `WrapperTooLarge` for more bytes than that."""
    if size is not None and size > bytes_max:
        raise WrapperTooLarge(f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max)


async def read_body(incoming: InboundRequest, config: WrapperConfig, share: Reservation) -> bytes:
    """The body of a request; what is only announced takes no room.

    Raises `WrapperTooLarge` and `RequestTimeout`.
    """
    bytes_max = config.max_body_bytes
    require_size(incoming.content_length, bytes_max)
    if incoming.content_length == 0:
        return b""
    body = bytearray()
    try:
        async with asyncio.timeout(BUFFERED_BODY_S):
            async for piece in incoming.body(bytes_max):
                body += piece
                await share.take(len(body))
    except TimeoutError:
        message = f"The body did not arrive within {BUFFERED_BODY_S:g} seconds."
        raise RequestTimeout(message) from None
    return bytes(body)


async def body_to_send(paid: PayableRequest) -> tuple[bytes | AsyncIterator[bytes], int | None]:
    """The body: in hand already, read now because it is small, or passed on as it comes."""
    if paid.body is not None:
        return paid.body, len(paid.body)
    incoming, bytes_max = (
        paid.admitted.matched.incoming,
        paid.admitted.matched.config.max_body_bytes,
    )
    length = incoming.content_length
    if length == 0:
        return b"", 0
    if length is not None and length <= SMALL_BODY_BYTES:
        whole = b"".join([piece async for piece in incoming.body(bytes_max)])
        return whole, len(whole)
    return incoming.body(bytes_max), length
