"""Determines the domain that an egress budget belongs to. Pure."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from publicsuffixlist import PublicSuffixList

from assay.common.egress_budget import BudgetRules
from assay.net.egress.address import BlockReason, classify
from assay.net.egress.url import EgressPolicy, is_inside_name

_NETWORK_BITS = 64


def domain_of(host: str) -> str:
    """Return the registrable domain of a host name, or the network of an IP address.

    Uses the Public Suffix List with its private section, as bundled with the library (never
    fetched): `a.b.example.co.uk` belongs to `example.co.uk`, `x.github.io` to itself. A name that
    is a public suffix or has one label is returned unchanged, as is an IPv4 address. For an IPv6
    address it is the network of 64 bits. `host` is lower-case ASCII without brackets.
    """
    try:
        return network_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return _suffixes().privatesuffix(name) or name


def registered_domain(host: str) -> str:
    """Like `domain_of`, without the list's private section.

    `x.github.io` belongs to `github.io`: the party that rents out names below it registered it.
    """
    try:
        return network_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return _registries().privatesuffix(name) or name


def network_of(address: str) -> str:
    """Return an IPv4 address itself, or an IPv6 address's network (`2001:db8::/64`).

    An IPv4 address embedded in an IPv6 one (`::ffff:192.0.2.1`) counts as IPv4. Raises `ValueError`
    for an invalid address.
    """
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    mapped = IPv6Address(parsed).ipv4_mapped
    if mapped is not None:
        return str(mapped)
    return str(IPv6Network((int(parsed), _NETWORK_BITS), strict=False))


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    """Load the list on first use: it takes 60 ms."""
    return PublicSuffixList()


@lru_cache(maxsize=1)
def _registries() -> PublicSuffixList:
    return PublicSuffixList(only_icann=True)


def is_exempt(host: str, policy: EgressPolicy, rules: BudgetRules) -> bool:
    """Return whether a host can only be on one's own network, opened by a setting: no budget."""
    if not policy.allow_private or rules.holds_private:
        return False
    denial = classify(host)
    if denial is None:
        return False
    return is_inside_name(host) if denial.reason is BlockReason.MALFORMED else denial.is_own_network
