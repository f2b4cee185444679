"""Recognises our own credentials in outbound requests and removes them.

Header fields that a caller may not send to a target through us.

Used by wrappers, the proxy and the playground. Pure.
Source: RFC 9110, section 7; egress.md#proxy-hygiene.

Searches requests for our own credentials, in a bounded number of steps.

Pure. The speed of this decides what a hostile request costs all other callers: it decodes and
searches whole heads at the speed of memory, and counts each item that it inspects separately.

All outbound paths share this list: wrappers, the proxy and the playground. A credential of ours
works at our API until it expires, so any other party that receives it can act as its owner. The
caller's own credentials for the target pass unchanged. Pure. Source: egress.md#proxy-hygiene; RFC
9110, section 11.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

NAMES_REMEMBERED: Final = 2000
NAME_BYTES_REMEMBERED: Final = 64
"""Longest name that is cached. Callers and upstreams choose names, so the cache is bounded by count
and length."""

HOP_BY_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate"}
    | {b"proxy-authorization", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
"""Source: RFC 9110, section 7.6.1; RFC 2616, section 13.5.1."""

CLIENT_ADDRESSES: Final = frozenset(
    {b"forwarded", b"forwarded-for", b"x-forwarded", b"x-forward-for", b"x-real-ip"}
    | {b"x-client-ip", b"client-ip", b"x-remote-ip", b"x-remote-addr", b"remote-addr"}
    | {b"x-originating-ip", b"x-cluster-client-ip", b"x-proxyuser-ip"}
    | {b"true-client-ip", b"fastly-client-ip", b"fly-client-ip", b"do-connecting-ip"}
    | {b"proxy-client-ip", b"wl-proxy-client-ip", b"incap-client-ip", b"ali-cdn-real-ip"}
    | {b"cdn-src-ip", b"cloudfront-viewer-address", b"x-nf-client-connection-ip"}
    | {b"x-azure-clientip", b"x-azure-socketip", b"x-appengine-user-ip"}
    | {b"x-appengine-remote-addr", b"x-client-addr", b"x-true-client-ip", b"x-source-ip"}
    | {b"cf-connecting-ip", b"cf-connecting-ipv6", b"cf-pseudo-ipv4", b"x-sucuri-clientip"}
)
"""Fields in which content networks and load balancers pass the client's address to an origin."""

OVERRIDES: Final = frozenset(
    {b"x-http-method-override", b"x-http-method", b"x-method-override", b"x-method"}
    | {b"http-method-override", b"x-http-verb-override", b"x-restli-method"}
    | {b"x-override-url", b"x-unencoded-url", b"x-waws-unencoded-url", b"x-script-name", b"x-host"}
)
"""Fields that make an upstream read another method or path than the wrapper did."""

IDENTITIES: Final = frozenset(
    {b"remote-user", b"remote-groups", b"remote-name", b"remote-email", b"x-remote-user"}
    | {b"x-remote-group", b"x-remote-groups", b"x-webauth-user", b"x-auth-username"}
    | {b"x-authenticated-user", b"cf-access-authenticated-user-email", b"cf-access-jwt-assertion"}
    | {b"x-pomerium-jwt-assertion", b"client-cert", b"client-cert-chain", b"x-client-cert"}
    | {b"x-client-certificate", b"x-client-cert-chain", b"x-client-verify", b"x-arr-clientcert"}
    | {b"x-client-cert-dn", b"x-client-dn", b"x-client-s-dn", b"x-tls-client-cert", b"x-ssl-cert"}
    | {b"ssl-cert", b"x-remote-name", b"x-remote-email", b"x-remote-uid", b"x-userinfo"}
    | {b"x-credential-identifier", b"x-anonymous-consumer", b"x-apigateway-api-userinfo"}
    | {b"x-endpoint-api-userinfo", b"x-jwt-assertion", b"teleport-jwt-assertion", b"sm-user"}
    | {b"oam-remote-user", b"iv-user", b"iv-groups", b"iv-creds", b"eppn"}
)
"""Fields in which a proxy passes the caller's login or certificate to an origin; we check neither.
Sources: RFC 9440, section 4; the manuals of Authelia, Grafana, Kubernetes (request headers),
Cloudflare Access, Pomerium, App Service, nginx, Kong, Google's API gateways, WSO2, Teleport,
SiteMinder, Oracle and IBM access managers, and Shibboleth."""

_IDENTITY_PREFIXES: Final = (
    *(b"x-remote-extra-", b"x-auth-request-", b"x-authentik-", b"x-goog-authenticated-user-"),
    *(b"x-goog-iap-", b"x-amzn-oidc-", b"x-amzn-mtls-", b"x-ms-client-principal"),
    *(b"tailscale-user-", b"x-pomerium-claim-", b"ssl-client-", b"x-ssl-client-"),
    *(b"x-webauth-", b"x-consumer-", b"x-authenticated-", b"x-ms-token-aad-", b"oidc-claim-"),
    *(b"x-vouch-", b"x-token-user-", b"shib-"),
)
"""The same fields of oauth2-proxy, authentik, Google's and Amazon's balancers, Tailscale, Apache,
Kong, App Service, Vouch, Caddy's portal and Shibboleth."""

_NOT_SENT_SUFFIXES: Final = (
    *(b"forwarded-for", b"client-ip", b"clientip", b"real-ip", b"remote-ip", b"remote-addr"),
    *(b"connecting-ip", b"from-ip", b"source-ip", b"client-addr", b"client-address"),
    *(b"user-ip", b"remote-address", b"ip-authorization", b"originating-ip", b"realip"),
    *(b"proxied-for", b"temp-xff", b"cdn-requestip", b"src-ip", b"clientipaddr", b"origin-ip"),
    *(b"client-ip-address", b"true-ip", b"x-remote-host"),
    *(b"method-override", b"override-method", b"url-override", b"path-override", b"host-override"),
    *(b"rest-method", b"request-uri"),
)
"""Endings of similar fields that a single network or framework uses."""

_NOT_SENT: Final = HOP_BY_HOP | CLIENT_ADDRESSES | OVERRIDES | IDENTITIES | {
    b"host", b"content-length", b"expect", b"via", b"x-request-id", b"http2-settings",
    b"x-payment", b"payment-signature", b"payment-authorization",
    b"proxy",  # Not an HTTP field: as HTTP_PROXY it sets an upstream's own proxy (CVE-2016-5385).
}  # fmt: skip

_NOT_SENT_PREFIXES: Final = (
    *(b"x-forwarded-", b"x-original-", b"x-rewrite-", b"x-envoy-"),
    *(b"x-assay-", b"x-agent-"),
    *_IDENTITY_PREFIXES,
)
"""Addresses, paths, methods and callers as another proxy saw them, and fields reserved for us."""

_ODD = re.compile(rb"[^a-z0-9-]")


def as_gateways_read(name: bytes) -> bytes:
    """Return a lower-case name in the form shared by all names that a gateway treats as equal.

    CGI, WSGI and PHP do not distinguish `x-assay-tier`, `x_assay_tier` and `x.assay.tier`. Source:
    RFC 3875, section 4.1.18.
    """
    return _ODD.sub(b"-", name)


def is_remembered(name: bytes, known: Mapping[bytes, bool]) -> bool:
    """Return whether the result for a name may be added to the cache."""
    return len(known) < NAMES_REMEMBERED and len(name) <= NAME_BYTES_REMEMBERED


class FieldFilter:
    """Decides which header fields pass; caches each decision, because names repeat."""

    def __init__(
        self,
        dropped: frozenset[bytes],
        prefixes: tuple[bytes, ...],
        suffixes: tuple[bytes, ...] = (),
    ) -> None:
        self._dropped = dropped
        self._prefixes, self._suffixes = prefixes, suffixes
        self._known: dict[bytes, bool] = {}

    def passes(self, name: bytes) -> bool:
        """Return whether a field of this lower-case name passes, in any spelling."""
        known = self._known.get(name)
        if known is None:
            read = as_gateways_read(name)
            known = not (
                read in self._dropped
                or read.startswith(self._prefixes)
                or read.endswith(self._suffixes)
            )
            if is_remembered(name, self._known):
                self._known[name] = known
        return known


REQUEST_FIELDS: Final = FieldFilter(_NOT_SENT, _NOT_SENT_PREFIXES, _NOT_SENT_SUFFIXES)
"""Passes the fields that a caller may send to a target."""


def via_mark(address: str) -> bytes:
    """Return our name in `Via`: a pseudonym that no two services share.

    Source: RFC 9110, section 7.6.3.
    """
    return b"assay-" + hashlib.sha256(address.encode()).hexdigest()[:8].encode()


API_KEY_MARK: Final = b"svc_op_"
"""Prefix of every API key. Source: interface.md#api-key-record."""

_NAMES: Final = tuple(
    name.encode()
    for name in (
        *("x-agent-session", "x-agent-signature", "x-agent-challenge", "x-payment"),
        *("payment-signature", "payment-authorization", "assay-session"),
    )
)
"""Substrings of all our names, in lower case and with dashes."""

_FOLDED = bytes(
    byte + 32 if 65 <= byte <= 90 else byte if chr(byte).isalnum() and byte < 128 else 45  # noqa: PLR2004
    for byte in range(256)
)

# Each begins with a literal, which is found at the speed of memory: a pattern that has to be tried
# at every byte would make a long request cost ten times as much as all other work on it.
_RUN_END = re.compile(rb"[\w-]*+", re.ASCII)
_TWO_MORE_RUNS = re.compile(rb"\.[\w-]++\.[\w-]*+", re.ASCII)
_TOKEN_START = b"eyJ"
_SESSION_MARK = b"MD"
_SESSION = re.compile(rb"MD(?=([\w-]{9}t[\w-]{12}L[\w-]{6}t[\w-]{16}f[\w-]{0,150}))", re.ASCII)
"""In base64: an id that begins with `0`, its dashes in their places, the bar after it, and enough
characters for address and expiry."""
_BASIC = re.compile(rb"basic[\s+]++([a-z0-9_+/=-]++)", re.ASCII)
"""In lower case."""
_SESSION_TEXT = re.compile(rb"[0-9a-f-]{36}\|[0-9A-Za-z]{32,44}\|[0-9]{10,16}")

TOKEN_CHARS_MAX: Final = 4096
"""A longer token is not ours and is not decoded."""

CANDIDATES_MAX: Final = 32
"""Largest number of candidate credentials inspected in one value."""

STEPS_MAX: Final = 1200
"""Bound on the search in one request's headers, or in its query, in steps of about a microsecond.
Two thirds of them suffice to decode a whole head as often as it may be encoded. Beyond the bound,
values that may hold a credential are not sent."""

_DECODED_BYTES_A_STEP = 256
_DOUBLE_SIGNS_A_STEP = 4
_SESSION_MARKS_A_STEP = 8
_READING_STEPS = 4
_PAIR_STEPS = 8
_CANDIDATE_STEPS = 8

_DECODINGS = 3
"""How often a value is percent-decoded to find a credential in it."""


class _Spent(Exception):
    """The search used up the steps of its request."""


class Search:
    """Searches one request for our own credentials, in a bounded number of steps.

    A value that is too expensive to inspect counts as a credential: no honest request has so much,
    and a longer search would delay all other callers.
    """

    __slots__ = ("_is_dashboard_token", "_left")

    def __init__(self, is_dashboard_token: Callable[[str], bool]) -> None:
        self._is_dashboard_token = is_dashboard_token
        self._left = STEPS_MAX

    def finds_in(self, value: bytes) -> bool:
        """Return whether a header's value holds a credential of ours."""
        try:
            return any(map(self._are_plainly_in, self._readings(value)))
        except _Spent:
            return True

    def finds_named_in(self, values: bytes) -> bool:
        """Return whether any of these may be ours, by name or value.

        One search clears most requests.
        """
        try:
            return any(_is_named(r) or self._are_plainly_in(r) for r in self._readings(values))
        except _Spent:
            return True

    def is_own_pair(self, pair: bytes, names: frozenset[bytes]) -> bool:
        """Return whether a cookie or parameter has one of these names or holds our credential."""
        try:
            self._take(_PAIR_STEPS)
            return any(
                _name(reading.partition(b"=")[0]) in names or self._are_plainly_in(reading)
                for reading in self._readings(pair)
            )
        except _Spent:
            return True

    def _take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _Spent

    def _readings(self, value: bytes) -> Iterator[bytes]:
        """Yield the value as servers may read it: undecoded, and decoded once or a few times."""
        yield value
        for _ in range(_DECODINGS):
            if b"%" not in value:
                return
            doubled = value.count(b"%%") // _DOUBLE_SIGNS_A_STEP
            self._take(_READING_STEPS + len(value) // _DECODED_BYTES_A_STEP + doubled)
            value = percent_decoded(value)
            yield value

    def _are_plainly_in(self, value: bytes) -> bool:
        if self._are_bare_in(value):
            return True
        low = value.lower()
        return b"basic" in low and any(
            self._first(
                (value[slice(*found.span(1))] for found in _BASIC.finditer(low)), self._is_in_basic
            )
        )

    def _are_bare_in(self, value: bytes) -> bool:
        return (
            API_KEY_MARK in value
            or (_TOKEN_START in value and any(self._first(self._tokens_in(value), self._is_token)))
            or (_SESSION_MARK in value and any(self._first(self._sessions_in(value), _is_session)))
        )

    def _first(self, candidates: Iterator[bytes], judge: Callable[[bytes], bool]) -> Iterator[bool]:
        """Yield the verdict on each of the first candidates; True if there are more than that."""
        for count, candidate in enumerate(candidates):
            self._take(_CANDIDATE_STEPS)
            yield count >= CANDIDATES_MAX or judge(candidate)

    def _tokens_in(self, value: bytes) -> Iterator[bytes]:
        """Yield every substring that looks like a compact JWS, wherever it begins."""
        start = value.find(_TOKEN_START)
        while start >= 0:
            self._take(1)
            end = _end_of_run(value, start)
            rest = _TWO_MORE_RUNS.match(value, end)
            if rest is not None:
                yield value[value.rfind(_TOKEN_START, start, end) : end] + rest[0]
            start = value.find(_TOKEN_START, end)

    def _sessions_in(self, value: bytes) -> Iterator[bytes]:
        """Yield every substring that looks like an agent session, as much as is needed to tell."""
        self._take(value.count(_SESSION_MARK) // _SESSION_MARKS_A_STEP)
        for found in _SESSION.finditer(value):
            yield found[0] + found[1]

    def _is_token(self, text: bytes) -> bool:
        return len(text) <= TOKEN_CHARS_MAX and self._is_dashboard_token(text.decode("ascii"))

    def _is_in_basic(self, text: bytes) -> bool:
        """Return whether user name or password hold one. Source: RFC 7617, section 2."""
        plain = _decoded(text)
        return bool(plain) and any(map(self._are_bare_in, (plain, *plain.split(b":", 8))))


def percent_decoded(value: bytes) -> bytes:
    """Decode like `urllib.parse.unquote_to_bytes`, but turn line ends and NUL into spaces.

    The standard function takes 100 times as long. This one uses quoted-printable decoding, which
    differs in its sign, in its handling of a doubled sign, and in skipping line ends; `=` is
    swapped with NUL meanwhile. A sign at the end is lost.
    """
    if b"%%" in value:  # Twice: one pass misses every other sign of a row.
        value = value.replace(b"%%", b"%25%").replace(b"%%", b"%25%")
    value = value.replace(b"%00", b" ").replace(b"%3D", b"=").replace(b"%3d", b"=")
    return binascii.a2b_qp(value.translate(_TO_QUOTED)).translate(_FROM_QUOTED)


_TO_QUOTED = bytes.maketrans(b"\r\n\0=%", b"   \0=")
_FROM_QUOTED = bytes.maketrans(b"\r\n\0=", b"  =%")


def _is_named(values: bytes) -> bool:
    folded = values.translate(_FOLDED)
    if b"payment" in folded or b"x-agent" in folded or b"assay" in folded:
        return any(name in folded for name in _NAMES)
    return False


def may_be_in(values: bytes) -> bool:
    """Return whether any of these values may hold a credential of ours, by name or value.

    Called once for every outbound request; most contain none of these marks.
    """
    low = values.lower()
    return (
        b"svc_op_" in low
        or b"eyj" in low
        or b"%" in low
        or b"payment" in low
        or b"x-agent" in low  # Not `agent` alone, which many User-Agent values contain.
        or b"x_agent" in low
        or b"x.agent" in low
        or b"assay" in low
        or b"basic" in low
        or _SESSION_MARK in values
    )


def _is_session(text: bytes) -> bool:
    """Return whether it begins with an agent session (`identity.tokens.HmacSessionTokens`).

    Only the form of its text is checked: other text may be appended to it.
    """
    return _SESSION_TEXT.match(_decoded(text[: len(text) // 4 * 4])) is not None


def _decoded(text: bytes) -> bytes:
    """Decode either base64 alphabet, padded or not; return nothing if it is invalid."""
    text = text.rstrip(b"=").translate(_TO_URL_SAFE)
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _end_of_run(value: bytes, start: int) -> int:
    found = _RUN_END.match(value, start)
    return start if found is None else found.end()


def _name(text: bytes) -> bytes:
    """Normalise a cookie's or parameter's name like our own names; PHP reads `a[]` as `a`."""
    return as_gateways_read(text.strip().lower()).rstrip(b"-")


SESSION_COOKIE: Final = "assay_session"
"""Cookie of a dashboard session. Only this service may receive it."""

CREDENTIAL_FIELDS: Final = frozenset(
    {b"x-agent-session", b"x-agent-signature", b"x-agent-challenge", b"x-payment"}
    | {b"payment-signature", b"payment-authorization"}
)
"""Names that carry a credential for us, as headers, cookies or query parameters.
Source: interface.md#wrappers, #agent-identity; x402.md#documents."""

_COOKIES: Final = CREDENTIAL_FIELDS | {
    as_gateways_read(prefix + SESSION_COOKIE.encode()) for prefix in (b"", b"__host-", b"__secure-")
}

_PAIR = re.compile(r"(^|[&;])([^&;]*)")
"""A query's separator and pair; some servers separate pairs by semicolons."""

PAIRS_MAX: Final = 200
"""Cookies or parameters inspected one by one; if there are more and one is ours, none is sent."""


class OwnCredentials:
    """Recognises API keys, dashboard tokens, agent sessions, signatures and payments."""

    def __init__(self, is_dashboard_token: Callable[[str], bool]) -> None:
        """Create it; `is_dashboard_token` tells whether a compact JWS names us as its issuer."""
        self._is_dashboard_token = is_dashboard_token

    def headers(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the headers (lower-case names) whose values hold no credential of ours.

        Sessions are recognised by their form and dashboard tokens by their issuer, so that expired
        ones and those of an older key are found too. Base64 of `Basic` and percent-encoding are
        decoded.
        """
        values = b" ".join([value for _, value in headers])
        if not may_be_in(values):
            return list(headers)
        search = Search(self._is_dashboard_token)
        if search.finds_named_in(values):
            kept = ((name, self._header(name, value, search)) for name, value in headers)
            return [(name, value) for name, value in kept if value is not None]
        return [one for one in headers if one[0] != b"authorization" or not _is_payment(one[1])]

    def is_in(self, text: str) -> bool:
        """Return whether a text holds a credential of ours."""
        return Search(self._is_dashboard_token).finds_in(_octets(text))

    def header(self, name: bytes, value: bytes) -> bytes | None:
        """Return the header's value without credentials of ours; None if nothing of it may be sent.

        `name` is lower case. Only `Cookie` is sent in part.
        """
        return self._header(name, value, Search(self._is_dashboard_token))

    def cookie(self, value: bytes) -> bytes | None:
        """Return the value of `Cookie` without our cookies; None if none is left."""
        return self._cookie(value, Search(self._is_dashboard_token))

    def query(self, query: str) -> str | None:
        """Return a query without parameters that carry our credentials; None if none is left."""
        octets = _octets(query)
        search = Search(self._is_dashboard_token)
        if not may_be_in(octets) or not search.finds_named_in(octets):
            return query
        pairs = _PAIR.findall(query)
        if len(pairs) > PAIRS_MAX:
            return None
        kept = [p for p in pairs if not search.is_own_pair(_octets(p[1]), CREDENTIAL_FIELDS)]
        if len(kept) == len(pairs):
            return query
        return "".join(map("".join, kept))[len(kept[0][0]) :] if kept else None

    def _header(self, name: bytes, value: bytes, search: Search) -> bytes | None:
        if name == b"cookie":
            return self._cookie(value, search)
        if name == b"authorization" and _is_payment(value):
            return None
        return None if search.finds_in(value) else value

    def _cookie(self, value: bytes, search: Search) -> bytes | None:
        if not search.finds_named_in(value):
            return value
        pairs = value.split(b";", PAIRS_MAX)
        if len(pairs) > PAIRS_MAX:
            return None
        kept = [pair for pair in pairs if not search.is_own_pair(pair, _COOKIES)]
        if len(kept) == len(pairs):
            return value
        return b";".join(kept).strip() or None


def _is_payment(authorization: bytes) -> bool:
    """Return whether one of the credentials in it has the scheme `Payment`."""
    between = authorization.lower().split(b"payment", CANDIDATES_MAX)
    if len(between) > CANDIDATES_MAX:
        return True
    begins = [i == 0 and not text.strip() for i, text in enumerate(between)]
    pairs = zip(begins, between, between[1:], strict=False)
    return any(
        (begin or before.rstrip().endswith(b",")) and not after[:1].strip()
        for begin, before, after in pairs
    )


def _octets(text: str) -> bytes:
    """Return a target's text as bytes; a request line never held characters beyond Latin-1."""
    return text.encode("latin-1", "replace")
