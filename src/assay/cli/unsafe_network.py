"""Unsafe settings of addresses: where the service listens, whom it believes, what it publishes."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from urllib.parse import urlsplit

from assay.cli.unsafe_hosts import is_local, is_plain_elsewhere, loopback_of, shown
from assay.common.addresses import parsed_address
from assay.common.origins import ANY, authority_of
from assay.settings import Settings, bind_address

PREFIX_BITS_MIN = {4: 12, 6: 28}
"""A trusted network with a shorter prefix holds more hosts than one organisation controls. Content
networks publish theirs: Cloudflare's list has an IPv4 /13 and an IPv6 /29."""

TRUSTED_BITS_MAX = {4: 22, 6: 104}
"""The same of all trusted networks together, as a power of two: an IPv4 /10, an IPv6 /24. Whole
lists of content networks fit in."""

_MAPPED = IPv6Network("::ffff:0:0/96")
"""IPv4 addresses written as IPv6 ones. Source: RFC 4291, 2.5.5.2."""

_Network = IPv4Network | IPv6Network


def open_bind(settings: Settings) -> Iterator[str]:
    """An address to listen on that strangers may reach. A name may mean any address."""
    if _is_open(settings.host):
        yield f"ASSAY_HOST is {settings.host or 'empty'}"
    if settings.ops_bind is not None and _is_open(bind_address(settings.ops_bind)[0]):
        yield f"ASSAY_OPS_BIND is {settings.ops_bind}"


def wide_proxies(settings: Settings) -> Iterator[str]:
    """Networks whose X-Forwarded-For is believed and that are anybody's, one or all together."""
    written = [(text, _unmapped(ip_network(text))) for text in settings.trusted_proxies]
    wide = [text for text, network in written if network.prefixlen < _bits_min(network)]
    for text in wide:
        yield f"ASSAY_TRUSTED_PROXIES contains {text}"
    networks = [network for _, network in written if not network.is_loopback]
    unions = {
        4: collapse_addresses(n for n in networks if isinstance(n, IPv4Network)),
        6: collapse_addresses(n for n in networks if isinstance(n, IPv6Network)),
    }
    for version, union in unions.items():
        count = sum(network.num_addresses for network in union)
        if not wide and count > 2 ** TRUSTED_BITS_MAX[version]:
            yield f"ASSAY_TRUSTED_PROXIES holds {count} IPv{version} addresses in all"


def proxy_not_trusted(settings: Settings) -> Iterator[str]:
    """A public address that a proxy must be passing on, and no proxy there is believed."""
    url = settings.public_url
    if not url or is_local(urlsplit(url).hostname):
        return
    trusted = [_unmapped(ip_network(text)) for text in settings.trusted_proxies]
    callers = loopback_of(settings.host)
    if not trusted:
        yield f"ASSAY_PUBLIC_URL is {shown(url)}, and ASSAY_TRUSTED_PROXIES is empty"
    elif callers and not any(caller in network for caller in callers for network in trusted):
        yield (
            f"ASSAY_HOST is {settings.host}, and ASSAY_TRUSTED_PROXIES does not contain"
            f" {' or '.join(sorted(map(str, callers)))}"
        )


def public_url_plain(settings: Settings) -> Iterator[str]:
    """Callers' credentials in clear text."""
    if settings.public_url and is_plain_elsewhere(settings.public_url):
        yield f"ASSAY_PUBLIC_URL is {shown(settings.public_url)}"


def public_url_missing(settings: Settings) -> Iterator[str]:
    """Challenges that name an address every installation has."""
    url = settings.public_url
    if url and not is_local(urlsplit(url).hostname):
        return
    if settings.trusted_proxies or not is_local(settings.host):
        said = f"is {shown(url)}" if url else "is unset"
        yield f"ASSAY_PUBLIC_URL {said}, so challenges name {shown(settings.address)}"


def published_url(settings: Settings) -> Iterator[str]:
    """Addresses that callers are sent to: in clear text, or with a user's name in them."""
    others = {
        "ASSAY_ACCOUNT_URL": settings.account_url,
        "ASSAY_WRAP_URL": settings.wrap_url,
        "ASSAY_COURSE_ELSEWHERE_URL": settings.course_elsewhere_url,
        "ASSAY_UPGRADE_URL": settings.upgrade_url,
    }
    for name, url in others.items():
        if url and is_plain_elsewhere(url):
            yield f"{name} is on {shown(url)}"
    for name, url in ({"ASSAY_PUBLIC_URL": settings.public_url} | others).items():
        if url and "@" in urlsplit(url).netloc:
            yield f"{name} holds a user's name before the host {urlsplit(url).hostname}"


def wrap_origin(settings: Settings) -> Iterator[str]:
    """Wrappers that are to have an origin of their own, and have the service's."""
    if settings.wrap_url and _origin(settings.wrap_url) == _origin(settings.address):
        yield "ASSAY_WRAP_URL is the origin of ASSAY_PUBLIC_URL"


def cors_origins(settings: Settings) -> Iterator[str]:
    """Pages that anybody can write, and that may call the API. The start refuses `null`."""
    for origin in settings.cors_origins:
        if origin == ANY or is_plain_elsewhere(origin):
            yield f"ASSAY_CORS_ORIGINS contains {origin}"


def _is_open(host: str) -> bool:
    address = parsed_address(host)
    if address is None:
        return host != "localhost"
    return address.is_unspecified or address.is_global


def _unmapped(network: _Network) -> _Network:
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        first = int(network.network_address) - int(_MAPPED.network_address)
        return IPv4Network((first, network.prefixlen - _MAPPED.prefixlen))
    return network


def _bits_min(network: _Network) -> int:
    return 0 if network.is_loopback else PREFIX_BITS_MIN[network.version]


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, authority_of(parts.scheme, parts.netloc.rpartition("@")[2])
