"""Fields of HTTP heads and web origins, read without a parser. Pure.

What the bytes of an HTTP head say of themselves, without a parser.

Web origins, in the spelling browsers send (RFC 6454, section 6.2).
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

END = b"\r\n\r\n"
"""Where a head ends, if it is plain."""


def is_plain(raw: bytes, headers: int) -> bool:
    """Whether every line of a head is its first line or one header, and all end in CRLF.

    Else where the head ends is a parser's to say, and not to be guessed from its bytes: a bare LF,
    a folded line or an empty one before the first make the count differ.
    """
    return raw.count(b"\n") == raw.count(b"\r\n") == headers + 2


HeaderPairs: TypeAlias = Sequence[tuple[bytes, bytes]]
"""As they came: names in lower case, repeated ones repeated."""


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
