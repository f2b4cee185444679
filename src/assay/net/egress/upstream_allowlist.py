"""Private addresses that `ASSAY_UPSTREAM_ALLOW` opens to upstreams of named operators. Pure."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from assay.net.egress.address import Address, BlockedAddress, BlockReason, classify
from assay.net.egress.called_ports import PORT_MAX, is_called

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
