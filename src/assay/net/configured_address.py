"""Addresses that the operator configured: they are connected to without egress checks."""

import base64
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from assay.http1.model import DEFAULT_PORTS, Target


@dataclass(frozen=True, slots=True)
class ConfiguredAddress:
    """A configured destination, and the headers made from the URL's user and password."""

    target: Target
    path_and_query: bytes
    headers: tuple[tuple[bytes, bytes], ...]


def configured(url: str) -> ConfiguredAddress:
    """Parse a configured URL. Raises `ValueError` if it is not an http(s) address."""
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ValueError("not an http(s) address")
    scheme = "https" if parts.scheme == "https" else "http"
    port = parts.port or DEFAULT_PORTS[scheme]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = ((b"authorization", b"Basic " + base64.b64encode(pair.encode())),)
    target = Target(scheme, host, port, path, is_literal_ip=False)
    return ConfiguredAddress(target, path.encode("ascii", "strict"), headers)
