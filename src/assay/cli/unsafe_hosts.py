"""What the rules about addresses share: is it this machine, and what of it may be shown."""

from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, unquote, urlsplit

from assay.common.addresses import parsed_address
from assay.settings import Settings

_PLAIN = frozenset({"http", "ws"})


def is_local(host: str | None) -> bool:
    """Whether it is this machine: a loopback address, `localhost`, or the path of a Unix socket."""
    if host is None:
        return False
    if host == "localhost" or host.startswith("/"):
        return True
    address = parsed_address(host)
    return address is not None and address.is_loopback


def loopback_of(host: str) -> frozenset[IPv4Address | IPv6Address]:
    """From where only this machine can call a server that listens on `host`; empty: from anywhere.

    `localhost` may be either address.
    """
    if host == "localhost":
        return frozenset({IPv4Address("127.0.0.1"), IPv6Address("::1")})
    if not is_local(host):
        return frozenset()
    return frozenset({IPv4Address("127.0.0.1") if ":" not in host else IPv6Address("::1")})


def is_plain_elsewhere(url: str) -> bool:
    """Whether it is spoken to in clear text, on another machine."""
    parts = split(url)
    return parts is not None and parts.scheme in _PLAIN and not is_local(parts.hostname)


def split(url: str) -> SplitResult | None:
    """The parts of a URL; None where it is none, for the error of the library quotes it."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def shown(url: str) -> str:
    """The URL's origin without user and password; the rest of a URL may hold a key."""
    parts = split(url)
    return "" if parts is None else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def without_port(host: str) -> str:
    """The host of `host:port`, of which an IPv6 address stands in brackets if it has a port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def passwords(settings: Settings) -> list[tuple[str, str]]:
    """The passwords in the addresses of the settings, each with the setting's name."""
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
