"""Addresses of wallets, with base58 and Ethereum's hash.

Base58 as Bitcoin and Solana write bytes. Source: draft-msporny-base58-03, section 2.

The hash of Ethereum.

Whom a network address stands for.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

import sha3  # pyright: ignore[reportMissingTypeStubs]

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Without 0, O, I and l."""

_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_CHARS_MAX = 128
"""Decoding takes the square of the length."""


def decode(text: str) -> bytes | None:
    """The bytes, or None for what is no base58 or longer than anything written so."""
    if len(text) > _CHARS_MAX:
        return None
    number = 0
    for character in text:
        value = _VALUES.get(character)
        if value is None:
            return None
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip(ALPHABET[0]))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def encode(data: bytes) -> str:
    """The one text that `decode` reads as these bytes."""
    number = int.from_bytes(data, "big")
    text = ""
    while number:
        number, value = divmod(number, 58)
        text = ALPHABET[value] + text
    zeros = len(data) - len(data.lstrip(b"\0"))
    return ALPHABET[0] * zeros + text


def keccak256(data: bytes) -> bytes:
    """The 32 bytes of Keccak-256: padded as before FIPS 202. Source: Yellow Paper, appendix B."""
    return sha3.keccak_256(data).digest()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::\d{0,5})?", re.ASCII)
_WITH_PORT = re.compile(r"[\d.]+:\d{0,5}", re.ASCII)
_NETWORK_BITS: Final = {4: 24, 6: 48}


@lru_cache(maxsize=4096)
def caller_of(address: str) -> str:
    """Whom an address stands for: an IPv6 network of 64 bits is one caller (RFC 6177)."""
    parsed = parsed_address(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return address if parsed is None else str(parsed)


def network_around(address: str) -> str:
    """The network that is usually one customer's: 24 bits of IPv4, 48 bits of IPv6.

    It contains everything that `caller_of` takes for the same caller. Text that is no address
    stands for itself.
    """
    parsed = parsed_address(address)
    if parsed is None:
        return address
    return str(ip_network((parsed, _NETWORK_BITS[parsed.version]), strict=False))


def address_of_hop(text: str) -> str | None:
    """The address in a word of `X-Forwarded-For`, or None.

    Some proxies write a port behind it, and then an IPv6 address in brackets.
    """
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        text = bracketed[1]
    elif _WITH_PORT.fullmatch(text) is not None:
        text = text.partition(":")[0]
    return None if parsed_address(text) is None else text


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address in a text, or None.

    An IPv4 address in IPv6 clothes is the IPv4 address (RFC 4291, section 2.5.5.2): all of them
    share one network of 64 bits, so they would otherwise be one caller and in no proxy's network.
    """
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed
