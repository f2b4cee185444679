"""What no caller may say to a target: whose address it is, and that another request is meant."""

import pytest

from assay.net.egress.credentials import REQUEST_FIELDS


@pytest.mark.parametrize(
    "name",
    [
        *("x-forwarded-for", "x-real-ip", "forwarded", "true-client-ip", "cf-connecting-ip"),
        *("x-vercel-forwarded-for", "x-real-client-ip", "z-forwarded-for", "x-akamai-client-ip"),
        *("http-client-ip", "http-x-forwarded-for", "x-ms-forwarded-client-ip", "source-ip"),
        *("x-vercel-proxied-for", "fastly-temp-xff", "cdn-requestip", "x-cdn-src-ip", "x-realip"),
        *("rlnclientipaddr", "x-src-ip", "x-origin-ip", "x-client-ip-address", "x-remote-host"),
        *("x-user-ip", "x-remote-address", "x-custom-ip-authorization", "x-ms-originating-ip"),
        *("x-from-ip", "x-client-address", "x-some-new-network-connecting-ip", "x_vercel_real_ip"),
        *("x-original-url", "x-rewrite-url", "x-http-method-override", "x-http-host-override"),
        *("x-http-path-override", "x-override-method", "x-rest-method", "host-override"),
        *("x-request-uri", "http2-settings"),
    ],
)
def test_an_address_or_another_method_or_path_is_not_said(name: str) -> None:
    assert not REQUEST_FIELDS.passes(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        *("remote-user", "x-remote-user", "x_remote_user", "remote-groups", "x-remote-group"),
        *("x-consumer-username", "x-credential-identifier", "x-userinfo", "oidc_claim_email"),
        *("x-apigateway-api-userinfo", "x-ms-token-aad-id-token", "x-jwt-assertion", "sm_user"),
        *("x-vouch-user", "x-token-user-email", "iv-user", "oam_remote_user", "shib-identity"),
        *("x-webauth-email", "x-remote-email", "x-ssl-cert", "x-client-dn", "x-tls-client-cert"),
        *("x-remote-extra-scopes", "x-webauth-user", "x-auth-request-email", "x-auth-username"),
        *("x-authentik-username", "x-authenticated-user", "x-goog-authenticated-user-email"),
        *("x-goog-iap-jwt-assertion", "cf-access-authenticated-user-email"),
        *("cf-access-jwt-assertion", "x-amzn-oidc-identity", "x-amzn-mtls-clientcert-subject"),
        *("x-ms-client-principal-name", "tailscale-user-login", "x-pomerium-claim-email"),
        *("x-pomerium-jwt-assertion", "ssl-client-verify", "SSL_CLIENT_S_DN".lower()),
        *("x-ssl-client-cert", "x-client-cert", "client-cert", "client-cert-chain"),
        *("x-arr-clientcert", "x-client-certificate", "x-client-verify", "x-forwarded-user"),
    ],
)
def test_who_has_logged_in_is_not_said_for_nobody_here_has_checked_it(name: str) -> None:
    assert not REQUEST_FIELDS.passes(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        *("accept", "authorization", "cookie", "user-agent", "x-api-key", "idempotency-key"),
        *("x-request-method", "x-client-id", "x-ip-country", "mcp-session-id", "x-override"),
        *("cf-access-client-id", "cf-access-client-secret", "x-pomerium-authorization"),
        *("x-auth-token", "x-user-id", "x-goog-api-key", "x-amz-security-token", "x-ms-version"),
        *("remote-id", "x-client-version", "x-serverless-authorization"),
    ],
)
def test_an_apis_own_fields_are_said(name: str) -> None:
    assert REQUEST_FIELDS.passes(name.encode())
