"""Header fields that a caller may not send to a target through us.

Used by wrappers, the proxy and the playground. Pure.
Source: RFC 9110, section 7; egress.md#proxy-hygiene.
"""

import hashlib
import re
from collections.abc import Mapping
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
