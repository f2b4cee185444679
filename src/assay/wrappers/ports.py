"""What wrappers need from outside."""

from typing import Final, Literal, Protocol

from assay.http1.model import Caller

QUOTES_MAX: Final = 100
"""Revisions of one wrapper, price and network that a payment is compared with."""


ChangeResult = Literal["changed", "overlaps", "stale"]


class FastPathCall(Protocol):
    """What differs between two requests of the same bytes, and how this one went."""

    client_address: str
    caller: Caller
    request_id: str
    begun_s: float
    status: int
    outcome: str
    bytes_out: int
