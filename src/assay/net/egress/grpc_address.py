"""Determines the address of an A2A interface that speaks gRPC. Pure.

Cards give such interfaces as URLs, or in the form of gRPC's own clients: `host:port`, without a
scheme. Source: A2A 1.0, section 5.8; gRPC name resolution (`dns:`).
"""

import re
from typing import Final
from urllib.parse import urlsplit

GRPC: Final = "GRPC"
"""The name of the binding in cards of 0.3 and of 1.0."""

_SCHEME = re.compile(r"(?:(https?|grpcs?)://|dns:(?:/{2,3})?)?", re.IGNORECASE)
_BROKEN_SCHEME = re.compile(r"(?:https?|grpcs?|dns):", re.IGNORECASE)
"""A scheme in place of a host: `grpcs:/host` would be the host `grpcs`, called without TLS."""


def grpc_origins(url: str) -> tuple[str, ...]:
    """Return the origins to try in order, as http(s) URLs without a path.

    If the address does not mention TLS, that is tried first; without TLS, only addresses that the
    egress guard allows in plain text are called. Empty for an invalid address.
    """
    found = _SCHEME.match(url)
    scheme = (found[1] or "").lower() if found else ""
    rest = url[found.end() :] if found else url
    if not scheme and _BROKEN_SCHEME.match(rest):
        return ()
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    try:
        parts = urlsplit(f"https://{authority}")
        _ = parts.port
    except ValueError:
        return ()
    if not parts.hostname or parts.username is not None:
        return ()
    if scheme in {"https", "grpcs"}:
        return (f"https://{authority}",)
    if scheme == "http":
        return (f"http://{authority}",)
    return (f"https://{authority}", f"http://{authority}")
