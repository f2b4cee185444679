"""Addresses that may be paid: what is sent to a wrong one is gone."""

import re
from collections.abc import Collection
from typing import Final

from assay.common.keccak import keccak256

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_LOWEST: Final = 0x10000
"""Below it are the zero address, precompiles and `0x..dEaD`: nobody has the key of one."""

_BURNT: Final = frozenset(
    {
        "0xdead000000000000000042069420694206942069",
        "0xdeaddeaddeaddeaddeaddeaddeaddeaddeaddead",
        "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        "0xffffffffffffffffffffffffffffffffffffffff",
    }
)
"""Where tokens are sent to be lost, and what stands for ether. Source: labels of Etherscan."""


def payee_problem(address: str, assets: Collection[str] = ()) -> str | None:
    """What is wrong with an address that is to be paid, or None.

    `assets` are the lower-case contracts of the assets that it may be paid in. An address in one
    case carries no checksum; one in two has to have the right one. Source: EIP-55.
    """
    if not _ADDRESS.fullmatch(address):
        return "must be 0x and 40 hexadecimal digits"
    lower = address.lower()
    if int(address, 16) < _LOWEST or lower in _BURNT:
        return "is an address that nobody has the key of: what it is paid is lost"
    if lower in assets:
        return "is the contract of the asset itself: what it is paid is lost"
    digits = address[2:]
    if digits not in {digits.lower(), digits.upper()} and address != checksummed(address):
        return "has a wrong checksum (EIP-55): a digit of it is mistyped"
    return None


def checksummed(address: str) -> str:
    """The address as EIP-55 spells it."""
    digits = address[2:].lower()
    digest = keccak256(digits.encode()).hex()
    upper = "89abcdef"
    return "0x" + "".join(
        digit.upper() if place in upper else digit
        for digit, place in zip(digits, digest, strict=False)
    )
