"""The promises every HTTP test checks on every answer can be broken, and are then noticed."""

import httpx2
import pytest

from tests.support.live_service import TestService
from tests.support.promises import promises_of


def said(status: int, method: str, path: str, headers: dict[str, str]) -> httpx2.Response:
    body = {"error": "x", "code": "x", "message": "x", "requestId": "x"}
    request = httpx2.Request(method, f"http://assay{path}")
    return httpx2.Response(status, headers=headers, json=body, request=request)


@pytest.mark.parametrize(
    ("status", "method", "path", "without"),
    [
        (402, "GET", "/operator/health", None),
        (409, "POST", "/operator/key/verify", None),
        (200, "PUT", "/operator/me", None),
        (404, "GET", "/nowhere", "x-request-id"),
        (200, "GET", "/operator/health", "x-content-type-options"),
        (200, "GET", "/operator/health", "referrer-policy"),
        (200, "GET", "/docs", "ratelimit-limit"),
        (429, "GET", "/operator/health", "retry-after"),
        (405, "GET", "/operator/login", "allow"),
    ],
)
async def test_a_broken_promise_is_noticed(
    service: TestService, status: int, method: str, path: str, without: str | None
) -> None:
    headers = dict((await service.http.get("/nowhere")).headers)
    del headers["content-length"]
    missing = {405: {"allow": "GET"}, 429: {"retry-after": "1"}}.get(status, {})
    check = promises_of(service.app)
    if without is not None:  # whole, it holds
        await check(said(status, method, path, headers | missing))
        headers.pop(without, None)
        missing.pop(without, None)
    with pytest.raises(AssertionError):
        await check(said(status, method, path, headers | missing))
