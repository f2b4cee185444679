"""Unsafe entries of `ASSAY_UPSTREAM_ALLOW`: too wide, or not an upstream's address."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from assay.common.addresses import parsed_address
from assay.net.egress.address import BlockReason, classify
from assay.net.egress.called_ports import is_called
from assay.net.egress.upstream_allowlist import OpenedEntry, is_localhost, opened_entry
from assay.settings import Settings, bind_address

BITS_MIN = {4: 16, 6: 48}
"""A shorter prefix holds more than one site's network: all of 10.0.0.0/8, say."""

ALL_NETWORKS_BITS_MAX = {4: 18, 6: 82}
"""Of all networks together, as a power of two: an IPv4 /14, an IPv6 /46."""

_LOOPBACKS = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_OWN_NETWORK = frozenset({BlockReason.LOOPBACK, BlockReason.PRIVATE, BlockReason.CGNAT})


def upstream_allow(settings: Settings) -> Iterator[str]:
    """Entries that open more than the upstreams of one's own network, one or all together."""
    entries = [(text, opened_entry(text)) for text in settings.upstream_allow]
    alone = [(text, why) for text, entry in entries for why in _faults(entry, settings)]
    for text, why in alone:
        yield f"ASSAY_UPSTREAM_ALLOW contains {text}, {why}"
    networks = [entry.where for _, entry in entries if not isinstance(entry.where, str)]
    unions = {
        4: collapse_addresses(n for n in networks if isinstance(n, IPv4Network)),
        6: collapse_addresses(n for n in networks if isinstance(n, IPv6Network)),
    }
    for version, union in unions.items():
        count = sum(network.num_addresses for network in union)
        if not alone and count > 2 ** ALL_NETWORKS_BITS_MAX[version]:
            yield f"ASSAY_UPSTREAM_ALLOW holds {count} IPv{version} addresses in all"


def _faults(entry: OpenedEntry, settings: Settings) -> Iterator[str]:
    where, port = entry.where, entry.port
    if isinstance(where, str):
        if port is None and is_localhost(where):
            yield "which is every port of this machine"
    else:
        yield from _network_faults(where, port)
    if port is not None and any(
        port == own and _holds(where, host) for host, own in _own(settings)
    ):
        yield "where this service listens itself"
    elif port is not None and not is_called(port):
        yield "whose port belongs to another protocol than HTTP"


def _own(settings: Settings) -> Iterator[tuple[str, int]]:
    """Where this service and its metrics listen."""
    yield settings.host, settings.port
    if settings.ops_bind is not None:
        yield bind_address(settings.ops_bind)


def _holds(where: IPv4Network | IPv6Network | str, host: str) -> bool:
    """Whether an entry leads to that address of this machine; a wildcard is loopback, too."""
    address = parsed_address(host)
    if address is None or address.is_unspecified or address.is_loopback:
        return _is_loopback(where)
    return not isinstance(where, str) and address in where


def _network_faults(network: IPv4Network | IPv6Network, port: int | None) -> Iterator[str]:
    if network.prefixlen < BITS_MIN[network.version] and not network.is_loopback:
        yield "which is wider than one network of yours"
    elif port is None and _is_loopback(network):
        yield "which is every port of this machine"
    elif network.num_addresses == 1:
        denial = classify(network.network_address)
        if denial is None:
            yield "which is public: it needs no entry"
        elif denial.reason not in _OWN_NETWORK:
            yield f"which is {denial.reason}"


def _is_loopback(where: IPv4Network | IPv6Network | str) -> bool:
    if isinstance(where, str):
        return is_localhost(where)
    return any(
        where.version == loopback.version and where.overlaps(loopback) for loopback in _LOOPBACKS
    )
