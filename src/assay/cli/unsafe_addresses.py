"""Finds unsafe addresses: to listen on, to trust, to publish and to call.

Other services are unsafe if they are reached in clear text. Entries of `ASSAY_UPSTREAM_ALLOW` are
unsafe if they are too wide, or not an upstream's address.
"""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    collapse_addresses,
    ip_network,
)
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from assay.common.addresses import parsed_address
from assay.common.http_heads import ANY, authority_of
from assay.common.json import is_array
from assay.net.egress.address import (
    BlockReason,
    OpenedEntry,
    classify,
    is_called,
    is_localhost,
    opened_entry,
)
from assay.settings import Settings, bind_address

_PLAIN = frozenset({"http", "ws"})


def is_local(host: str | None) -> bool:
    """Return whether it is this machine: loopback, `localhost` or a Unix socket's path."""
    if host is None:
        return False
    if host == "localhost" or host.startswith("/"):
        return True
    address = parsed_address(host)
    return address is not None and address.is_loopback


def loopback_of(host: str) -> frozenset[IPv4Address | IPv6Address]:
    """Return the addresses of callers if only this machine can call `host`; otherwise empty.

    `localhost` may be either address.
    """
    if host == "localhost":
        return frozenset({IPv4Address("127.0.0.1"), IPv6Address("::1")})
    if not is_local(host):
        return frozenset()
    return frozenset({IPv4Address("127.0.0.1") if ":" not in host else IPv6Address("::1")})


def is_plain_elsewhere(url: str) -> bool:
    """Return whether the URL is plain text and on another machine."""
    parts = split(url)
    return parts is not None and parts.scheme in _PLAIN and not is_local(parts.hostname)


def split(url: str) -> SplitResult | None:
    """Return the parts of a URL, or None if invalid: the library's error would quote it."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def shown(url: str) -> str:
    """Return the origin without user and password; the rest of a URL may hold a key."""
    parts = split(url)
    return "" if parts is None else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def without_port(host: str) -> str:
    """Return the host of `host:port`; an IPv6 address with a port is in brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def passwords(settings: Settings) -> list[tuple[str, str]]:
    """Return each password in a URL of the settings, with the setting's name."""
    found: list[tuple[str, str]] = []
    for name, url in (
        ("ASSAY_DATABASE_URL", settings.database_url),
        ("ASSAY_STATE_URL", settings.state_url),
        ("ASSAY_SMTP_URL", settings.smtp_url),
    ):
        parts = None if url is None else split(url.get_secret_value())
        if parts is not None and parts.password:
            found.append((name, unquote(parts.password)))
    return found


PREFIX_BITS_MIN = {4: 12, 6: 28}
"""A trusted network with a shorter prefix holds more hosts than one organisation controls. Content
networks publish theirs: Cloudflare's list has an IPv4 /13 and an IPv6 /29."""

TRUSTED_BITS_MAX = {4: 22, 6: 104}
"""The same of all trusted networks together, as a power of two: an IPv4 /10, an IPv6 /24. Whole
lists of content networks fit in."""

_MAPPED = IPv6Network("::ffff:0:0/96")
"""IPv4 addresses written as IPv6 ones. Source: RFC 4291, section 2.5.5.2."""

_Network = IPv4Network | IPv6Network


def open_bind(settings: Settings) -> Iterator[str]:
    """Find listening addresses that strangers may reach. A name may mean any address."""
    if _is_open(settings.host):
        yield f"ASSAY_HOST is {settings.host or 'empty'}"
    if settings.ops_bind is not None and _is_open(bind_address(settings.ops_bind)[0]):
        yield f"ASSAY_OPS_BIND is {settings.ops_bind}"


def wide_proxies(settings: Settings) -> Iterator[str]:
    """Find trusted proxies that are too wide, alone or together."""
    written = [(text, _unmapped(ip_network(text))) for text in settings.trusted_proxies]
    wide = [text for text, network in written if network.prefixlen < _bits_min(network)]
    for text in wide:
        yield f"ASSAY_TRUSTED_PROXIES contains {text}"
    networks = [network for _, network in written if not network.is_loopback]
    if not wide:
        for version, count in _unions_beyond(TRUSTED_BITS_MAX, networks):
            yield f"ASSAY_TRUSTED_PROXIES holds {count} IPv{version} addresses in all"


def proxy_not_trusted(settings: Settings) -> Iterator[str]:
    """Find a public address behind a proxy that is not trusted."""
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
    """Find a public URL that carries callers' credentials in clear text."""
    if settings.public_url and is_plain_elsewhere(settings.public_url):
        yield f"ASSAY_PUBLIC_URL is {shown(settings.public_url)}"


def public_url_missing(settings: Settings) -> Iterator[str]:
    """Find a missing public URL: challenges then name an address that others use too."""
    url = settings.public_url
    if url and not is_local(urlsplit(url).hostname):
        return
    if settings.trusted_proxies or not is_local(settings.host):
        said = f"is {shown(url)}" if url else "is unset"
        yield f"ASSAY_PUBLIC_URL {said}, so challenges name {shown(settings.address)}"


def published_url(settings: Settings) -> Iterator[str]:
    """Find published URLs in clear text or with a user's name in them."""
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
    """Find a wrapper origin that is the service's own, although set apart."""
    if settings.wrap_url and _origin(settings.wrap_url) == _origin(settings.address):
        yield "ASSAY_WRAP_URL is the origin of ASSAY_PUBLIC_URL"


def cors_origins(settings: Settings) -> Iterator[str]:
    """Find origins that anyone can write pages for. Start-up refuses `null`."""
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


def _unions_beyond(
    bits_max: Mapping[int, int], networks: Sequence[_Network]
) -> Iterator[tuple[int, int]]:
    """Yield the IP versions with more addresses in all of the networks, and how many."""
    unions = {
        4: collapse_addresses(n for n in networks if isinstance(n, IPv4Network)),
        6: collapse_addresses(n for n in networks if isinstance(n, IPv6Network)),
    }
    for version, union in unions.items():
        count = sum(network.num_addresses for network in union)
        if count > 2 ** bits_max[version]:
            yield version, count


def _bits_min(network: _Network) -> int:
    return 0 if network.is_loopback else PREFIX_BITS_MIN[network.version]


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, authority_of(parts.scheme, parts.netloc.rpartition("@")[2])


_VERIFIED = frozenset({"verify-ca", "verify-full"})
"""The modes of libpq that prove who the server is. Source: PostgreSQL manual, section 34.19.1."""


def database_plain(settings: Settings) -> Iterator[str]:
    """Find a remote PostgreSQL whose server is not verified."""
    if settings.database_url is None:
        return
    parts = split(settings.database_url.get_secret_value())
    if parts is None or parts.scheme == "sqlite":
        return
    options = parse_qs(parts.query)
    named = [
        parts.netloc.rpartition("@")[2],
        *options.get("host", []),
        *options.get("hostaddr", []),
    ]
    hosts = [without_port(host) for names in named for host in names.split(",") if host]
    elsewhere = [host for host in hosts if not is_local(host)]
    mode = options.get("sslmode", [""])[-1]
    if elsewhere and mode not in _VERIFIED:
        said = f"with sslmode={mode}" if mode else "without sslmode"
        yield f"ASSAY_DATABASE_URL names {elsewhere[0]} {said}"


def state_plain(settings: Settings) -> Iterator[str]:
    """Find a remote Valkey without TLS or without a password."""
    parts = None if settings.state_url is None else split(settings.state_url.get_secret_value())
    if parts is None:
        return
    lacks = ["TLS"] * (parts.scheme != "valkeys") + ["a password"] * (not parts.password)
    if lacks and not is_local(parts.hostname):
        yield f"ASSAY_STATE_URL names {parts.hostname} without {' and without '.join(lacks)}"


def mail_plain(settings: Settings) -> Iterator[str]:
    """Find a mail server that gets password reset links in clear text."""
    parts = None if settings.smtp_url is None else split(settings.smtp_url.get_secret_value())
    if parts is not None and parts.scheme == "smtp+plain" and not is_local(parts.hostname):
        yield f"ASSAY_SMTP_URL names {parts.hostname} without TLS"


def plain_http_services(settings: Settings) -> Iterator[str]:
    """Find remote services in clear text whose responses Assay relies on."""
    for name, url in _services(settings):
        if is_plain_elsewhere(url):
            yield f"{name} names {shown(url)}"


def _services(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the URL of each service in use, with the setting's name."""
    asks_cloud = settings.world_id_app is not None and settings.world_id_verifier == "cloud"
    for name, url in (
        ("ASSAY_SOLANA_RPC_URL", settings.solana_rpc_url),
        ("ASSAY_SOLANA_INDEXER_URL", settings.solana_indexer_url),
        ("ASSAY_X402_FACILITATOR_URL", settings.x402_facilitator_url),
        ("ASSAY_WORLD_ID_API", settings.world_id_api if asks_cloud else None),
        ("ASSAY_IPFS_GATEWAY", settings.ipfs_gateway),
        ("ASSAY_ARWEAVE_GATEWAY", settings.arweave_gateway),
        ("ASSAY_JUDGE_URL", settings.judge_url),
        ("ASSAY_IPFS_API", settings.ipfs_api if settings.snapshot_store == "ipfs" else None),
    ):
        if url:
            yield name, url
    for url in settings.x402_fallback_facilitators:
        yield "ASSAY_X402_FALLBACK_FACILITATORS", url
    for chain in settings.chains.values():
        for url in _texts(chain.get("rpc_urls")):
            yield "ASSAY_CHAINS", url
    for urls in settings.payment_rpc.values():
        for url in urls:
            yield "ASSAY_PAYMENT_RPC", url


def _texts(value: object) -> Iterator[str]:
    """Yield the strings of a list; start-up refuses anything else in a chain's row."""
    if is_array(value):
        yield from (text for text in value if isinstance(text, str))


BITS_MIN = {4: 16, 6: 48}
"""A shorter prefix holds more than one site's network: all of 10.0.0.0/8, say."""

ALL_NETWORKS_BITS_MAX = {4: 18, 6: 82}
"""Of all networks together, as a power of two: an IPv4 /14, an IPv6 /46."""

_LOOPBACKS = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_OWN_NETWORK = frozenset({BlockReason.LOOPBACK, BlockReason.PRIVATE, BlockReason.CGNAT})


def upstream_allow(settings: Settings) -> Iterator[str]:
    """Find entries that open more than upstreams of one's own network, alone or together."""
    entries = [(text, opened_entry(text)) for text in settings.upstream_allow]
    alone = [(text, why) for text, entry in entries for why in _faults(entry, settings)]
    for text, why in alone:
        yield f"ASSAY_UPSTREAM_ALLOW contains {text}, {why}"
    networks = [entry.where for _, entry in entries if not isinstance(entry.where, str)]
    if not alone:
        for version, count in _unions_beyond(ALL_NETWORKS_BITS_MAX, networks):
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
    """Yield the addresses on which this service and its metrics listen."""
    yield settings.host, settings.port
    if settings.ops_bind is not None:
        yield bind_address(settings.ops_bind)


def _holds(where: IPv4Network | IPv6Network | str, host: str) -> bool:
    """Return whether an entry matches that local address; a wildcard is loopback too."""
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
