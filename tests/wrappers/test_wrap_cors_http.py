"""Wrappers called from a browser: whose origin is named may read, anybody else may not."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_service import refused
from tests.support.wire_upstream import Asked, Wire
from tests.wrappers.test_wrap_answers_http import both, says
from tests.wrappers.test_wrap_repeats_http import Got, Shop, opened

PAGE = "https://page.example"
PAYOUT = "0x" + "ab" * 20
ALLOWED = {"access-control-allow-origin": PAGE.lower(), "vary": "origin"}


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    async with opened(tmp_path) as made:
        await made.wrap("/warm")
        yield made


async def ask(shop: Shop, path: str, method: str = "GET", **headers: str) -> Got:
    async with shop.caller() as caller:
        caller.writer.write(shop.request(path, method, **headers))
        head = (await caller.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")[:-2]
        found = dict(line.lower().split(": ", 1) for line in lines)
        body = await caller.reader.readexactly(int(found.get("content-length", "0")))
        return Got(int(first.split(" ")[1]), found, body)


def preflight(method: str = "GET", origin: str = PAGE, **more: str) -> dict[str, str]:
    return {"Origin": origin, "Access-Control-Request-Method": method, **more}


async def test_a_preflight_of_a_wrapper_with_origins_is_answered_here(shop: Shop) -> None:
    """It was 404, so no browser could pay."""
    await shop.wrap("/x", method="GET", pricePerCall=0.01, payoutAddress=PAYOUT, corsOrigins=[PAGE])
    asked = {"Access-Control-Request-Headers": "x-payment, authorization"}
    for _ in range(2):
        got = await ask(shop, "/x", "OPTIONS", **preflight(**asked))
        assert (got.status, got.body) == (204, b"")
        assert ALLOWED.items() <= got.headers.items()
        assert got.headers["access-control-allow-methods"] == "get"
        assert got.headers["access-control-allow-headers"] == "x-payment, authorization"
        assert got.headers["access-control-max-age"] == "600"
        assert "access-control-allow-credentials" not in got.headers
    assert shop.up.to("/x") == []
    await shop.service.app.flush()
    logs = await shop.service.http.get("/operator/analytics/logs", headers=shop.token)
    assert logs.json()["logs"] == []  # it is no call


async def test_every_other_options_is_forwarded(shop: Shop) -> None:
    await shop.wrap("/on", corsOrigins=[PAGE])
    await shop.wrap("/off")
    cases = [
        ("/off", preflight()),
        ("/on", {"Origin": PAGE}),
        ("/on", {"Access-Control-Request-Method": "GET"}),
        ("/on", {}),
    ]
    for path, headers in cases:
        for _ in range(2):
            assert (await ask(shop, path, "OPTIONS", **headers)).status == 200
    assert [seen.method for seen in shop.up.asked] == ["OPTIONS"] * 8
    refused(
        await shop.service.http.options(f"/wrap/{shop.operator_id}/none"), 404, "wrapper_not_found"
    )


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://page.example.evil"])
async def test_an_origin_that_is_not_named_gets_no_leave(shop: Shop, origin: str) -> None:
    await shop.wrap("/x", corsOrigins=[PAGE])
    got = await ask(shop, "/x", "OPTIONS", **preflight(origin=origin))
    assert got.status == 204
    assert "access-control-allow-origin" not in got.headers
    answered = await both(shop, shop.request("/x", Origin=origin))
    assert "access-control-allow-origin" not in answered.headers
    assert answered.headers["vary"] == "origin"


async def test_an_answer_can_be_read_by_the_origin_and_the_upstream_has_no_say(shop: Shop) -> None:
    lines = ["Access-Control-Allow-Origin: *", "Access-Control-Allow-Credentials: true"]
    await shop.wrap("/x", says(*lines), corsOrigins=[PAGE])
    got = await both(shop, shop.request("/x", Origin=PAGE))
    assert ALLOWED.items() <= got.headers.items()
    assert got.headers["access-control-expose-headers"] == "*"
    assert "access-control-allow-credentials" not in got.headers
    await shop.wrap("/off", says(*lines))
    got = await both(shop, shop.request("/off", Origin=PAGE))
    assert got.headers["access-control-allow-origin"] == "*"


async def test_refusals_can_be_read_too(shop: Shop) -> None:
    async def breaks(wire: Wire, _asked: Asked) -> None:
        wire.writer.close()

    await shop.wrap("/paid", pricePerCall=0.01, payoutAddress=PAYOUT, corsOrigins=[PAGE])
    await shop.wrap("/trusted", trustEnabled=True, corsOrigins=[PAGE])
    await shop.wrap("/broken", breaks, corsOrigins=[PAGE])
    for path, status in (("/paid", 402), ("/trusted", 401), ("/broken", 502), ("/broken", 502)):
        await ask(shop, "/warm")
        got = await ask(shop, path, Origin=PAGE)
        assert got.status == status
        assert ALLOWED.items() <= got.headers.items()


async def test_any_origin_may_be_let_in_without_a_browsers_credentials(shop: Shop) -> None:
    await shop.wrap("/x", corsOrigins=["*"])
    for got in (
        await ask(shop, "/x", "OPTIONS", **preflight("POST", "null")),
        await both(shop, shop.request("/x", Origin="https://any.example")),
    ):
        assert got.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in got.headers


@pytest.mark.parametrize(
    "origins",
    [*(["null"], [""], ["page.example"], ["https://a/b"], ["https://a b"]), [PAGE] * 33],
)
async def test_what_is_no_origin_is_refused(shop: Shop, origins: list[str]) -> None:
    body: dict[str, Any] = {"path": "/y", "pricePerCall": 0, "targetUrl": shop.up.url}
    answer = await shop.service.http.post(
        "/operator/endpoints", json=body | {"corsOrigins": origins}, headers=shop.token
    )
    details = refused(answer, 400, "invalid_request")["details"]
    assert details[0]["loc"] == ["body", "corsOrigins"]


async def test_origins_are_kept_as_browsers_send_them(shop: Shop) -> None:
    await shop.wrap("/x", corsOrigins=["HTTPS://Page.example:443", "http://localhost:3000"])
    listed = (await shop.service.http.get("/operator/endpoints", headers=shop.token)).json()
    assert listed[0]["corsOrigins"] == [PAGE, "http://localhost:3000"]
