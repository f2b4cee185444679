"""The scope of a control proof: an origin, and a path with everything below. Pure.

Each URL has one spelling here, the one that is dialled: case, a trailing dot, full-width letters
and default ports do not make a second host. A path that servers read in different ways (dot
segments, encoded slashes, empty segments) is never below another path: only its host can speak for
it.
"""

import hashlib
import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote_to_bytes

from assay.http1.model import Target
from assay.net.egress.consent import origin_of
from assay.net.egress.url import EgressPolicy, domain_of, parse_target

KEY_CHARS_MAX: Final = 300

_ANY = EgressPolicy(allow_private=True, require_https=False)
_WEB_PORTS = frozenset({80, 443})
_ODD = re.compile(rb"[\x00-\x20\x7f\\;%?#]")
_ENCODED = re.compile(r"%(2e|2f|5c|25|3b|23|3f|00)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ControlScope:
    """An origin and the segments of a path; no segments: the whole host.

    With `is_exact` it is that one URL without anything below it: a URL with a query, or an
    ambiguous path.
    """

    origin: str
    host: str
    port: int
    segments: tuple[str, ...] = ()
    is_exact: bool = False
    exact_url: str = ""

    @property
    def host_scope(self) -> "ControlScope":
        """Return the scope of its whole host."""
        return ControlScope(self.origin, self.host, self.port)

    @property
    def shown_origin(self) -> str:
        """Return the origin for display: without the default port of its scheme."""
        usual = {"https": ":443", "http": ":80"}[self.origin.partition(":")[0]]
        return self.origin.removesuffix(usual)

    @property
    def key(self) -> str:
        """Return the scope's name in stores: `at https://a.example:443/path`."""
        return scope_key(self.origin, self.exact_url if self.is_exact else "/".join(self.segments))

    @property
    def site(self) -> str:
        """Return the site: the registrable domain, with the port unless it is a web port.

        Uses the Public Suffix List with its private section. A literal address is its own site.
        """
        port = "" if self.port in _WEB_PORTS else f":{self.port}"
        return f"site {domain_of(self.host)}{port}"

    @property
    def has_name(self) -> bool:
        """Return whether DNS can speak for the host.

        Literal addresses and single labels have no zone.
        """
        try:
            ip_address(self.host)
        except ValueError:
            return "." in self.host
        return False

    def covers(self, other: "ControlScope") -> bool:
        """Return whether `other` is this address or below it, by whole segments."""
        if self.origin != other.origin:
            return False
        if not self.segments and not self.is_exact:
            return True
        if self.is_exact or other.is_exact:
            return self == other
        return other.segments[: len(self.segments)] == self.segments


def scope_key(origin: str, path: str, word: str = "at") -> str:
    """Return the key of an origin and a path of it, at most `KEY_CHARS_MAX` characters."""
    address = f"{origin}/{path.removeprefix('/')}"
    if len(address) > KEY_CHARS_MAX - len(word) - 1:
        address = hashlib.sha256(address.encode()).hexdigest()
    return f"{word} {address}"


def scope_of(url: str) -> ControlScope | None:
    """Return the scope of a URL and everything below it; None for an address we never call."""
    target = parse_target(url, _ANY)
    if not isinstance(target, Target):
        return None
    origin = origin_of(target)
    path, has_query, _ = target.path_and_query.partition("?")
    segments = _segments(path)
    if segments is None or has_query:
        return ControlScope(origin, target.host, target.port, (), True, target.path_and_query)  # noqa: FBT003
    return ControlScope(origin, target.host, target.port, segments)


def document_scope(url: str) -> ControlScope | None:
    """Return the scope that a document at `url` speaks for: its own URL and below.

    A document in a `.well-known` folder speaks for that folder's parent.
    """
    scope = scope_of(url)
    if scope is None or scope.is_exact:
        return scope
    if len(scope.segments) >= 2 and scope.segments[-2] == ".well-known":  # noqa: PLR2004 - folder and file
        return ControlScope(scope.origin, scope.host, scope.port, scope.segments[:-2])
    return scope


def _segments(path: str) -> tuple[str, ...] | None:
    """Return the decoded segments; None if servers could read the path in several ways."""
    if _ENCODED.search(path):
        return None
    parts = path.strip("/").split("/") if path.strip("/") else []
    if path.removeprefix("/").removesuffix("/") != "/".join(parts):
        return None  # Empty segments at the end.
    decoded = [unquote_to_bytes(part) for part in parts]
    if any(not part or part in {b".", b".."} or _ODD.search(part) for part in decoded):
        return None
    try:
        return tuple(part.decode("utf-8") for part in decoded)
    except UnicodeDecodeError:
        return None
