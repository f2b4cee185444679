"""The proxy: Pro only, guarded, and whatever the target does is an answer or a clear refusal."""

import base64
import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_service import OWNER_KEY, TestService, address, refused, start_test_service
from tests.support.raw_server import keeps_open, plain, sends, serving


async def pro(service: TestService) -> dict[str, str]:
    key = await service.operator()
    await service.pro()
    return key


async def call(service: TestService, who: dict[str, str], agent_id: str = "7", **body: Any) -> Any:
    return await service.http.post(f"/operator/proxy/{agent_id}", json=body, headers=who)


async def test_200_the_targets_answer_and_the_agents_grade(service: TestService) -> None:
    key = await pro(service)
    reply = plain(b'{"price":1}', "201 Created", "X-Kind: a", "X-Kind: b", "Content-Type: text/x")
    async with serving(keeps_open(reply)) as target:
        answer = await call(
            *(service, key),
            targetUrl=target.url("/quote?x=1"),
            method="POST",
            headers={"X-Mine": "yes", "Host": "elsewhere", "Transfer-Encoding": "chunked"},
            body='{"a":"\u00e9"}',
        )
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body.pop("responseMs") >= 0
        assert body.pop("tierResolved") in {"AAA", "AA", "A", "BAA", "BA", "B", "CAA", "CA", "C"}
        assert body.pop("route") in {"prod", "prod_throttled", "sandbox", "sandbox_only"}
        assert body == {
            "statusCode": 201,
            "responseHeaders": {"x-kind": "a, b", "content-type": "text/x"},
            "responseBody": '{"price":1}',
            "responseBodyEncoding": "utf-8",
            "truncated": False,
            "costCharged": "0.000000",
        }
        [seen] = target.requests
        assert (seen.method, seen.target) == ("POST", "/quote?x=1")
        assert seen.body.decode() == '{"a":"\u00e9"}'
        assert seen.headers["x-mine"] == "yes"
        assert seen.headers["host"] == f"127.0.0.1:{target.port}"
        assert "transfer-encoding" not in seen.headers
        assert "authorization" not in seen.headers


async def test_200_a_failing_target_is_still_an_answer(service: TestService) -> None:
    key = await pro(service)
    async with serving(keeps_open(plain(b"oh", "503 No"))) as target:
        answer = await call(service, key, targetUrl=target.url("/"))
        assert (answer.status_code, answer.json()["statusCode"]) == (200, 503)


async def test_200_a_redirect_is_shown_and_not_followed(service: TestService) -> None:
    key = await pro(service)
    reply = plain(b"", "302 Found", "Location: http://169.254.169.254/")
    async with serving(keeps_open(reply)) as target:
        body = (await call(service, key, targetUrl=target.url("/"))).json()
        assert body["statusCode"] == 302
        assert body["responseHeaders"]["location"] == "http://169.254.169.254/"
        assert len(target.requests) == 1


async def test_200_bodies_that_are_no_text_packed_or_endless(service: TestService) -> None:
    key = await pro(service)
    packed = gzip.compress(b"hello" * 10)
    for reply, expected in (
        (plain(b"\xff\xfe"), {"responseBody": base64.b64encode(b"\xff\xfe").decode()}),
        (plain(packed, "200 OK", "Content-Encoding: gzip"), {"responseBody": "hello" * 10}),
        (plain(b"x" * (1024 * 1024 + 9)), {"truncated": True, "responseBodyEncoding": "utf-8"}),
    ):
        async with serving(keeps_open(reply)) as target:
            body = (await call(service, key, targetUrl=target.url("/"))).json()
            assert {name: body[name] for name in expected} == expected
            assert len(body["responseBody"]) <= 1024 * 1024
            assert "content-encoding" not in body["responseHeaders"]


async def test_200_a_key_agent_is_resolved_too(service: TestService) -> None:
    key = await pro(service)
    async with serving(keeps_open(plain(b"ok"))) as target:
        answer = await call(service, key, address(OWNER_KEY), targetUrl=target.url("/"))
        assert answer.status_code in {200, 503}


async def test_401_without_an_operator_key(service: TestService) -> None:
    for who in ({}, {"authorization": "Bearer svc_op_x"}):
        refused(await call(service, who, targetUrl="https://example.com"), 401, "unauthorized")


async def test_403_the_free_plan_has_no_proxy(service: TestService) -> None:
    key = await service.operator()
    async with serving(keeps_open(plain(b"ok"))) as target:
        answer = await call(service, key, targetUrl=target.url("/"))
        body = refused(answer, 403, "plan_required")
        assert body["feature"] == "proxy"
        assert body["upgradeUrl"]
        assert target.requests == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"targetUrl": ""},
        {"targetUrl": 5},
        {"targetUrl": "/relative"},
        {"targetUrl": "ftp://example.com/"},
        {"targetUrl": "http://u:p@example.com/"},
        {"targetUrl": "http://169.254.169.254/latest/meta-data"},
        {"targetUrl": "http://[fe80::1]/"},
        {"targetUrl": "http://example.com:22/"},
        {"method": "TRACE"},
        {"method": "CONNECT"},
        {"method": "GET\r\nX: y"},
        {"headers": {"bad name": "x"}},
        {"headers": {"x": "a\r\nb: c"}},
        {"headers": {"x": "\u4e2d"}},
        {"headers": {f"x-{n}": "y" for n in range(65)}},
        {"headers": {"x": 5}},
        {"body": {"a": 1}},
        {"follow": True},
    ],
    ids=lambda body: str(body)[:40],
)
async def test_400_what_cannot_be_sent_is_refused(
    service: TestService, body: dict[str, Any]
) -> None:
    key = await pro(service)
    asked = (
        body if not body or "targetUrl" in body else {"targetUrl": "http://127.0.0.1:8999", **body}
    )
    refused(await call(service, key, **asked), 400, "invalid_request")


@pytest.mark.parametrize(
    "url",
    [
        "http://10.1.2.3/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/",
        "http://127.0.0.1:8080/", "http://localhost/", "http://0x7f.1/", "http://2130706433/",
        "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/",
        "http://metadata.google.internal/", "http://100.64.0.1/",
    ],
)  # fmt: skip
async def test_400_nothing_inside_is_called(tmp_path: Path, url: str) -> None:
    async with start_test_service(tmp_path / "h", allow_private_upstreams=False) as service:
        key = await pro(service)
        answer = await call(service, key, targetUrl=url)
        assert refused(answer, 400, "invalid_request")["details"][0]["loc"] == ["body", "targetUrl"]
        gone = await service.http.get("/operator/agent/7/snapshot")
        refused(gone, 404, "snapshot_not_found")  # nobody was evaluated for it


async def test_404_an_agent_nobody_knows(service: TestService) -> None:
    key = await pro(service)
    answer = await call(service, key, "404", targetUrl="http://127.0.0.1:8999/")
    refused(answer, 404, "agent_not_found")
    refused(
        await call(service, key, "x", targetUrl="http://127.0.0.1:8999/"), 400, "invalid_request"
    )


@pytest.mark.parametrize(
    ("respond", "reason"),
    [
        (sends(), "protocol_error"),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal"), "protocol_error"),
        (sends(b"nonsense\r\n\r\n"), "protocol_error"),
    ],
)
async def test_502_a_target_that_does_not_answer(
    service: TestService, respond: Any, reason: str
) -> None:
    key = await pro(service)
    async with serving(respond) as target:
        answer = await call(service, key, targetUrl=target.url("/"))
        assert refused(answer, 502, "proxy_request_failed")["reason"] == reason


async def test_502_a_door_nobody_opens_and_a_name_nobody_knows(service: TestService) -> None:
    key = await pro(service)
    shut = await call(service, key, targetUrl="http://127.0.0.1:8999/")
    assert refused(shut, 502, "proxy_request_failed")["reason"] == "connect_failed"
