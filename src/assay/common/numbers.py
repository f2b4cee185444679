"""Reads whole numbers in texts of strangers strictly and within bounds; amounts of money. Pure.

Python's own `int` accepts signs, white space, underscores, digits of every script and texts of any
length. These functions read what nodes, facilitators and callers write instead.
"""

import re
from decimal import Decimal

_HEX = re.compile(r"0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[0-9]+")

_HEX_PREFIX = len("0x")
_BITS_PER_DIGIT = 4


class NotANumber(ValueError):
    """The value is not a number of the expected form and range."""


def hex_number(value: object, bits: int) -> int:
    """Return the number of `0x` and hexadecimal digits, in either case, below 2**`bits`.

    Leading zeros are accepted, as in a 32-byte word, up to the digits that a number of `bits` bits
    needs. Raises `NotANumber` for anything else, also for `0x` alone.
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
    """Return the number of ASCII digits, from 0 to `largest`.

    It has at most as many digits as `largest`, leading zeros included. Raises `NotANumber`.
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
    """Return a decoded JSON number that is whole, from 0 to `largest`. Raises `NotANumber`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise NotANumber(f"not a whole number from 0 to {largest}")
    return value


DECIMALS = 6
"""Decimals of every asset in `payments.networks`. Source: x402.md#assets;
mpp.md#tempo-constants."""

MICRO = 1_000_000
"""Micro-dollars in a dollar."""


def usd(micro: int) -> str:
    """Return micro-dollars as dollars with six places (conventions.md#time-money-and-ids)."""
    return f"{Decimal(micro).scaleb(-DECIMALS):.6f}"
