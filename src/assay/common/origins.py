"""Web origins, in the spelling browsers send (RFC 6454, section 6.2)."""

import re
from typing import Final
from urllib.parse import urlsplit

ANY: Final = "*"
"""Every origin, where a list of them is asked for."""

_ORIGIN = re.compile(
    r"([a-z][a-z0-9+.-]{0,31})://(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?"
)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


def canonical_origin(text: str) -> str | None:
    """The origin as browsers send it; None for what is none, such as an address with a path."""
    found = _ORIGIN.fullmatch(text.lower())
    if found is None:
        return None
    scheme, host, port = found.groups()
    shown = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    return f"{scheme}://{host}{shown}"


def origin_of(address: str) -> str:
    """The origin of an http(s) address of ours, whatever its path."""
    parts = urlsplit(address)
    return canonical_origin(f"{parts.scheme}://{parts.netloc}") or address


def authority_of(scheme: str, host: str) -> str:
    """The value of a `Host` header in one spelling: no default port, no dot at the end."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or not port.isdecimal():
        name, port = host.lower(), ""
    shown = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    return name.removesuffix(".") + shown
