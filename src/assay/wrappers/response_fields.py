"""Decides which header fields of an upstream's answer reach the caller.

A registered field passes if it is on the list below. An unregistered one passes unless its name or
prefix commands a proxy in front of us, a browser's whole origin, or our own protocol. Pure. Source:
the IANA HTTP Field Name Registry; RFC 9110, section 7.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from assay.net.egress.credentials import HOP_BY_HOP, as_gateways_read, is_remembered

EXCEPTIONS_MAX: Final = 32
"""Most names in a wrapper's `passResponseHeaders`."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")


def _names(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


_PASS: Final = _names("""
    accept accept-encoding accept-patch accept-post accept-query accept-ranges
    access-control-allow-credentials access-control-allow-headers access-control-allow-methods
    access-control-allow-origin access-control-expose-headers access-control-max-age
    age allow alternates authentication-info cache-control cache-status cal-managed-id
    caldav-timezones cmsd-dynamic cmsd-static content-base content-digest content-disposition
    content-encoding content-id content-language content-length content-location content-md5
    content-range content-type content-version cross-origin-resource-policy date dav delta-base
    deprecation digest dpop-nonce ediint-features etag expires im last-modified
    link link-template location lock-token memento-datetime mime-version negotiate
    odata-entityid odata-version ordering-type oslc-core-version pragma preference-applied priority
    proxy-status referrer-policy repeatability-result replay-nonce repr-digest retry-after
    schedule-tag server
    server-timing set-cookie set-txn signature signature-input status-uri sunset tcn
    timeout timing-allow-origin topic traceparent tracestate ttl unencoded-digest urgency
    variant-vary vary via want-content-digest want-digest want-repr-digest want-unencoded-digest
    warning www-authenticate
""")
"""Registered fields that concern their own answer only. `Set-Cookie` and `WWW-Authenticate` are
checked once more if wrappers share the origin of the app."""

_REGISTERED: Final = _PASS | _names("""
    a-im accept-additions accept-ch accept-charset accept-datetime accept-features accept-language
    accept-signature access-control access-control-request-headers access-control-request-method
    activate-storage-access alpn alt-svc alt-used amp-cache-transform apply-to-redirect-ref
    authentication-control authorization available-dictionary c-ext c-man c-opt c-pep c-pep-info
    capsule-protocol cdn-cache-control cdn-loop cert-not-after cert-not-before clear-site-data
    client-cert client-cert-chain close cmcd-object cmcd-request cmcd-session cmcd-status
    concealed-auth-export configuration-context connection content-script-type
    content-security-policy content-security-policy-report-only content-style-type cookie cookie2
    cross-origin-embedder-policy cross-origin-embedder-policy-report-only
    cross-origin-opener-policy cross-origin-opener-policy-report-only cta-common-access-token dasl
    default-style depth derived-from destination dictionary-id differential-id dpop early-data
    expect expect-ct ext forwarded from getprofile hobareg host http2-settings if if-match
    if-modified-since if-none-match if-range if-schedule-tag-match if-unmodified-since
    include-referred-token-binding-id isolation keep-alive label last-event-id man max-forwards
    meter method-check method-check-expires nel odata-isolation odata-maxversion opt
    optional-www-authenticate origin origin-agent-cluster oscore overwrite p3p pep pep-info
    permissions-policy pics-label ping-from ping-to position prefer profileobject protocol
    protocol-info protocol-query protocol-request proxy-authenticate proxy-authentication-info
    proxy-authorization proxy-features proxy-instruction public public-key-pins
    public-key-pins-report-only range redirect-ref referer referer-root refresh
    repeatability-client-id repeatability-first-sent repeatability-request-id reporting-endpoints
    resolution-hint resolver-location safe schedule-reply sec-fetch-dest
    sec-fetch-mode sec-fetch-site sec-fetch-storage-access sec-fetch-user sec-gpc sec-purpose
    sec-token-binding sec-websocket-accept sec-websocket-extensions sec-websocket-key
    sec-websocket-protocol sec-websocket-version security-scheme soapaction set-cookie2
    setprofile slug
    speculation-rules strict-transport-security subok subst surrogate-capability surrogate-control
    te title trailer transfer-encoding ua-color ua-media ua-pixels ua-resolution ua-windowpixels
    upgrade uri use-as-dictionary user-agent version x-content-type-options x-device-accept
    x-device-accept-charset x-device-accept-encoding x-device-accept-language x-device-user-agent
    x-frame-options
""")
"""Every name of the registry. Source: iana.org/assignments/http-fields."""

_NEVER: Final = HOP_BY_HOP | _names("""
    accept-ch accept-ch-lifetime activate-storage-access alt-svc alt-used available-dictionary
    cdn-loop clear-site-data close content-security-policy content-security-policy-report-only
    critical-ch edge-control expect-ct expect-staple idp-signin-status login-status nel
    observe-browsing-topics origin-agent-cluster origin-policy public-key-pins
    public-key-pins-report-only report-to reporting-endpoints service-worker-allowed set-cookie
    set-cookie2 set-login settlement-overrides shared-storage-write strict-transport-security
    use-as-dictionary x-content-type-options x-esi x-permitted-cross-domain-policies x-request-id
""")
_NEVER_PREFIXES: Final = (
    # Serve a file or another address, process or keep the body: nginx, Apache, lighttpd,
    # LiteSpeed, H2O, Perlbal, App Engine, content networks with edge side includes, Envoy,
    # Cloudflare, Akamai, Netlify, Vercel's middleware, Fly's proxy, Pushpin and Fastly.
    *(b"x-accel-", b"x-sendfile", b"x-lighttpd-", b"x-litespeed-", b"x-lscache", b"x-reproxy-"),
    *(b"x-appengine-", b"surrogate-", b"x-envoy-", b"proxy-"),
    *(b"cf-edge-", b"x-html-edge-", b"edge-cache-", b"netlify-", b"x-middleware-"),
    *(b"fly-replay", b"grip-"),
    # Register something with the browser for the whole origin.
    *(b"sec-", b"secure-session-", b"attribution-reporting-", b"ad-auction-"),
    # Only this service sets these.
    *(b"x-assay-", b"x-agent-", b"x-payment", b"payment-"),
)
"""No wrapper can make an exception for these: they concern more than its own callers."""

_COMMANDING_TYPES: Final = (
    b"application/vnd.fly.replay",
    b"application/grip-instruct",
    b"application/fo-instruct",
)
"""Body types that Fly's proxy and Pushpin read as commands, like the headers. Sources: Fly,
"Dynamic request routing"; Pushpin, the GRIP protocol."""

_DENIED_SUFFIX: Final = b"cdn-cache-control"
"""`CDN-Cache-Control` and the fields of single networks. Source: RFC 9213, section 2."""


def may_be_excepted(name: str) -> bool:
    """Return whether a wrapper may pass this upstream field (`passResponseHeaders`).

    False for what is not a field name, and for fields that reach beyond the wrapper's own answers.
    """
    if not _NAME.fullmatch(name):
        return False
    return not _is_never(as_gateways_read(name.lower().encode()))


def is_command(content_type: bytes) -> bool:
    """Return whether a proxy in front may read a body of this type as a command."""
    return content_type.strip().lower().startswith(_COMMANDING_TYPES)


def exceptions(names: Sequence[str]) -> frozenset[bytes]:
    """Return the allowed exceptions, in the form for comparison; others are left out."""
    return _exceptions(tuple(names)) if names else _NONE


_NONE: Final = frozenset[bytes]()


@lru_cache(maxsize=1000)
def _exceptions(names: tuple[str, ...]) -> frozenset[bytes]:
    return frozenset(as_gateways_read(n.lower().encode()) for n in names if may_be_excepted(n))


class ResponseFields:
    """Decides which of an upstream's header fields pass; each name is checked once."""

    def __init__(self) -> None:
        self._known: dict[bytes, bool] = {}

    def passes(self, name: bytes) -> bool:
        """Return whether a field of this lower-case name passes without an exception."""
        known = self._known.get(name)
        if known is None:
            known = _passes(as_gateways_read(name))
            if is_remembered(name, self._known):
                self._known[name] = known
        return known


def _passes(name: bytes) -> bool:
    if name in _REGISTERED:
        return name in _PASS
    return not _is_never(name) and not name.endswith(_DENIED_SUFFIX)


def _is_never(name: bytes) -> bool:
    return name in _NEVER or name.startswith(_NEVER_PREFIXES)
