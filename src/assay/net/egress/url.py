"""Parses addresses that other parties gave us, so strictly that they have one reading.

Connections use the parsed `Target`, never the original text. Pure.

Determines the domain that an egress budget belongs to. Pure.

Determines the address of an A2A interface that speaks gRPC. Pure.

Cards give such interfaces as URLs, or in the form of gRPC's own clients: `host:port`, without a
scheme. Source: A2A 1.0, section 5.8; gRPC name resolution (`dns:`).
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final, cast
from urllib.parse import quote, urlsplit

import idna
from publicsuffixlist import PublicSuffixList

from assay.common.egress_budget import BudgetRules
from assay.http1.model import DEFAULT_PORTS, Scheme, Target
from assay.net.egress.address import (
    NO_OPERATORS,
    NOTHING,
    Address,
    BlockedAddress,
    BlockReason,
    OpenedAddresses,
    OpenedForOperators,
    classify,
    is_called,
)

URL_CHARS_MAX = 8192
"""Longer addresses are refused without parsing."""

HOST_CHARS_MAX = 253
"""Longest name. Source: RFC 1035, section 2.3.4 (255 octets on the wire)."""

_INSIDE_SUFFIXES = frozenset(
    {"localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp", "onion"}
    | {"private"}
)
"""Top labels that mean an internal network. Sources: RFC 6761, RFC 6762, RFC 7686, ICANN's
reservation of .internal and its name-collision list."""

# Otherwise a long s would match as an s.
_SCHEME = re.compile(r"(https?)://", re.IGNORECASE | re.ASCII)
_HIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PORT = re.compile(r"[0-9]{1,5}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The operator's egress policy. The defaults suit the open internet.

    `allow_private` is for development: it opens loopback, private and carrier-grade NAT addresses
    and internal names. Metadata services, link-local and the rest stay blocked even then. `opened`
    are single private addresses, which also allow plain http.
    """

    allow_private: bool = False
    require_https: bool = True
    opened: OpenedAddresses = NOTHING
    opened_for: OpenedForOperators = NO_OPERATORS
    """The addresses that `of` opens to some operators only."""

    def of(self, operator_id: str) -> "EgressPolicy":
        """Return this policy for the wrappers of one operator."""
        if operator_id not in self.opened_for.operators:
            return self
        return replace(self, opened=self.opened_for.addresses)

    def judge(self, address: str | Address) -> BlockedAddress | None:
        """Return why this policy blocks `address`, or None; ignores what is `opened`."""
        denial = classify(address)
        if denial is not None and self.allow_private and denial.is_own_network:
            return None
        return denial

    def refusal(self, scheme: str, host: str, port: int, address: str | Address) -> str | None:
        """Return why `address` is not dialled for a URL of this scheme, host and port, or None.

        For an address that is not opened, this decides what `parse_target` left open.
        """
        if self.opened.opens(host, address, port):
            return None
        denial = self.judge(address)
        if denial is not None:
            return str(denial)
        return self.public_refusal(scheme, port)

    def public_refusal(self, scheme: str, port: int) -> str | None:
        """Return why this scheme or port is never called except where opened, or None."""
        if scheme == "http" and self.require_https:
            return "only https addresses are called"
        return None if is_called(port) else f"port {port} is not called"


@dataclass(frozen=True, slots=True)
class RefusedUrl:
    """An address that is not dialled, and the reason as a sentence."""

    why: str


class _Refuse(Exception):
    """Carries the sentence from the failed check to `parse_target`."""


def parse_target(url: str, policy: EgressPolicy) -> Target | RefusedUrl:
    """Return where `url` leads, or why `policy` does not let us connect there.

    A literal address is checked here. A name still has to be resolved, and every address it
    resolves to checked (`EgressPolicy.judge`) before it is dialled.
    """
    try:
        return _parse(url, policy)
    except _Refuse as refusal:
        return RefusedUrl(str(refusal))


def _parse(url: str, policy: EgressPolicy) -> Target:
    if len(url) > URL_CHARS_MAX:
        raise _Refuse(f"the address is longer than {URL_CHARS_MAX} characters")
    if any("\ud800" <= char <= "\udfff" for char in url):
        raise _Refuse("the address is not Unicode text")  # Half a surrogate pair, from JSON.
    found = _SCHEME.match(url)
    if found is None:
        raise _Refuse("the address does not begin with http:// or https://")
    scheme = cast("Scheme", found[1].lower())  # The pattern allows no third one.
    rest = url[found.end() :]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host_text, port_text = _split_authority(authority)
    port = _port(port_text) if port_text else DEFAULT_PORTS[scheme]
    host = _host(host_text)
    is_literal = not isinstance(host, str)
    if isinstance(host, str):
        _refuse_name(scheme, host, port, policy)
    elif (why := policy.refusal(scheme, str(host), port, host)) is not None:
        raise _Refuse(why)
    return Target(scheme, str(host), port, _path_and_query(rest[len(authority) :]), is_literal)


def _split_authority(authority: str) -> tuple[str, str]:
    """Split into host and port texts; an IPv6 host keeps its brackets."""
    if "@" in authority:
        raise _Refuse("the address carries a user name or password")
    if "%" in authority or "\\" in authority or _HIDDEN.search(authority):
        raise _Refuse("the address has characters that no host name has")
    if authority.startswith("["):
        host, closed, tail = authority.partition("]")
        if not closed or (tail and not tail.startswith(":")):
            raise _Refuse("the IPv6 address is not closed by a bracket")
        return host + closed, tail[1:]
    host, _, port = authority.partition(":")
    return host, port


def _port(text: str) -> int:
    # `_PORT` has only ASCII digits: int() would also read full-width ones.
    if not _PORT.fullmatch(text):
        raise _Refuse("the port is not a number")
    return int(text)


def _host(text: str) -> str | Address:
    """Return the name in its canonical spelling, or the literal address."""
    if text.startswith("["):
        return _ipv6(text[1:-1])
    name = _ascii(text).removesuffix(".")
    labels = name.split(".")
    if len(name) > HOST_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise _Refuse("the host name is not well formed")
    # A name whose last label is a number is an IPv4 address or nothing. Source: WHATWG URL,
    # section 3.5.
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(labels)
    for label in labels:
        if label.startswith("xn--"):
            _check_a_label(label)
    return name


def _ascii(text: str) -> str:
    """Return lower-case ASCII; full-width letters, digits and dots become ordinary ones."""
    if text.isascii():
        return text.lower()
    if len(text) > HOST_CHARS_MAX:
        raise _Refuse("the host name is not well formed")
    try:
        mapped = idna.uts46_remap(text, std3_rules=True, transitional=False)
        return mapped if mapped.isascii() else idna.encode(mapped).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise _Refuse("the host name is not a valid international name") from None


def _check_a_label(label: str) -> None:
    try:
        idna.ulabel(label)
    except (idna.IDNAError, UnicodeError):
        raise _Refuse("the host name is not a valid international name") from None


def _ipv6(text: str) -> IPv6Address:
    try:
        return IPv6Address(text)
    except ValueError:
        raise _Refuse("the IPv6 address is not well formed") from None


def _ipv4(labels: list[str]) -> IPv4Address:
    """Parse like `inet_aton`: 1 to 4 parts, decimal, octal (0...) or hexadecimal (0x...)."""
    numbers = [_number(label) for label in labels]
    *leading, last = numbers
    if len(numbers) > 4 or any(n > 0xFF for n in leading) or last >= 256 ** (5 - len(numbers)):  # noqa: PLR2004 - the octets of an IPv4 address
        raise _Refuse("the host is a number that is not an IPv4 address")
    value = last + sum(n << (8 * (3 - place)) for place, n in enumerate(leading))
    return IPv4Address(value)


def _number(label: str) -> int:
    if not _NUMBER.fullmatch(label):  # `int` would also read a sign and underscores.
        raise _Refuse("the host is a number that is not an IPv4 address")
    try:
        if label.startswith("0x"):
            return int(label[2:] or "0", 16)
        return int(label, 8 if label.startswith("0") and label.isdigit() else 10)
    except ValueError:
        raise _Refuse("the host is a number that is not an IPv4 address") from None


def is_inside_name(name: str) -> bool:
    """Return whether a lower-case name can only mean an internal network."""
    suffix = name.rpartition(".")[2]
    return "." not in name or suffix in _INSIDE_SUFFIXES or name.endswith(".home.arpa")


def _refuse_name(scheme: str, name: str, port: int, policy: EgressPolicy) -> None:
    """Refuse what needs no look-up; the rest is decided when the name is resolved."""
    if policy.opened.may_lead(name, port):
        return
    if (why := policy.public_refusal(scheme, port)) is not None:
        raise _Refuse(why)
    if policy.allow_private:
        return
    if "." not in name:
        raise _Refuse("a host name without a dot belongs to an inside network")
    if is_inside_name(name):
        raise _Refuse("the host name belongs to an inside network")


def _path_and_query(text: str) -> str:
    """Drop the fragment, add a leading slash, and require printable ASCII."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise _Refuse("the address has control characters")
    text = text.partition("#")[0]
    if not text.startswith("/"):
        text = "/" + text
    return quote(text, safe="/?%:@!$&'()*+,;=-._~[]")


_NETWORK_BITS = 64


def domain_of(host: str) -> str:
    """Return the registrable domain of a host name, or the network of an IP address.

    Uses the Public Suffix List with its private section, as bundled with the library (never
    fetched): `a.b.example.co.uk` belongs to `example.co.uk`, `x.github.io` to itself. A name that
    is a public suffix or has one label is returned unchanged, as is an IPv4 address. For an IPv6
    address it is the network of 64 bits. `host` is lower-case ASCII without brackets.
    """
    try:
        return network_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return _suffixes().privatesuffix(name) or name


def registered_domain(host: str) -> str:
    """Like `domain_of`, without the list's private section.

    `x.github.io` belongs to `github.io`: the party that rents out names below it registered it.
    """
    try:
        return network_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return _registries().privatesuffix(name) or name


def network_of(address: str) -> str:
    """Return an IPv4 address itself, or an IPv6 address's network (`2001:db8::/64`).

    An IPv4 address embedded in an IPv6 one (`::ffff:192.0.2.1`) counts as IPv4. Raises `ValueError`
    for an invalid address.
    """
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    mapped = IPv6Address(parsed).ipv4_mapped
    if mapped is not None:
        return str(mapped)
    return str(IPv6Network((int(parsed), _NETWORK_BITS), strict=False))


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    """Load the list on first use: it takes 60 ms."""
    return PublicSuffixList()


@lru_cache(maxsize=1)
def _registries() -> PublicSuffixList:
    return PublicSuffixList(only_icann=True)


def is_exempt(host: str, policy: EgressPolicy, rules: BudgetRules) -> bool:
    """Return whether a host can only be on one's own network, opened by a setting: no budget."""
    if not policy.allow_private or rules.holds_private:
        return False
    denial = classify(host)
    if denial is None:
        return False
    return is_inside_name(host) if denial.reason is BlockReason.MALFORMED else denial.is_own_network


GRPC: Final = "GRPC"
"""The name of the binding in cards of 0.3 and of 1.0."""

_GRPC_SCHEME = re.compile(r"(?:(https?|grpcs?)://|dns:(?:/{2,3})?)?", re.IGNORECASE)
_BROKEN_SCHEME = re.compile(r"(?:https?|grpcs?|dns):", re.IGNORECASE)
"""A scheme in place of a host: `grpcs:/host` would be the host `grpcs`, called without TLS."""


def grpc_origins(url: str) -> tuple[str, ...]:
    """Return the origins to try in order, as http(s) URLs without a path.

    If the address does not mention TLS, that is tried first; without TLS, only addresses that the
    egress guard allows in plain text are called. Empty for an invalid address.
    """
    found = _GRPC_SCHEME.match(url)
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
