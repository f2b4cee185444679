"""What a hostile or broken caller sends, and what is answered."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.app.web import build, openapi_document
from tests.support.live_service import TestService, refused, start_test_service

Headers = Iterable[tuple[bytes, bytes]]

BODIES = {
    "/operator/register": "POST",
    "/operator/login": "POST",
    "/operator/me": "PATCH",
    "/operator/keys/rotate": "POST",
    "/operator/key/verify": "POST",
}


async def status_of(
    application: Any, client: str, headers: Headers = (), path: str = "/api"
) -> int:
    """The status a GET from this address is answered with; header lines as they are."""
    sender = httpx2.ASGITransport(application, client=(client, 1))
    async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
        return (await http.get(path, headers=list(headers))).status_code


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_a_request_cut_off_is_not_taken_for_one_without_a_body(service: TestService) -> None:
    """The body of rotate is optional: half of one must not issue a key."""
    await service.operator()
    token = await service.token()
    sent: list[Mapping[str, Any]] = []
    waiting: list[Mapping[str, Any]] = [
        {"type": "http.request", "body": b"", "more_body": True},
        {"type": "http.disconnect"},
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/operator/keys/rotate",
        "query_string": b"",
        "headers": [
            (b"authorization", token["authorization"].encode()),
            (b"content-length", b"30"),
        ],
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await build(service.app)(scope, receive, send)
    listed = (await service.http.get("/operator/keys", headers=token)).json()
    assert (sent[0]["status"], len(listed)) == (400, 1)


NO_GOOD_ANYWHERE = [
    b"{", b"null", b"[]", b'"x"', b"1", b"\xff\xfe", b"\x00", b"{}}", b"\xef\xbb\xbf{}",
    b'{"name": "\\ud800", "label": "\\udfff", "email": "\\ud83d"}',
    b'{"x": ' + b"[" * 15_000, b'{"x": ' * 2_500, b'{"x": 1e999999}', b'{"x": ' + b"9" * 5000,
    b'{"name": NaN, "label": Infinity}',
]  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
async def test_400_a_body_that_is_no_good_anywhere(service: TestService, path: str) -> None:
    await service.operator()
    headers = await service.token()
    for body in NO_GOOD_ANYWHERE:
        answer = await service.http.request(BODIES[path], path, headers=headers, content=body)
        assert answer.status_code == 400, (body[:20], answer.text)
        assert refused(answer, 400, "invalid_request")["details"], body[:20]


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "x"])
async def test_json_is_read_whatever_it_is_called(service: TestService, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    body = b'{"email": "a@b.cc", "password": "correct horse battery", "name": "A"}'
    answer = await service.http.post("/operator/register", headers=headers, content=body)
    assert answer.status_code == 200


async def test_400_the_name_of_an_unknown_member_is_repeated_in_short(service: TestService) -> None:
    body = b'{"' + b"k" * 15_000 + b'": 1}'
    answer = await service.http.post("/operator/login", content=body)
    refused(answer, 400, "invalid_request")
    assert len(answer.content) < 1500


async def test_400_at_most_twenty_things_wrong_are_told(service: TestService) -> None:
    body = dict.fromkeys((f"k{n}" for n in range(1000)), 1)
    answer = await service.http.post("/operator/login", json=body)
    assert len(refused(answer, 400, "invalid_request")["details"]) == 20


async def test_413_beyond_the_cap_and_not_at_it(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, body_bytes_max=2048) as service:
        for size, status in ((2048, 400), (2049, 413)):
            for content in (b" " * size, chunks(*[b" " * 512] * 4, b" " * (size - 2048))):
                answer = await service.http.post("/operator/login", content=content)
                assert answer.status_code == status
        body = refused(await service.http.post("/operator/login", content=b" " * 9999), 413,
                       "payload_too_large")  # fmt: skip
        assert body["maxBytes"] == 2048


async def test_a_forwarded_line_of_the_callers_own_is_not_believed(tmp_path: Path) -> None:
    """A proxy may add a second header line instead of a word to the first (HAProxy does)."""
    settings = {"anonymous_per_minute": 1, "trusted_proxies": ("10.0.0.0/8",)}
    async with start_test_service(tmp_path, **settings) as service:
        application = build(service.app)
        statuses = [
            await status_of(
                application,
                "10.0.0.1",
                [(b"x-forwarded-for", invented), (b"x-forwarded-for", b"203.0.113.1")],
            )
            for invented in (b"198.51.100.1", b"198.51.100.2")
        ]
        assert statuses == [200, 429]


async def test_ipv4_in_ipv6_clothes_is_the_ipv4_address(tmp_path: Path) -> None:
    """All of them share one network of 64 bits: one caller must not use up everybody's limit."""
    settings = {"anonymous_per_minute": 1, "trusted_proxies": ("10.0.0.0/8",)}
    async with start_test_service(tmp_path, **settings) as service:
        application = build(service.app)
        assert await status_of(application, "::ffff:203.0.113.1") == 200
        assert await status_of(application, "::ffff:203.0.113.2") == 200
        assert await status_of(application, "203.0.113.1") == 429
        behind = [(b"x-forwarded-for", b"203.0.113.7")]
        assert await status_of(application, "::ffff:10.0.0.1", behind) == 200
        assert await status_of(application, "203.0.113.7") == 429


async def test_forwarded_nonsense_is_some_caller_and_no_fault(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, trusted_proxies=("10.0.0.0/8",)) as service:
        application = build(service.app)
        for value in (b"", b",,,", b"unknown", b"\xff\xfe", b"1.2.3.4:80", b"a" * 10_000):
            assert await status_of(application, "10.0.0.1", [(b"x-forwarded-for", value)]) == 200


async def test_405_names_exactly_the_methods_of_the_document(service: TestService) -> None:
    for path, item in openapi_document(service.app)["paths"].items():
        if path.startswith(("/wrap/", "/gate/")):
            continue  # whatever an upstream takes, and whatever a proxy's caller sends
        concrete = re.sub(r"\{agentAddress\}", "0x" + "a" * 40, path)
        concrete = re.sub(r"\{wallet\}", "0x" + "b" * 40, concrete)
        answer = await service.http.request("TRACE", re.sub(r"\{\w+\}", "7", concrete))
        refused(answer, 405, "method_not_allowed")
        allowed = set(answer.headers["allow"].split(", "))
        assert allowed >= {method.upper() for method in item}, path


async def test_nothing_but_http_is_answered(service: TestService) -> None:
    async def unused(*_: object) -> Any:
        raise AssertionError("nobody should ask")

    await build(service.app)({"type": "lifespan"}, unused, unused)
