"""Health and discovery (interface.md#health-and-discovery)."""

import pytest

from tests.support.live_service import TestService


@pytest.mark.parametrize("path", ["/operator/health", "/api/health"])
async def test_200_health_names_every_chain_and_the_default(
    service: TestService, path: str
) -> None:
    answer = await service.http.get(path)
    assert answer.status_code == 200
    health = answer.json()
    assert health.keys() == {
        "ok", "status", "service", "supportedChains", "defaultChain", "timestamp"
    }  # fmt: skip
    assert (health["ok"], health["status"], health["defaultChain"]) == (True, "ok", "local")
    assert {"ethereum", "base", "arbitrum", "monad", "local"} <= set(health["supportedChains"])
    assert health["timestamp"] == "2026-03-01T12:00:00.000Z"


async def test_200_the_discovery_document_leads_to_things_that_are_there(
    service: TestService,
) -> None:
    found = (await service.http.get("/api")).json()
    base = service.app.settings.address
    for name in ("health", "openapi", "docs", "jwks"):
        assert found[name].startswith(base + "/")
        assert (await service.http.get(found[name].removeprefix(base))).status_code == 200
