"""Unsafe settings of addresses: where the service listens, whom it believes, what it asks."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import parse_qs, urlsplit

from assay.kit.json import is_array
from assay.settings import Settings

PREFIX_BITS_MIN = {4: 12, 6: 32}
"""A trusted network with a shorter prefix holds more hosts than one organisation controls."""

_MAPPED = IPv6Network("::ffff:0:0/96")
"""IPv4 addresses written as IPv6 ones. Source: RFC 4291, 2.5.5.2."""

_VERIFIED = frozenset({"verify-ca", "verify-full"})
"""The modes of libpq that prove who the server is. Source: PostgreSQL manual, 34.19.1."""


def is_local(host: str | None) -> bool:
    """Whether it is this machine: a loopback address, `localhost`, or the path of a Unix socket."""
    if host is None:
        return False
    if host == "localhost" or host.startswith("/"):
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def open_bind(settings: Settings) -> Iterator[str]:
    """An address to listen on that strangers may reach. A name may mean any address."""
    address = _address(settings.host)
    if address is None:
        is_open = settings.host != "localhost"
    else:
        is_open = address.is_unspecified or address.is_global
    if is_open:
        yield f"ASSAY_HOST is {settings.host or 'empty'}"


def wide_proxies(settings: Settings) -> Iterator[str]:
    """Networks whose X-Forwarded-For is believed and that are anybody's."""
    for text in settings.trusted_proxies:
        network = ip_network(text)
        bits_min = PREFIX_BITS_MIN[network.version]
        if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
            bits_min = _MAPPED.prefixlen + PREFIX_BITS_MIN[4]
        if network.prefixlen < bits_min:
            yield f"ASSAY_TRUSTED_PROXIES contains {text}"


def proxy_not_trusted(settings: Settings) -> Iterator[str]:
    """A public address that somebody must be passing on, and nobody is believed."""
    url = settings.public_url
    if url is not None and not is_local(urlsplit(url).hostname) and not settings.trusted_proxies:
        yield f"ASSAY_PUBLIC_URL is {url}, and ASSAY_TRUSTED_PROXIES is empty"


def public_url_plain(settings: Settings) -> Iterator[str]:
    """Callers' credentials in clear text."""
    if settings.public_url is not None and _is_plain_elsewhere(settings.public_url):
        yield f"ASSAY_PUBLIC_URL is {settings.public_url}"


def public_url_missing(settings: Settings) -> Iterator[str]:
    """Challenges that name an address every installation has."""
    if settings.public_url is not None:
        return
    if settings.trusted_proxies or not is_local(settings.host):
        yield f"ASSAY_PUBLIC_URL is unset, so challenges name {settings.address}"


def database_plain(settings: Settings) -> Iterator[str]:
    """A PostgreSQL elsewhere whose server is not proven."""
    if settings.database_url is None:
        return
    try:
        parts = urlsplit(settings.database_url.get_secret_value())
        options = parse_qs(parts.query)
    except ValueError:  # its text quotes the URL; opening the database says what is wrong
        return
    if parts.scheme == "sqlite":
        return
    listed = parts.netloc.rpartition("@")[2].split(",") + options.get("host", [])
    hosts = [_without_port(host) for host in listed if host]
    elsewhere = [host for host in hosts if not is_local(host)]
    mode = options.get("sslmode", [""])[-1]
    if elsewhere and mode not in _VERIFIED:
        said = f"with sslmode={mode}" if mode else "without sslmode"
        yield f"ASSAY_DATABASE_URL names {elsewhere[0]} {said}"


def state_plain(settings: Settings) -> Iterator[str]:
    """A Valkey elsewhere that anybody on the way may speak to."""
    if settings.state_url is None:
        return
    try:
        parts = urlsplit(settings.state_url.get_secret_value())
    except ValueError:
        return
    lacks = ["TLS"] * (parts.scheme != "valkeys") + ["a password"] * (not parts.password)
    if lacks and not is_local(parts.hostname):
        yield f"ASSAY_STATE_URL names {parts.hostname} without {' and without '.join(lacks)}"


def plain_http_services(settings: Settings) -> Iterator[str]:
    """Services elsewhere whose answers decide something, and are asked in clear text."""
    for name, url in _services(settings):
        if _is_plain_elsewhere(url):
            yield f"{name} names {_origin(url)}"  # the rest of the URL may hold a key


def _services(settings: Settings) -> Iterator[tuple[str, str]]:
    for name, url in (
        ("ASSAY_SOLANA_RPC_URL", settings.solana_rpc_url),
        ("ASSAY_SOLANA_INDEXER_URL", settings.solana_indexer_url),
        ("ASSAY_X402_FACILITATOR_URL", settings.x402_facilitator_url),
        ("ASSAY_WORLD_ID_API", settings.world_id_api),
        ("ASSAY_IPFS_GATEWAY", settings.ipfs_gateway),
        ("ASSAY_IPFS_API", settings.ipfs_api if settings.snapshot_store == "ipfs" else None),
    ):
        if url:
            yield name, url
    for chain in settings.chains.values():
        for url in _texts(chain.get("rpc_urls")):
            yield "ASSAY_CHAINS", url
    for urls in settings.payment_rpc.values():
        for url in urls:
            yield "ASSAY_PAYMENT_RPC", url


def _texts(value: object) -> Iterator[str]:
    """The texts of a list; what else a chain's row may hold is refused at the start."""
    if is_array(value):
        yield from (text for text in value if isinstance(text, str))


def _is_plain_elsewhere(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "http" and not is_local(parts.hostname)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
