"""What an upstream may say to its callers, and what it may not say to everybody."""

import pytest

from assay.wrappers.response_fields import ResponseFields, exceptions, may_be_excepted
from assay.wrappers.stages.forward import asks_for_password

PASSES = [
    *("content-type", "content-length", "etag", "link", "location", "cache-control", "vary"),
    *("mcp-session-id", "mcp-protocol-version", "a2a-version", "a2a-extensions"),
    *("x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-limit", "retry-after", "sunset"),
    *("x-total-count", "x-api-version", "openai-processing-ms", "x-amz-request-id", "cf-ray"),
    *("x-powered-by", "x-robots-tag", "x-xss-protection", "date", "server", "x-accelerated"),
    *("www-authenticate", "access-control-allow-origin", "x-custom_name", "deprecation"),
]
COMMANDS_A_PROXY = [
    *("x-accel-redirect", "x-accel-buffering", "x-accel-expires", "x-accel-charset", "x-sendfile"),
    *("x-sendfile2", "x-sendfile-temporary", "x-lighttpd-send-file", "x-litespeed-location"),
    *("x-litespeed-cache-control", "x-lscache", "x-reproxy-url", "x-appengine-blobkey", "x-esi"),
    *("surrogate-control", "surrogate-key", "surrogate-capability", "edge-control", "proxy-x"),
    *("x-envoy-immediate-health-check-fail", "x-envoy-upstream-service-time", "proxy-features"),
    *("cf-edge-cache", "x-html-edge-cache", "edge-cache-tag", "netlify-vary", "netlify-cdn-x"),
    *("x-middleware-rewrite", "x-middleware-next", "x-middleware-override-headers"),
    *("fly-replay", "fly-replay-cache", "fly-replay-cache-ttl-secs", "grip-hold", "grip-channel"),
]
COMMANDS_AN_ORIGIN = [
    *("nel", "report-to", "reporting-endpoints", "strict-transport-security", "clear-site-data"),
    *("service-worker-allowed", "accept-ch", "critical-ch", "alt-svc", "origin-agent-cluster"),
    *("set-login", "sec-session-registration", "secure-session-registration", "expect-ct"),
    *("public-key-pins", "attribution-reporting-register-source", "use-as-dictionary"),
    *("content-security-policy", "content-security-policy-report-only", "set-cookie2"),
    *("x-content-type-options", "shared-storage-write", "sec-websocket-accept"),
]
OURS = [
    *("x-assay-tier", "x-agent-session", "x-agent-anything", "x-payment-response", "x-payment"),
    *("payment-required", "payment-response", "payment-receipt", "settlement-overrides"),
    *("x-request-id", "connection", "transfer-encoding", "keep-alive", "upgrade", "te"),
]
BY_EXCEPTION = [
    *("x-frame-options", "refresh", "permissions-policy", "cross-origin-opener-policy"),
    *("cdn-cache-control", "cloudflare-cdn-cache-control", "vercel-cdn-cache-control", "p3p"),
]


@pytest.mark.parametrize("name", PASSES)
def test_an_apis_own_fields_pass(name: str) -> None:
    assert ResponseFields().passes(name.encode())


@pytest.mark.parametrize("name", COMMANDS_A_PROXY + COMMANDS_AN_ORIGIN + OURS)
def test_what_concerns_everybody_passes_for_nobody(name: str) -> None:
    fields = ResponseFields()
    for spelled in (name, name.replace("-", "_"), name.replace("-", ".")):
        assert not fields.passes(spelled.encode())
        assert not may_be_excepted(spelled)
        assert not may_be_excepted(spelled.upper())
        assert exceptions((spelled,)) == frozenset()


@pytest.mark.parametrize("name", BY_EXCEPTION)
def test_what_concerns_its_own_answer_passes_by_exception(name: str) -> None:
    assert not ResponseFields().passes(name.encode())
    assert may_be_excepted(name)
    assert exceptions((name.title(),)) == {name.encode()}


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "é", "x" * 129, "set-cookie"])
def test_what_is_no_name_is_no_exception(name: str) -> None:
    assert not may_be_excepted(name)


@pytest.mark.parametrize(
    "value",
    [
        *('Basic realm="Assay"', "basic", "BASIC realm=x", "Digest qop=auth", "NTLM", "Negotiate"),
        *(
            'Bearer, Basic realm="x"',
            'Bearer realm="a", basic',
            'Bearer realm="x\\", Basic realm=y',
        ),
        *("Negotiate abc==", '"', "Bearer ,\tDigest x=y"),
    ],
)
def test_a_challenge_that_opens_a_password_dialog_is_known(value: str) -> None:
    assert asks_for_password(value.encode())


@pytest.mark.parametrize(
    "value",
    [
        'Bearer realm="x", resource_metadata="https://a/.well-known/x"',
        'Bearer realm="Basic access"',
        "DPoP algs=ES256",
        'ApiKey realm="digest, basic"',
        "Bearer basic=1",
        "BasicToken x",
    ],
)
def test_other_challenges_are_not(value: str) -> None:
    assert not asks_for_password(value.encode())
