"""Bodies of requests that are held, for the sake of a payment."""

import asyncio

from assay.kit.errors import RequestTimeout
from assay.kit.room import Share
from assay.wrapper.model import Incoming, WrapperConfig, WrapperTooLarge

HELD_BODY_S = 60.0
"""How long the body of a paid call may take: nobody keeps room from others by dribbling."""


def require_size(size: int | None, bytes_max: int) -> None:
    """Raises `WrapperTooLarge` for more bytes than that."""
    if size is not None and size > bytes_max:
        raise WrapperTooLarge(f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max)


async def read_body(incoming: Incoming, config: WrapperConfig, share: Share) -> bytes:
    """The body of a request; what is only announced takes no room.

    Raises `WrapperTooLarge` and `RequestTimeout`.
    """
    bytes_max = config.max_body_bytes
    require_size(incoming.content_length, bytes_max)
    if incoming.content_length == 0:
        return b""
    body = bytearray()
    try:
        async with asyncio.timeout(HELD_BODY_S):
            async for piece in incoming.body(bytes_max):
                body += piece
                await share.take(len(body))
    except TimeoutError:
        message = f"The body did not arrive within {HELD_BODY_S:g} seconds."
        raise RequestTimeout(message) from None
    return bytes(body)
