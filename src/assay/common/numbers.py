"""Whole numbers in the texts of strangers, and amounts of money. Pure.

Python's own `int` takes signs, white space, underscores, digits of every script and texts of any
length. What nodes, facilitators and callers write is read here instead.

Amounts of money, as numbers and as texts.
"""

import re
from decimal import Decimal

_HEX = re.compile(r"0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[0-9]+")

_HEX_PREFIX = len("0x")
_BITS_PER_DIGIT = 4


class NotANumber(ValueError):
    """The value is not a number of the form and range that is asked for."""


def hex_number(value: object, bits: int) -> int:
    """The number that `0x` and hexadecimal digits stand for, in either case, below 2**`bits`.

    Zeros may stand before it, as in a 32-byte word, as long as all the digits are no more than a
    number of `bits` bits needs. Raises `NotANumber` for anything else, `0x` alone among it.
    """
    digits_max = -(-bits // _BITS_PER_DIGIT)
    if (
        not isinstance(value, str)
        or len(value) > _HEX_PREFIX + digits_max
        or not _HEX.fullmatch(value)
    ):
        raise NotANumber(f"not a hexadecimal number of at most {bits} bits")
    number = int(value, 16)
    if number >> bits:
        raise NotANumber(f"a number of more than {bits} bits")
    return number


def decimal_number(value: object, largest: int) -> int:
    """The number that ASCII digits stand for, from 0 to `largest`.

    No zeros may stand before it beyond the digits of `largest`. Raises `NotANumber`.
    """
    if (
        not isinstance(value, str)
        or len(value) > len(str(largest))
        or not _DECIMAL.fullmatch(value)
    ):
        raise NotANumber(f"not a decimal number from 0 to {largest}")
    number = int(value)
    if number > largest:
        raise NotANumber(f"a number above {largest}")
    return number


def whole_number(value: object, largest: int) -> int:
    """A decoded JSON number that is whole, from 0 to `largest`. Raises `NotANumber`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise NotANumber(f"not a whole number from 0 to {largest}")
    return value


DECIMALS = 6
"""Of every asset in `payments.networks`. Source: x402.md#assets; mpp.md#tempo-constants."""

MICRO = 1_000_000
"""Millionths in a dollar."""


def usd(micro: int) -> str:
    """Micro-dollars as dollars with six places (conventions.md#time-money-and-ids)."""
    return f"{Decimal(micro).scaleb(-DECIMALS):.6f}"
