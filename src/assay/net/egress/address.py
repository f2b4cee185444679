"""Decides which addresses and ports we connect to for other parties. Pure.

The ports that we call at addresses that other parties gave us.

Source: interface.md#blocked-addresses. The tables are explicit because `ipaddress.is_global` lets
NAT64, 6to4, mapped, unassigned and documentation (3fff::/20) ranges through and changes between
versions of Python.

Private addresses that `ASSAY_UPSTREAM_ALLOW` opens to upstreams of named operators.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from typing_extensions import override

PORT_MAX: Final = 65535

UNPRIVILEGED_PORT = 1024
"""Ports below it, other than 80 and 443, belong to other protocols. Source: RFC 6335, section 6."""

SERVICE_PORTS = frozenset(
    {1433, 1434, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3260, 3306}
    | {3389, 3659, 4045, 4190, 4369, 5060, 5061, 5432, 5433, 5672, 5900, 5901, 5902, 5903, 5984}
    | {5985, 5986, 6000, 6379, 6380, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 7199, 7474}
    | {7687, 8086, 8125, 8300, 8301, 8500, 9042, 9092, 9160, 9200, 9300, 9418, 10080, 10250, 10255}
    | {11211, 15672, 16379, 25672, 26257, 26379, 27017, 27018, 27019, 28015, 28017}
)
"""Databases, queues, caches, cluster and remote-desktop services, which are not public HTTP
endpoints.
Sources: IANA port registry, the Fetch standard's bad ports, egress.md#ports."""

_WEB_PORTS: Final = frozenset({80, 443})


def is_called(port: int) -> bool:
    """Return whether this port may belong to a public HTTP endpoint."""
    if port in _WEB_PORTS:
        return True
    return UNPRIVILEGED_PORT <= port <= PORT_MAX and port not in SERVICE_PORTS


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


AllowedNetwork: TypeAlias = IPv4Network | IPv6Network

_NEVER: Final = frozenset(
    {
        BlockReason.MALFORMED,
        BlockReason.UNSPECIFIED,
        BlockReason.MULTICAST,
        BlockReason.BROADCAST,
        BlockReason.ZONE,
    }
    | {
        BlockReason.MAPPED,
        BlockReason.COMPATIBLE,
        BlockReason.TRANSLATED,
        BlockReason.NAT64,
        BlockReason.SIX_TO_FOUR,
    }
    | {BlockReason.TEREDO, BlockReason.ISATAP}
)
"""No host has these, or they embed another address: even an exact entry does not open them."""

_BY_NAME: Final = frozenset({BlockReason.PRIVATE, BlockReason.CGNAT})
"""What a listed name may resolve to. Loopback only for `localhost`: a party that controls a name's
DNS must not reach what listens on this machine."""

_BY_NAME_HERE: Final = frozenset({*_BY_NAME, BlockReason.LOOPBACK})
_NAME: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
    r"(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_NUMBER: Final = re.compile(r"([0-9]+|0x[0-9a-f]*)")
_PORT: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class OpenedEntry:
    """A network or a host name, and its port.

    Without a port, every port that is normally called.
    """

    where: AllowedNetwork | str
    port: int | None = None

    def opens(self, host: str, address: Address, denial: BlockedAddress) -> bool:
        """Return whether it opens a blocked address that `host` resolves to."""
        if isinstance(self.where, str):
            kinds = _BY_NAME_HERE if is_localhost(host) else _BY_NAME
            return host == self.where and denial.reason in kinds
        # Metadata, link-local and reserved addresses only if written exactly.
        return address in self.where and (denial.is_own_network or self.where.num_addresses == 1)

    @property
    def is_network(self) -> bool:
        """Return whether it is a network, of one address or more."""
        return not isinstance(self.where, str)


@dataclass(frozen=True, slots=True)
class OpenedAddresses:
    """The entries of `ASSAY_UPSTREAM_ALLOW`."""

    entries: tuple[OpenedEntry, ...] = ()
    own_ports: frozenset[int] = frozenset()
    """Ports of this service and its stores: opened only by an entry that names the port."""

    def opens(self, host: str, address: str | Address, port: int) -> bool:
        """Return whether a URL with this host may connect to this private address.

        `address` is the one dialled. A network opens what it contains, whatever the name; a name
        opens ordinary private addresses that it resolves to.
        """
        denial = classify(address) if self.entries else None
        if denial is None or denial.reason in _NEVER:
            return False
        found = ip_address(address) if isinstance(address, str) else address
        return any(
            self._has_port(entry, port) and entry.opens(host, found, denial)
            for entry in self.entries
        )

    def may_lead(self, host: str, port: int) -> bool:
        """Return whether a host name can resolve to an opened address; the dial decides which.

        Any name can if a network is opened at this port.
        """
        return any(
            self._has_port(entry, port) and (entry.where == host or entry.is_network)
            for entry in self.entries
        )

    def _has_port(self, entry: OpenedEntry, port: int) -> bool:
        if entry.port is None:
            return is_called(port) and port not in self.own_ports
        return entry.port == port


NOTHING: Final = OpenedAddresses()


@dataclass(frozen=True, slots=True)
class OpenedForOperators:
    """The opened addresses, and the ids of the accounts whose wrappers may use them."""

    addresses: OpenedAddresses = NOTHING
    operators: frozenset[str] = frozenset()


NO_OPERATORS: Final = OpenedForOperators()


def opened_entry(text: str) -> OpenedEntry:
    """Parse one entry of the setting: `10.0.3.0/24`, `[fd12::7]:8443`, `api.internal:8443`.

    Raises `ValueError` with an explanation.
    """
    host, port = _split(text.strip().lower().removesuffix("."))
    network = _network(text, host)
    if network is None and not _is_name(host):
        raise ValueError(f"{text!r} is not a network, an address or a host name")
    return OpenedEntry(host if network is None else network, port)


def is_localhost(host: str) -> bool:
    """Return whether a name is this machine by definition. Source: RFC 6761, section 6.3."""
    return host == "localhost" or host.endswith(".localhost")


def _split(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, closed, tail = text[1:].partition("]")
        if not closed or (tail and not tail.startswith(":")):
            raise ValueError(f"{text!r}: write an IPv6 network with a port as [fd12::/64]:8443")
        return host, _port(text, tail[1:]) if tail else None
    if text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, _port(text, port) if colon else None


def _port(text: str, port: str) -> int:
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= PORT_MAX:
        raise ValueError(f"{text!r}: the port must be 1 to {PORT_MAX}")
    return int(port)


def _network(text: str, host: str) -> AllowedNetwork | None:
    """Return the network, or None if the text can only be a name."""
    if "%" in host:
        return None  # `ip_network` would drop the zone, and no name has one.
    try:
        network = ip_network(host)
    except ValueError as error:
        if "/" in host or ":" in host:
            raise ValueError(f"{text!r}: {error}") from None
        return None
    ends = classify(network.network_address), classify(network.broadcast_address)
    reasons = {end.reason for end in ends if end is not None}
    if len(reasons) == 1 and reasons <= _NEVER:
        raise ValueError(f"{text!r} is {reasons.pop()}, which is never opened")
    return network


def _is_name(host: str) -> bool:
    # A name whose last label is a number is read as an IPv4 address. Source: WHATWG URL,
    # section 3.5.
    return bool(_NAME.fullmatch(host)) and not _NUMBER.fullmatch(host.rpartition(".")[2])
