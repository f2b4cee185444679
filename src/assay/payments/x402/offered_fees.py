"""When a transaction has to be replaced, and what its replacement offers at least.

Source: EIP-1559.
"""

from assay.payments.gas_rules import FeePerGas

BUMP = 8
"""A replacement offers an eighth more of both, 12.5 %. Nodes want 10 %. Source: geth and reth,
`--txpool.pricebump`."""


def replacing(offered: FeePerGas) -> FeePerGas:
    """The least that replaces a transaction that offered so much."""
    return FeePerGas(*(wei + wei // BUMP + 1 for wei in offered))


def can_be_mined(most: int, base_fee: int) -> bool:
    """Whether it can be in the next block, whose base fee may be an eighth higher."""
    return most * BUMP >= base_fee * (BUMP + 1)
