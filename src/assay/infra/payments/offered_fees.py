"""What a transaction offers for its gas: at first, and in the place of one that offered too little.

Source: EIP-1559.
"""

from typing import NamedTuple

from assay.chains.model import ChainUnavailable

GAS_PRICE_MAX = 10**12
"""Most that a node may say a gas costs, in wei: a thousand gwei, which no network we settle on has
come near. What is offered is taken, so a node that lies could spend our key's money."""

BUMP = 8
"""A replacement offers an eighth more of both, 12.5 %. Nodes want 10 %. Source: geth and reth,
`--txpool.pricebump`."""


class Fees(NamedTuple):
    """Wei per gas: what is offered beyond the base fee, and the most in all."""

    priority: int
    most: int


def believable(price: int) -> int:
    """A price of gas. Raises `ChainUnavailable` for one that cannot be."""
    if price > GAS_PRICE_MAX:
        raise ChainUnavailable("The chain's gas price cannot be.", detail=f"{price} wei")
    return price


def fees_at(price: int) -> Fees:
    """Twice the price of now, which outlasts six full blocks."""
    tip = max(1, min(price, price // 10 + 1))
    return Fees(tip, price * 2 + tip)


def replacing(offered: Fees, price: int) -> Fees:
    """What replaces a transaction that offered so much, at the price of now."""
    wanted = fees_at(price)
    return Fees(
        max(wanted.priority, offered.priority + offered.priority // BUMP + 1),
        max(wanted.most, offered.most + offered.most // BUMP + 1),
    )


def can_be_mined(most: int, base_fee: int) -> bool:
    """Whether it can be in the next block, whose base fee may be an eighth higher."""
    return most * BUMP >= base_fee * (BUMP + 1)
