"""Whose host it is: the domain that a budget of outgoing requests belongs to. Pure."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from publicsuffixlist import PublicSuffixList

from assay.common.egress_budget import BudgetRules
from assay.net.egress.address import BlockReason, classify
from assay.net.egress.url import EgressPolicy, is_inside_name

_NETWORK_BITS = 64


def domain_of(host: str) -> str:
    """The registrable domain of a host name, or the network of a literal address.

    By the Public Suffix List with its private section, as bundled with the library (never
    fetched): `a.b.example.co.uk` belongs to `example.co.uk`, `x.github.io` to itself. A name that
    is a public suffix, or has one label, stands for itself. An IPv4 address stands for itself, an
    IPv6 address for its network of 64 bits. `host` is lower-case ASCII without brackets.
    """
    try:
        return network_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return _suffixes().privatesuffix(name) or name


def registered_domain(host: str) -> str:
    """As `domain_of`, by the list without its private section.

    `x.github.io` belongs to `github.io`: who rents out names below one of his has registered it.
    """
    try:
        return network_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return _registries().privatesuffix(name) or name


def network_of(address: str) -> str:
    """An IPv4 address itself, an IPv6 address's network of 64 bits (`2001:db8::/64`).

    An IPv4 address inside an IPv6 one (`::ffff:192.0.2.1`) is that IPv4 address. Raises
    `ValueError` for what is no address.
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
    """Read when first asked for: 60 ms."""
    return PublicSuffixList()


@lru_cache(maxsize=1)
def _registries() -> PublicSuffixList:
    return PublicSuffixList(only_icann=True)


def is_exempt(host: str, policy: EgressPolicy, rules: BudgetRules) -> bool:
    """Whether a host can only be on one's own network, opened by a setting: it has no budget."""
    if not policy.allow_private or rules.holds_private:
        return False
    denial = classify(host)
    if denial is None:
        return False
    return is_inside_name(host) if denial.reason is BlockReason.MALFORMED else denial.is_own_network
