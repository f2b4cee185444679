"""Where an A2A interface that speaks gRPC is called. Pure.

Cards name such interfaces as URLs, or as gRPC's own clients are given them: `host:port`, without a
scheme. Source: A2A 1.0, section 5.8; gRPC name resolution (`dns:`).
"""

import re
from typing import Final
from urllib.parse import urlsplit

GRPC: Final = "GRPC"
"""The name of the binding in cards of 0.3 and of 1.0."""

_SCHEME = re.compile(r"(?:(https?|grpcs?)://|dns:(?:/{2,3})?)?", re.IGNORECASE)
_BROKEN_SCHEME = re.compile(r"(?:https?|grpcs?|dns):", re.IGNORECASE)
"""In place of a host: `grpcs:/host` would be the host `grpcs`, called in the clear."""


def grpc_origins(url: str) -> tuple[str, ...]:
    """The origins to call, as http(s) URLs without a path; the first that speaks gRPC is it.

    Where nothing is said of TLS, that comes first: without it, only what the egress guard lets
    through in the clear is called. Empty for what is no address.
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
