"""Addresses of callers, services and wallets, Base58, and Ethereum's hash.

Base58 is the form in which Bitcoin and Solana write bytes. Source: draft-msporny-base58-03, section
2.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

import sha3  # pyright: ignore[reportMissingTypeStubs]

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""The digits of Base58: without 0, O, I and l."""

_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_CHARS_MAX = 128
"""Longest text that is decoded: decoding takes time with the square of the length."""


def decode(text: str) -> bytes | None:
    """Return the bytes, or None if the text is not Base58 or is longer than any encoded key."""
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
    """Return the one text that `decode` reads as these bytes."""
    number = int.from_bytes(data, "big")
    text = ""
    while number:
        number, value = divmod(number, 58)
        text = ALPHABET[value] + text
    zeros = len(data) - len(data.lstrip(b"\0"))
    return ALPHABET[0] * zeros + text


def keccak256(data: bytes) -> bytes:
    """Return the 32 bytes of Keccak-256: padded as before FIPS 202.

    Source: Yellow Paper, appendix B.
    """
    return sha3.keccak_256(data).digest()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::\d{0,5})?", re.ASCII)
_WITH_PORT = re.compile(r"[\d.]+:\d{0,5}", re.ASCII)
_NETWORK_BITS: Final = {4: 24, 6: 48}


@lru_cache(maxsize=4096)
def caller_of(address: str) -> str:
    """Return the caller of an address: an IPv6 network of 64 bits is one caller (RFC 6177)."""
    parsed = parsed_address(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return address if parsed is None else str(parsed)


def network_around(address: str) -> str:
    """Return the network that usually belongs to one customer: 24 bits of IPv4, 48 bits of IPv6.

    It contains every address that `caller_of` treats as the same caller. A text that is not an
    address stands for itself.
    """
    parsed = parsed_address(address)
    if parsed is None:
        return address
    return str(ip_network((parsed, _NETWORK_BITS[parsed.version]), strict=False))


def address_of_hop(text: str) -> str | None:
    """Return the address in one entry of `X-Forwarded-For`, or None.

    Some proxies append a port, and then put an IPv6 address into brackets.
    """
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        text = bracketed[1]
    elif _WITH_PORT.fullmatch(text) is not None:
        text = text.partition(":")[0]
    return None if parsed_address(text) is None else text


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text, or None.

    An IPv4-mapped IPv6 address is read as the IPv4 address (RFC 4291, section 2.5.5.2). Otherwise
    all IPv4 callers would share one network of 64 bits: they would count as one caller, and be in
    no proxy's network.
    """
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


def is_confidential(url: str) -> bool:
    """Return whether nobody between can read what is sent to an http(s) address.

    It is https, or names loopback. Raises `ValueError` if it is no address.
    """
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"
