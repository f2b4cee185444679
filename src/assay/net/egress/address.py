"""Decides which IP addresses we connect to for other parties. Pure.

Source: interface.md#blocked-addresses. The tables are explicit because `ipaddress.is_global` lets
NAT64, 6to4, mapped, unassigned and documentation (3fff::/20) ranges through and changes between
versions of Python.
"""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from typing_extensions import override

Address = IPv4Address | IPv6Address


class BlockReason(StrEnum):
    """Why an address is blocked."""

    MALFORMED = "not an IP address"
    UNSPECIFIED = "unspecified"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    CGNAT = "carrier-grade NAT"
    LINK_LOCAL = "link-local"
    METADATA = "cloud metadata"
    MULTICAST = "multicast"
    BROADCAST = "broadcast"
    DOCUMENTATION = "documentation"
    BENCHMARKING = "benchmarking"
    RESERVED = "reserved"
    SITE_LOCAL = "site-local"
    ZONE = "carries a zone id"
    MAPPED = "IPv4-mapped"
    COMPATIBLE = "IPv4-compatible"
    TRANSLATED = "IPv4-translated"
    NAT64 = "NAT64"
    SIX_TO_FOUR = "6to4"
    TEREDO = "Teredo"
    ISATAP = "ISATAP"


_OWN_NETWORK = frozenset({BlockReason.LOOPBACK, BlockReason.PRIVATE, BlockReason.CGNAT})


@dataclass(frozen=True, slots=True)
class BlockedAddress:
    """A blocked address, the reason, and the reason for an IPv4 address embedded in it."""

    address: str
    reason: BlockReason
    inside: BlockReason | None = None

    @property
    def is_own_network(self) -> bool:
        """Return whether it is an ordinary address of one's own machine or network.

        Only these may be opened for development. Metadata services, link-local, multicast and every
        form that embeds another address stay blocked.
        """
        return self.reason in _OWN_NETWORK

    @override
    def __str__(self) -> str:
        inside = f" of an address that is {self.inside}" if self.inside else ""
        return f"{self.address} is {self.reason}{inside}"


_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # AWS, Azure, Google, and most that copied them
        "169.254.170.2",  # AWS ECS task credentials
        "169.254.170.23",  # AWS EKS pod identity
        "168.63.129.16",  # Azure WireServer: a globally routed number, answered by the host
        "100.100.100.200",  # Alibaba Cloud
        "192.0.0.192",  # Oracle Cloud (classic)
        "fd00:ec2::254",  # AWS over IPv6
        "fd00:ec2::23",  # AWS EKS pod identity over IPv6
        "fd20:ce::254",  # Google Cloud over IPv6
        "fd00:42::42",  # Scaleway
    )
)
"""Sources: the providers' instance-metadata pages; egress.md#addresses."""

_IPV4 = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", BlockReason.UNSPECIFIED),
        ("10.0.0.0/8", BlockReason.PRIVATE),
        ("100.64.0.0/10", BlockReason.CGNAT),
        ("127.0.0.0/8", BlockReason.LOOPBACK),
        ("169.254.0.0/16", BlockReason.LINK_LOCAL),
        ("172.16.0.0/12", BlockReason.PRIVATE),
        ("192.0.0.0/24", BlockReason.RESERVED),
        ("192.0.2.0/24", BlockReason.DOCUMENTATION),
        ("192.31.196.0/24", BlockReason.RESERVED),
        ("192.52.193.0/24", BlockReason.RESERVED),
        ("192.88.99.0/24", BlockReason.SIX_TO_FOUR),
        ("192.168.0.0/16", BlockReason.PRIVATE),
        ("192.175.48.0/24", BlockReason.RESERVED),
        ("198.18.0.0/15", BlockReason.BENCHMARKING),
        ("198.51.100.0/24", BlockReason.DOCUMENTATION),
        ("203.0.113.0/24", BlockReason.DOCUMENTATION),
        ("224.0.0.0/4", BlockReason.MULTICAST),
        ("255.255.255.255/32", BlockReason.BROADCAST),
        ("240.0.0.0/4", BlockReason.RESERVED),
    )
)
"""First match wins. Source: IANA IPv4 Special-Purpose Address Registry (RFC 6890)."""

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""The range that IANA allocates for the public internet. Source: RFC 4291, section 2.4."""

_IPV6 = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", BlockReason.UNSPECIFIED),
        ("::1/128", BlockReason.LOOPBACK),
        ("fc00::/7", BlockReason.PRIVATE),
        ("fe80::/10", BlockReason.LINK_LOCAL),
        ("fec0::/10", BlockReason.SITE_LOCAL),
        ("ff00::/8", BlockReason.MULTICAST),
        ("2001:2::/48", BlockReason.BENCHMARKING),
        ("2001:db8::/32", BlockReason.DOCUMENTATION),
        ("3fff::/20", BlockReason.DOCUMENTATION),
        ("2001::/23", BlockReason.RESERVED),
        ("2620:4f:8000::/48", BlockReason.RESERVED),
    )
)
"""First match wins. Source: IANA IPv6 Special-Purpose Address Registry (RFC 6890)."""

_EMBEDDING = tuple(
    (IPv6Network(network), shift, flip, reason)
    for network, shift, flip, reason in (
        ("::ffff:0:0/96", 0, 0, BlockReason.MAPPED),
        ("::ffff:0:0:0/96", 0, 0, BlockReason.TRANSLATED),
        ("64:ff9b::/96", 0, 0, BlockReason.NAT64),
        ("64:ff9b:1::/48", 0, 0, BlockReason.NAT64),
        ("2002::/16", 80, 0, BlockReason.SIX_TO_FOUR),
        ("2001::/32", 0, 0xFFFFFFFF, BlockReason.TEREDO),
        ("::/96", 0, 0, BlockReason.COMPATIBLE),
    )
)
"""Where an IPv4 address sits inside an IPv6 one: network, right shift, mask to undo, reason.
Sources: RFC 4291, section 2.5.5, RFC 2765, RFC 6052, RFC 8215, RFC 3056, RFC 4380."""

_ISATAP_IDS = frozenset({0x00005EFE, 0x02005EFE})
"""The upper half of an ISATAP interface id. Source: RFC 5214, section 6.1."""


def classify(address: str | Address) -> BlockedAddress | None:
    """Return why `address` is blocked, or None if it is an ordinary public address.

    IPv6 forms that embed an IPv4 address are blocked whatever they embed: a public agent is
    reachable at its own address, and we cannot see what a translator makes of the embedded one. The
    IPv4 address is checked as well and reported in `inside`.
    """
    if isinstance(address, str):
        try:
            address = ip_address(address)
        except ValueError:
            return BlockedAddress(address[:64], BlockReason.MALFORMED)
    reason, inside = _judge(address)
    return None if reason is None else BlockedAddress(str(address), reason, inside)


def _judge(address: Address) -> tuple[BlockReason | None, BlockReason | None]:
    if address in _METADATA:
        return BlockReason.METADATA, None
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _IPV4 if address in network), None), None
    if address.scope_id is not None:
        return BlockReason.ZONE, None
    return _judge_ipv6(address)


def _judge_ipv6(address: IPv6Address) -> tuple[BlockReason | None, BlockReason | None]:
    number = int(address)
    if number > 1:
        for network, shift, flip, reason in _EMBEDDING:
            if address in network:
                return reason, _judge(_ipv4_at(number, shift, flip))[0]
    if (number >> 32) & 0xFFFFFFFF in _ISATAP_IDS:
        return BlockReason.ISATAP, _judge(_ipv4_at(number, 0, 0))[0]
    for network, reason in _IPV6:
        if address in network:
            return reason, None
    return (None if address in _GLOBAL_UNICAST else BlockReason.RESERVED), None


def _ipv4_at(number: int, shift: int, flip: int) -> IPv4Address:
    return IPv4Address(((number >> shift) & 0xFFFFFFFF) ^ flip)
