"""Amounts of money, as numbers and as texts."""

from decimal import Decimal

DECIMALS = 6
"""Of every asset in `payments.networks`. Source: x402.md#assets; mpp.md#tempo-constants."""

MICRO = 1_000_000
"""Millionths in a dollar."""


def usd(micro: int) -> str:
    """Micro-dollars as dollars with six places (conventions.md#time-money-and-ids)."""
    return f"{Decimal(micro).scaleb(-DECIMALS):.6f}"
