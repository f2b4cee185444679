"""Whom a network address stands for."""

from ipaddress import IPv4Address, IPv6Address, ip_address


def caller_of(address: str) -> str:
    """Whom an address stands for: an IPv6 network of 64 bits is one caller (RFC 6177)."""
    parsed = parsed_address(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return address if parsed is None else str(parsed)


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
