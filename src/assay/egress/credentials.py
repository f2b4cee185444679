"""Our own credentials in a request that leaves, and taking them out of it.

The one list for every way out: wrappers, the proxy and the playground. A credential of ours works
at our API until it expires, so anybody else who receives it can act as its owner. The caller's own
credentials for the target pass unchanged. Pure. Source: facts, security 4; RFC 9110, section 11.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from assay.egress.fields import as_gateways_read

API_KEY_MARK: Final = b"svc_op_"
"""Every API key begins so. Source: spec 2.13."""

SESSION_COOKIE: Final = "assay_session"
"""Cookie of a dashboard session. Nobody but us receives it."""

CREDENTIAL_FIELDS: Final = frozenset(
    {b"x-agent-session", b"x-agent-signature", b"x-agent-challenge", b"x-payment"}
    | {b"payment-signature", b"payment-authorization"}
)
"""Names that carry a credential for us, as headers, cookies or query parameters.
Source: spec 4.7 and 5.3; facts, payments 1."""

_COOKIES: Final = CREDENTIAL_FIELDS | {
    as_gateways_read(prefix + SESSION_COOKIE.encode()) for prefix in (b"", b"__host-", b"__secure-")
}

_MAYBE = re.compile(rb"svc_op_|eyJ|(?<![\w-])[\w-]{142}|[Bb][Aa][Ss][Ii][Cc]\s", re.ASCII)
"""What every value that holds a credential of ours has. Most values have none of it."""

_NAMED = re.compile(
    rb"x[^a-z0-9](?:agent[^a-z0-9](?:session|signature|challenge)|payment)"
    rb"|payment[^a-z0-9](?:signature|authorization)|assay[^a-z0-9]session",
    re.IGNORECASE,
)
"""What every name of ours has, in whatever spelling."""

# Each begins at a boundary, so that a long run of such characters is read once and not from each.
# A credential may begin within a run: `v1-eyJ...` holds one.
_THREE_RUNS = re.compile(rb"(?<![\w-])(?=([\w-]++)(\.[\w-]++\.[\w-]*+))", re.ASCII)
_LONG_RUN = re.compile(rb"(?<![\w-])[\w-]{142,}+", re.ASCII)
_TOKEN_START = b"eyJ"
_SESSION_START = re.compile(rb"MD(?=[\w-]{9}t[\w-]{12}L[\w-]{6}t[\w-]{16}f)", re.ASCII)
"""In base64: an id that begins with `0`, its dashes in their places, and the bar behind it."""

_SESSION_CHARS_MAX = 200
"""Of an agent session, the part with its id, address and expiry, and more."""
_PAYMENT = re.compile(rb"(?:^|,)\s*payment(?:\s|$)", re.IGNORECASE)
_BASIC = re.compile(rb"\bbasic\s+([\w+/=-]+)", re.IGNORECASE | re.ASCII)
_SESSION_TEXT = re.compile(rb"[0-9a-f-]{36}\|[0-9A-Za-z]{32,44}\|[0-9]{10,16}")
_MAC_BYTES = 32

_PAIR = re.compile(r"(^|[&;])([^&;]*)")
"""A query's separator and pair; some servers part pairs by semicolons."""

TOKEN_CHARS_MAX: Final = 4096
"""A longer token is not ours: nothing is decoded for it."""

CANDIDATES_MAX: Final = 32
"""How many texts of one value that look like a credential are looked at."""

PAIRS_MAX: Final = 1000
"""Cookies or parameters that are looked at one by one; of more, with one of ours, none is sent."""

_DECODINGS = 3
"""How often a value is percent-decoded to look for a credential in it."""

_DEEP_BYTES_MAX = 8192
"""A longer value is decoded once: more would take longer than all else a request costs."""


class OwnCredentials:
    """Recognises API keys, dashboard tokens, agent sessions, signatures and payments."""

    def __init__(self, is_dashboard_token: Callable[[str], bool]) -> None:
        """`is_dashboard_token` says of a compact JWS whether it names us as its issuer."""
        self._is_dashboard_token = is_dashboard_token

    def are_in(self, value: bytes) -> bool:
        """Whether a header's, a cookie's or a parameter's value holds a credential of ours.

        Sessions are known by their form and dashboard tokens by their issuer, so that expired ones
        and those of an older key count too. Base64 of `Basic` and percent-encoding are looked into.
        """
        return any(map(self._are_plainly_in, _readings(value)))

    def headers(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Headers with lower-case names, without credentials of ours in their values."""
        if not _may_be_in(b"\n".join([value for _, value in headers])):
            return list(headers)
        kept = ((name, self.header(name, value)) for name, value in headers)
        return [(name, value) for name, value in kept if value is not None]

    def header(self, name: bytes, value: bytes) -> bytes | None:
        """The header's value without credentials of ours; None where nothing of it may be sent.

        `name` is lower case. Only `Cookie` is sent in part.
        """
        if name == b"cookie":
            return self.cookie(value)
        if name == b"authorization" and _PAYMENT.search(value):
            return None
        return None if self.are_in(value) else value

    def cookie(self, value: bytes) -> bytes | None:
        """The value of `Cookie` without cookies of ours; None where none is left."""
        if not self._may_be_named_or_in(value):
            return value
        pairs = value.split(b";", PAIRS_MAX)
        if len(pairs) > PAIRS_MAX:
            return None
        kept = [pair for pair in pairs if not self._is_own_pair(pair, _COOKIES)]
        if len(kept) == len(pairs):
            return value
        return b";".join(kept).strip() or None

    def query(self, query: str) -> str | None:
        """A query without parameters that carry a credential of ours; None where none is left."""
        octets = _octets(query)
        if not _may_be_in(octets) or not self._may_be_named_or_in(octets):
            return query
        pairs = _PAIR.findall(query)
        if len(pairs) > PAIRS_MAX:
            return None
        kept = [p for p in pairs if not self._is_own_pair(_octets(p[1]), CREDENTIAL_FIELDS)]
        if len(kept) == len(pairs):
            return query
        return "".join(map("".join, kept))[len(kept[0][0]) :] if kept else None

    def _may_be_named_or_in(self, pairs: bytes) -> bool:
        """Whether any pair may be one of ours; most are not, and none is looked at by itself."""
        return any(_NAMED.search(r) or self._are_plainly_in(r) for r in _readings(pairs))

    def _is_own_pair(self, pair: bytes, names: frozenset[bytes]) -> bool:
        said = (reading.partition(b"=")[0] for reading in _readings(pair))
        return self.are_in(pair) or any(_name(name) in names for name in said)

    def _are_plainly_in(self, value: bytes) -> bool:
        if _MAYBE.search(value) is None:
            return False
        return self._are_bare_in(value) or any(
            _first((found[1] for found in _BASIC.finditer(value)), self._is_in_basic)
        )

    def _are_bare_in(self, value: bytes) -> bool:
        return (
            API_KEY_MARK in value
            or any(_first(_tokens_in(value), self._is_token))
            or any(_first(_sessions_in(value), _is_session))
        )

    def _is_token(self, text: bytes) -> bool:
        return len(text) <= TOKEN_CHARS_MAX and self._is_dashboard_token(text.decode("ascii"))

    def _is_in_basic(self, text: bytes) -> bool:
        """Whether user name or password hold one. Source: RFC 7617, section 2."""
        plain = _decoded(text)
        return bool(plain) and any(map(self._are_bare_in, (plain, *plain.split(b":", 8))))


def _readings(value: bytes) -> Iterator[bytes]:
    """The value, and what a server makes of it that decodes it once or a few times."""
    yield value
    for _ in range(_DECODINGS if len(value) <= _DEEP_BYTES_MAX else 1):
        if b"%" not in value:
            return
        value = unquote_to_bytes(value)
        yield value


def _name(text: bytes) -> bytes:
    """A cookie's or a parameter's name as names of ours are listed; PHP reads `a[]` as `a`."""
    return as_gateways_read(text.strip().lower()).rstrip(b"-")


def _tokens_in(value: bytes) -> Iterator[bytes]:
    """Whatever looks like a compact JWS, wherever in a run of its characters it begins."""
    for found in _THREE_RUNS.finditer(value):
        start = found[1].rfind(_TOKEN_START)
        if start >= 0:
            yield found[1][start:] + found[2]


def _sessions_in(value: bytes) -> Iterator[bytes]:
    """Whatever looks like an agent session, and is as long as the longest one or its run."""
    for found in _LONG_RUN.finditer(value):
        for start in _SESSION_START.finditer(found[0]):
            yield found[0][start.start() :][:_SESSION_CHARS_MAX]


def _first(candidates: Iterator[bytes], judge: Callable[[bytes], bool]) -> Iterator[bool]:
    """Whether each of the first few that look like one is one; True where there are more.

    No honest value has so many, and looking at thousands would hold up everybody else.
    """
    for count, candidate in enumerate(candidates):
        yield count >= CANDIDATES_MAX or judge(candidate)


def _may_be_in(values: bytes) -> bool:
    """Whether a credential of ours, by its name or its value, may be in any of these values.

    Asked of every request that leaves, once; most have none of these marks.
    """
    low = values.lower()
    return (
        b"svc_op_" in low
        or b"eyj" in low
        or b"%" in low
        or b"payment" in low
        or b"x-agent" in low  # not `agent` alone, which many a User-Agent has
        or b"x_agent" in low
        or b"x.agent" in low
        or b"assay" in low
        or b"basic" in low
        or (b"md" in low and _LONG_RUN.search(values) is not None)
    )


def _is_session(text: bytes) -> bool:
    """Whether it begins with an agent session (`infra.crypto.tokens.HmacSessionTokens`).

    What is behind it may be somebody's glue: the form of its text is enough.
    """
    return _SESSION_TEXT.match(_decoded(text[: len(text) // 4 * 4])) is not None


def _decoded(text: bytes) -> bytes:
    """Base64 of either alphabet, padded or not; empty where it is none."""
    text = text.rstrip(b"=").translate(_TO_URL_SAFE)
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _octets(text: str) -> bytes:
    """A target's text as it came; what is not Latin-1 was never in a request line."""
    return text.encode("latin-1", "replace")
