"""Amounts of money, as numbers and as texts."""

from decimal import Decimal

MICRO = 1_000_000
"""Millionths in a dollar."""


def usd(micro: int) -> str:
    """Micro-dollars as dollars with six places (decisions, section 13)."""
    return f"{Decimal(micro).scaleb(-DECIMALS):.6f}"


DECIMALS = 6
"""Of every asset in `payments.networks`. Source: each asset's `decimals()`."""
