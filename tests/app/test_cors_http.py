"""The API from another origin's page: only where the setting names it (`ASSAY_CORS_ORIGINS`)."""

from collections.abc import AsyncGenerator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.app.web import build, openapi_document
from assay.settings import SettingsError, load
from tests.support.live_service import TestService, refused, start_test_service

PAGE = "https://page.example"


@pytest.fixture
async def cors(tmp_path: Path) -> AsyncGenerator[httpx2.AsyncClient]:
    async with start_test_service(tmp_path / "h", cors_origins=(PAGE,)) as service:
        sender = httpx2.ASGITransport(build(service.app))
        async with httpx2.AsyncClient(transport=sender, base_url="http://assay") as client:
            yield client


def preflight(origin: str = PAGE) -> dict[str, str]:
    return {"origin": origin, "access-control-request-method": "POST"}


@pytest.mark.parametrize("path", ["/operator/gate/0", "/operator/me", "/operator/none"])
async def test_a_preflight_of_a_named_origin_gets_leave(
    cors: httpx2.AsyncClient, path: str
) -> None:
    """It was 405, so no page of another origin could call the API."""
    answer = await cors.options(path, headers=preflight())
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["vary"] == "Origin"


async def test_answers_and_refusals_can_be_read_by_it(cors: httpx2.AsyncClient) -> None:
    for path, status in (("/operator/health", 200), ("/operator/me", 401), ("/none", 404)):
        answer = await cors.get(path, headers={"origin": PAGE})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "retry-after" in answer.headers["access-control-expose-headers"]


async def test_a_page_may_send_and_read_every_header_of_the_document(
    cors: httpx2.AsyncClient, service: TestService
) -> None:
    """`If-Match` of a change, and the `ETag` it names, were left out."""
    document = openapi_document(service.app)
    calls = [
        call
        for path, item in document["paths"].items()
        if path.startswith("/operator/")
        for call in item.values()
    ]
    sent = {
        one["name"].lower()
        for call in calls
        for one in map(partial(_resolved, document), call.get("parameters", ()))
        if one["in"] == "header"
    }
    read = {name.lower() for call in calls for name in _answer_headers(document, call)}
    assert {"if-match", "x-chain"} <= sent
    assert {"etag", "retry-after", "x-agent-session"} <= read
    leave = (await cors.options("/operator/me", headers=preflight())).headers
    answer = (await cors.get("/operator/health", headers={"origin": PAGE})).headers
    assert sent - _listed(leave["access-control-allow-headers"]) == set()
    assert read - _listed(answer["access-control-expose-headers"]) == set()


def _answer_headers(document: dict[str, Any], call: dict[str, Any]) -> Iterator[str]:
    for answer in call["responses"].values():
        yield from _resolved(document, answer).get("headers", ())


def _resolved(document: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """A part of the document, or the shared part that it refers to."""
    if "$ref" not in one:
        return one
    _, _, kind, name = one["$ref"].split("/")
    return document["components"][kind][name]


def _listed(value: str) -> set[str]:
    return {name.strip() for name in value.split(",")}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://PAGE.example", ""])
async def test_another_origin_gets_none(cors: httpx2.AsyncClient, origin: str) -> None:
    answer = await cors.options("/operator/me", headers=preflight(origin))
    refused(answer, 405, "method_not_allowed")
    for one in (answer, await cors.get("/operator/health", headers={"origin": origin})):
        assert "access-control-allow-origin" not in one.headers
        assert one.headers["vary"] == "Origin"


async def test_without_the_setting_nothing_is_said(service: TestService) -> None:
    answer = await service.http.get("/operator/health", headers={"origin": PAGE})
    assert "access-control-allow-origin" not in answer.headers
    assert "vary" not in answer.headers
    refused(
        await service.http.options("/operator/me", headers=preflight()), 405, "method_not_allowed"
    )


@pytest.mark.parametrize(
    "value", ["page.example", "https://a/b", "null", "https://", "https://a b"]
)
def test_a_setting_that_is_no_origin_stops_the_start(value: str) -> None:
    for name in ("cors_origins", "wrap_url"):
        with pytest.raises(SettingsError, match=f"ASSAY_{name.upper()}"):
            load(**{name: value})
