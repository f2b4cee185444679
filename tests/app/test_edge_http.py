"""What holds for every request and answer."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.app.web import build
from tests.support.live_service import TestService, refused, start_test_service


async def test_every_answer_has_an_id_and_the_safety_headers(service: TestService) -> None:
    for path in ("/operator/health", "/nowhere", "/operator/me", "/operator/gate/7"):
        answer = await service.http.get(path)
        assert answer.headers["x-request-id"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"]
        assert int(answer.headers["ratelimit-limit"]) == 100_000


async def test_a_well_formed_request_id_is_kept_and_any_other_replaced(
    service: TestService,
) -> None:
    kept = await service.http.get("/operator/health", headers={"x-request-id": "abc-1.2_3"})
    assert kept.headers["x-request-id"] == "abc-1.2_3"
    for wrong in ("a b", "x" * 65, "", "a/b"):
        made = await service.http.get("/operator/health", headers={"x-request-id": wrong})
        assert made.headers["x-request-id"] not in {wrong, ""}


async def test_unknown_paths_and_methods_are_in_the_envelope(service: TestService) -> None:
    refused(await service.http.get("/nowhere"), 404, "not_found")
    refused(await service.http.get("/operator/health/"), 404, "not_found")
    answer = await service.http.put("/operator/me")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH"


async def test_anonymous_traffic_is_limited_by_address_and_forgiven_with_time(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, anonymous_per_minute=5) as service:
        answers = [await service.http.get("/api") for _ in range(6)]
        assert [a.status_code for a in answers] == [200] * 5 + [429]
        assert [a.headers["ratelimit-remaining"] for a in answers] == list("432100"[:6])
        refused(answers[5], 429, "rate_limited")
        service.clock.move(int(answers[5].headers["retry-after"]))
        assert (await service.http.get("/api")).status_code == 200


async def test_an_operators_traffic_is_its_own(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, anonymous_per_minute=8, keyed_per_minute=3) as service:
        key = await service.operator()
        statuses = [
            (await service.http.get("/operator/agent/7", headers=key)).status_code for _ in range(5)
        ]
        assert statuses == [200, 200, 200, 429, 429]
        assert (await service.http.get("/api")).status_code == 200


@pytest.mark.parametrize(
    ("peer", "forwarded", "limited"),
    [
        ("10.1.1.1", "203.0.113.1", "203.0.113.1"),
        ("10.1.1.1", "198.51.100.9, 203.0.113.1, 10.2.2.2", "203.0.113.1"),
        ("192.0.2.1", "203.0.113.1", "192.0.2.1"),
        ("10.1.1.1", None, "10.1.1.1"),
    ],
)
async def test_forwarded_addresses_are_believed_only_from_our_proxies(
    tmp_path: Path, peer: str, forwarded: str | None, limited: str
) -> None:
    async with start_test_service(
        tmp_path, anonymous_per_minute=1, trusted_proxies=("10.0.0.0/8",)
    ) as service:
        application: Any = build(service.app)

        async def status(client: str, header: str | None) -> int:
            sender = httpx2.ASGITransport(application, client=(client, 1))
            headers = {} if header is None else {"x-forwarded-for": header}
            async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
                return (await http.get("/api", headers=headers)).status_code

        assert await status(peer, forwarded) == 200
        same = (limited, None) if not limited.startswith("203") else ("10.9.9.9", limited)
        assert await status(*same) == 429


async def test_an_ipv6_network_is_one_caller(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, anonymous_per_minute=1) as service:
        application: Any = build(service.app)
        statuses = []
        for client in ("2001:db8::1", "2001:db8::ffff", "2001:db8:0:1::1"):
            sender = httpx2.ASGITransport(application, client=(client, 1))
            async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
                statuses.append((await http.get("/api")).status_code)
        assert statuses == [200, 429, 200]


async def test_a_fault_of_ours_is_500_without_a_word_of_the_inside(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(type(service.app.challenges), "issue", broken)
    answer = await service.http.post(f"/operator/key/0x{'a' * 40}/challenge")
    refused(answer, 500, "internal_error")
    assert "secret" not in answer.text


async def test_a_body_that_never_ends_is_408(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.server.request_context.BODY_S", 0.05)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/operator/login",
        "query_string": b"",
        "headers": [(b"content-length", b"10")],
        "client": ("127.0.0.1", 1),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        import asyncio  # noqa: PLC0415

        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    await build(service.app)(scope, receive, send)
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    ("length", "status"), [("-1", 400), ("abc", 400), ("1e3", 400), ("9" * 40, 413)]
)
async def test_a_length_that_is_none_is_refused(
    service: TestService, length: str, status: int
) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/operator/login",
        "query_string": b"",
        "headers": [(b"content-length", length.encode())],
        "client": ("127.0.0.1", 1),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await build(service.app)(scope, receive, send)
    assert sent[0]["status"] == status


async def test_jwks_and_documents_are_public(service: TestService) -> None:
    keys = (await service.http.get("/.well-known/jwks.json")).json()["keys"]
    assert (keys[0]["kty"], keys[0]["crv"], keys[0]["alg"]) == ("EC", "P-256", "ES256")
    assert not any("d" in key for key in keys)
    document = (await service.http.get("/openapi.json")).json()
    assert document["info"]["version"] == "1.0.0"
    page = await service.http.get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
