"""Reads fields of HTTP heads and web origins without a parser. Pure.

Origins are written as browsers send them (RFC 6454, section 6.2).
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

END = b"\r\n\r\n"
"""The end of a plain head."""


def is_plain(raw: bytes, headers: int) -> bool:
    """Return whether each line of a head is its first line or one header, and ends in CRLF.

    Otherwise only a parser can say where the head ends: a bare LF, a folded line or an empty line
    before the first one make the count differ.
    """
    return raw.count(b"\n") == raw.count(b"\r\n") == headers + 2


HeaderPairs: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Headers as they came: names in lower case, repeated ones repeated."""


ANY: Final = "*"
"""Every origin, in a list of origins."""

_ORIGIN = re.compile(
    r"([a-z][a-z0-9+.-]{0,31})://(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?"
)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


def canonical_origin(text: str) -> str | None:
    """Return the origin as browsers send it; None if it is not an origin (it has a path, say)."""
    found = _ORIGIN.fullmatch(text.lower())
    if found is None:
        return None
    scheme, host, port = found.groups()
    shown = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    return f"{scheme}://{host}{shown}"


def origin_of(address: str) -> str:
    """Return the origin of an http(s) address of ours, whatever its path."""
    parts = urlsplit(address)
    return canonical_origin(f"{parts.scheme}://{parts.netloc}") or address


def authority_of(scheme: str, host: str) -> str:
    """Return the value of a `Host` header in one spelling: no default port, no dot at the end."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or not port.isdecimal():
        name, port = host.lower(), ""
    shown = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    return name.removesuffix(".") + shown
