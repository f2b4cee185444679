"""What of an upstream's answer reaches a caller, and what of a caller's request the upstream.

Each request is sent twice over the real protocol: the ordinary path answers the first, the fast
path the second, and both answer alike.
"""

import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_service import OWNER_KEY, refused
from tests.support.wire_upstream import Asked, Play, Wire
from tests.wrappers.test_wrap_repeats_http import Got, Shop, opened

WRAP = "https://wrap.example"
SANDBOX = "sandbox allow-scripts allow-forms"


def says(*lines: str, status: str = "200 OK") -> Play:
    head = "\r\n".join([f"HTTP/1.1 {status}", "content-length: 2", *lines, "", ""]).encode()

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(head + b"ok")

    return play


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncGenerator[Shop]:
    """Wrappers have an origin of their own."""
    async with opened(tmp_path, wrap_url=WRAP, public_url="https://app.example") as made:
        yield made


async def both(shop: Shop, data: bytes) -> Got:
    """The answer of both paths, which is the same."""
    async with shop.caller() as caller:
        await caller.ask(shop.request("/warm"))
        # A length, even of nothing, is for the ordinary path to read.
        first = await caller.ask(data.replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n"))
    async with shop.caller() as caller:
        again = await caller.ask(data)
    for got in (first, again):
        for name in ("x-request-id", "date"):
            got.headers.pop(name, None)
    assert first == again
    return first


async def answered(shop: Shop, *lines: str, status: str = "200 OK", **fields: Any) -> Got:
    await shop.wrap("/warm")
    await shop.wrap("/x", says(*lines, status=status), **fields)
    return await both(shop, shop.request("/x"))


COMMANDS = [
    *("X-Accel-Redirect: /protected/f.txt", "X-Accel-Buffering: no", "X-Sendfile: /etc/passwd"),
    *("X-LiteSpeed-Location: /x", "Surrogate-Control: content=ESI/1.0", "CDN-Cache-Control: x"),
    *("Fly-Replay: app=x", "Fly-Replay-Cache: assay.example/*", "Grip-Hold: stream"),
    *("Content-Type: application/vnd.fly.replay+json", "Content-Type: Application/Grip-Instruct;a"),
    *('NEL: {"report_to":"x"}', "Report-To: {}", "Reporting-Endpoints: a=b", "Accept-CH: DPR"),
    *("Origin-Agent-Cluster: ?1", "Set-Login: logged-in", "Sec-Session-Registration: (ES256)"),
    *("Expect-CT: max-age=1", "Content-Security-Policy-Report-Only: x", "X-Frame-Options: DENY"),
    *("x-agent-session: forged", "x-assay-tier: AAA", "PAYMENT-RESPONSE: x", "Alt-Svc: x"),
    *('WWW-Authenticate: Basic realm="Assay"', "Set-Cookie: a=b", "Clear-Site-Data: *"),
    *("Service-Worker-Allowed: /", "Strict-Transport-Security: max-age=1", "x_accel_redirect: /x"),
]


@pytest.mark.parametrize("line", COMMANDS)
async def test_an_upstream_commands_neither_proxy_nor_browser_nor_us(shop: Shop, line: str) -> None:
    """`X-Accel-Redirect` of an upstream made nginx serve internal files."""
    got = await answered(shop, line)
    assert (got.status, got.body) == (200, b"ok")
    assert line.split(":", maxsplit=1)[0].lower() not in got.headers


async def test_an_apis_own_headers_pass(shop: Shop) -> None:
    lines = [
        *("Mcp-Session-Id: 1", "Link: </a>; rel=next", "X-RateLimit-Remaining: 3", "ETag: w"),
        *("A2A-Version: 1.0", "X-Total-Count: 9", 'WWW-Authenticate: Bearer realm="x"'),
    ]
    got = await answered(shop, *lines)
    for line in lines:
        name, value = line.lower().split(": ", 1)
        assert got.headers[name] == value


async def test_every_answer_at_the_apps_origin_is_sandboxed(shop: Shop) -> None:
    got = await answered(
        shop, "Content-Security-Policy: default-src *", "X-Content-Type-Options: x"
    )
    assert got.headers["content-security-policy"] == SANDBOX
    assert got.headers["x-content-type-options"] == "nosniff"
    async with shop.caller() as caller:
        missing = await caller.ask(shop.request("/missing"))
    assert missing.status == 404
    assert missing.headers["content-security-policy"] == SANDBOX


async def test_a_wrapper_lets_pass_what_concerns_its_own_answers_only(shop: Shop) -> None:
    lines = ["X-Frame-Options: DENY", "CDN-Cache-Control: x", "X-Accel-Redirect: /x", "NEL: {}"]
    exceptions = ["X-Frame-Options", "cdn-cache-control"]
    got = await answered(shop, *lines, passResponseHeaders=exceptions)
    assert got.headers["x-frame-options"] == "deny"
    assert got.headers["cdn-cache-control"] == "x"
    assert "x-accel-redirect" not in got.headers
    assert "nel" not in got.headers
    listed = (await shop.service.http.get("/operator/endpoints", headers=shop.token)).json()
    [one] = [row for row in listed if row["path"] == "/x"]
    assert one["passResponseHeaders"] == ["x-frame-options", "cdn-cache-control"]


@pytest.mark.parametrize(
    "names",
    [
        *(["X-Accel-Redirect"], ["x_accel_redirect"], ["x-assay-tier"], ["X-Agent-Session"]),
        *(["payment-response"], ["nel"], ["Set-Cookie"], ["connection"], ["a b"], [""]),
        ["x-a"] * 33,
    ],
)
async def test_no_exception_is_made_for_what_concerns_everybody(
    shop: Shop, names: list[str]
) -> None:
    body = {"path": "/x", "pricePerCall": 0, "targetUrl": shop.up.url, "passResponseHeaders": names}
    answer = await shop.service.http.post("/operator/endpoints", json=body, headers=shop.token)
    details = refused(answer, 400, "invalid_request")["details"]
    assert details[0]["loc"] == ["body", "passResponseHeaders"]


async def test_a_body_in_a_coding_beneath_the_chunks_is_no_answer(shop: Shop) -> None:
    """It was passed on without its coding."""
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(head)

    await shop.wrap("/warm")
    await shop.wrap("/x", play)
    async with shop.caller() as caller:
        assert (await caller.ask(shop.request("/x"))).status == 502


# -- an origin of their own -----------------------------------------------------------------------


def at(shop: Shop, host: str, path: str, *lines: str) -> bytes:
    target = f"/wrap/{shop.operator_id}{path}" if not path.startswith("/operator") else path
    return "\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode()


@pytest.mark.parametrize("host", ["wrap.example", "WRAP.example", "wrap.example:443"])
async def test_wrappers_are_served_at_their_own_origin(apart: Shop, host: str) -> None:
    lines = ["Set-Cookie: a=b; Domain=example; Path=/x", 'WWW-Authenticate: Basic realm="x"']
    redirect = f"Location: {apart.up.url}/y"
    await apart.wrap("/x", says(*lines, redirect, "Clear-Site-Data: *"))
    async with apart.caller() as caller:
        for _ in range(2):
            got = await caller.ask(at(apart, host, "/x"))
            assert got.status == 200
            below = f"/wrap/{apart.operator_id}"
            assert got.headers["set-cookie"] == f"a=b; path={below}/x"
            assert got.headers["www-authenticate"] == 'basic realm="x"'
            assert got.headers["location"] == f"{WRAP}{below}/y"
            assert got.headers["content-security-policy"] == SANDBOX
            assert "clear-site-data" not in got.headers
    for seen in apart.up.to("/x"):
        assert seen.all("x-forwarded-host") == ["wrap.example"]
        assert seen.all("x-forwarded-proto") == ["https"]


@pytest.mark.parametrize("host", ["app.example", "127.0.0.1:8787", "wrap.example.evil", "x"])
async def test_wrappers_are_not_served_at_the_apps_origin(apart: Shop, host: str) -> None:
    await apart.wrap("/x")
    async with apart.caller() as caller:
        assert (await caller.ask(at(apart, "wrap.example", "/x"))).status == 200
        for _ in range(2):
            got = await caller.ask(at(apart, host, "/x"))
            assert got.status == 404
            assert b"wrapper_not_found" in got.body
            assert WRAP.encode() in got.body
    assert len(apart.up.to("/x")) == 1


async def test_the_api_is_not_served_at_the_origin_of_wrappers(apart: Shop) -> None:
    async with apart.caller() as caller:
        for path in ("/operator/health", "/operator/me", "/operator/gate/7"):
            assert (await caller.ask(at(apart, "wrap.example", path))).status == 404
        assert (await caller.ask(at(apart, "app.example", "/operator/health"))).status == 200
        assert (await caller.ask(at(apart, "10.0.0.1", "/operator/health"))).status == 200


async def test_a_price_is_asked_for_at_the_origin_of_wrappers(apart: Shop) -> None:
    await apart.wrap("/x", pricePerCall=0.01, payoutAddress="0x" + "ab" * 20)
    async with apart.caller() as caller:
        got = await caller.ask(at(apart, "wrap.example", "/x"))
    assert got.status == 402
    assert f"{WRAP}/wrap/{apart.operator_id}/x".encode() in got.body


async def test_one_origin_set_twice_is_one_origin(tmp_path: Path) -> None:
    settings = {"wrap_url": "https://app.example:443", "public_url": "https://APP.example/"}
    async with opened(tmp_path, **settings) as shop:
        await shop.wrap("/x", says("Set-Cookie: a=b"))
        async with shop.caller() as caller:
            got = await caller.ask(at(shop, "whatever", "/x"))
    assert got.status == 200
    assert "set-cookie" not in got.headers


# -- our credentials ------------------------------------------------------------------------------


async def test_our_credentials_reach_no_upstream_and_the_upstreams_own_do(shop: Shop) -> None:
    """A dashboard token reached the upstream of a wrapper."""
    await shop.wrap("/warm")
    await shop.wrap("/x")
    jwt = shop.token["authorization"].removeprefix("Bearer ")
    session = (await shop.service.session(OWNER_KEY))["x-agent-session"]
    key = (await shop.service.operator("b@example.com"))["authorization"].removeprefix("Bearer ")
    for secret in (jwt, session, key):
        basic = base64.b64encode(f"{secret}:".encode()).decode()
        headers = {
            "X-Api-Key": secret,
            "Cookie": f"mine=1; t={secret}; assay_session={secret}; other=2",
            "Referer": f"https://x.example/?k={secret}",
            "X-Foreign": "Bearer foreign.jwt.here",
        }
        for authorization in (f"Bearer {secret}", f"Basic {basic}"):
            path = f"/x?a=1&key={secret}&b=%20"
            await both(shop, shop.request(path, Authorization=authorization, **headers))
    assert len(shop.up.to("/x")) == 12
    for seen in shop.up.to("/x"):
        assert seen.target == "/x?a=1&b=%20"
        assert seen.all("cookie") == ["mine=1; other=2"]
        assert seen.all("x-foreign") == ["Bearer foreign.jwt.here"]
        assert seen.all("authorization") + seen.all("x-api-key") + seen.all("referer") == []
    own = shop.request("/x?t=1;2", Authorization="Bearer a.b.c", Cookie="a=b;c=d ; e")
    await both(shop, own)
    last = shop.up.to("/x")[-1]
    assert (last.target, last.all("authorization")) == ("/x?t=1;2", ["Bearer a.b.c"])
    assert last.all("cookie") == ["a=b;c=d ; e"]


FORGED = [
    *("X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "X-HTTP-Method"),
    *("X-Method-Override", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "X-Real-IP"),
    *("X-Cluster-Client-IP", "Fastly-Client-IP", "Forwarded", "X-Forwarded-User", "X-Host"),
    *("X_Original_URL", "X.Rewrite.URL", "x_http_method_override", "CF_Connecting_IP"),
    *("X-Original-Host", "X-Envoy-Original-Path", "x-forwarded", "Client_IP"),
]


async def test_what_only_a_proxy_may_say_is_dropped(shop: Shop) -> None:
    """An upstream took a forged one for the word of the proxy."""
    await shop.wrap("/warm")
    await shop.wrap("/x")
    for name in FORGED:
        lines = f"GET /wrap/{shop.operator_id}/x HTTP/1.1\r\nHost: x\r\n{name}: forged\r\n\r\n"
        await both(shop, lines.encode())
        for seen in shop.up.to("/x")[-2:]:
            assert "forged" not in str(seen.headers), name
    assert len(shop.up.to("/x")) == 2 * len(FORGED)


# -- lengths, methods, paths ----------------------------------------------------------------------


@pytest.mark.parametrize("length", ["5 ", "5\t", "5 \t "])
async def test_blanks_after_a_length_lose_no_body(shop: Shop, length: str) -> None:
    """The wrapper forwarded no body and answered 200; the API refused it."""
    await shop.wrap("/x")
    head = (
        f"POST /wrap/{shop.operator_id}/x HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
    )
    async with shop.caller() as caller:
        assert (await caller.ask(head.encode() + b"hello")).status == 200
    assert [seen.body for seen in shop.up.to("/x")] == [b"hello"]
    login = b'{"email":"op@example.com","password":"x"}'
    head = f"POST /operator/login HTTP/1.1\r\nHost: x\r\nContent-Length: {len(login)} \r\n\r\n"
    async with shop.caller() as caller:
        assert (await caller.ask(head.encode() + login)).status == 401


@pytest.mark.parametrize("method", ["FOO", "VERSION-CONTROL", "X" * 24, "PURGE"])
async def test_any_method_is_passed_on(shop: Shop, method: str) -> None:
    """interface.md#wrappers. What the server's parser takes is tested with the parser."""
    await shop.wrap("/x")
    url = f"/wrap/{shop.operator_id}/x"
    assert (await shop.service.http.request(method, url, content=b"hello")).status_code == 200
    [seen] = shop.up.to("/x")
    assert (seen.method, seen.body) == (method, b"hello")
    for never in ("TRACE", "CONNECT", "X" * 25):
        refused(await shop.service.http.request(never, url), 404, "wrapper_not_found")


async def test_a_method_of_ones_own_can_be_wrapped(shop: Shop) -> None:
    await shop.wrap("/x", method="FROBNICATE")
    url = f"/wrap/{shop.operator_id}/x"
    assert (await shop.service.http.request("FROBNICATE", url)).status_code == 200
    refused(await shop.service.http.get(url), 404, "wrapper_not_found")


async def test_an_encoded_slash_is_read_where_nothing_matches_it_as_it_is(shop: Shop) -> None:
    """Generated clients send `a%2Fb` for `/wrap/{op}/{path}`."""
    await shop.wrap("/warm")
    await shop.wrap("/a/b")
    await both(shop, shop.request("/a%2Fb?q=%2F"))
    assert [seen.target for seen in shop.up.asked] == ["/warm", "/a/b?q=%2F", "/a/b?q=%2F"]
    await shop.wrap("/{one}")
    await both(shop, shop.request("/a%2Fb"))
    assert [seen.target for seen in shop.up.asked[-2:]] == ["/a%2Fb", "/a%2Fb"]
    await shop.service.app.flush()
    logs = await shop.service.http.get("/operator/analytics/logs", headers=shop.token)
    assert {row["path"] for row in logs.json()["logs"]} >= {"/a/b", "/a%2Fb"}
