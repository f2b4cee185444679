"""Health and discovery (interface.md#health-and-discovery)."""

import pytest

from tests.support.house import House


@pytest.mark.parametrize("path", ["/operator/health", "/api/health"])
async def test_200_health_names_every_chain_and_the_default(house: House, path: str) -> None:
    answer = await house.http.get(path)
    assert answer.status_code == 200
    health = answer.json()
    assert health.keys() == {
        "ok", "status", "service", "supportedChains", "defaultChain", "timestamp"
    }  # fmt: skip
    assert (health["ok"], health["status"], health["defaultChain"]) == (True, "ok", "local")
    assert {"ethereum", "base", "arbitrum", "monad", "local"} <= set(health["supportedChains"])
    assert health["timestamp"] == "2026-03-01T12:00:00.000Z"


async def test_200_the_discovery_document_leads_to_things_that_are_there(house: House) -> None:
    found = (await house.http.get("/api")).json()
    base = house.app.settings.address
    for name in ("health", "openapi", "docs", "jwks"):
        assert found[name].startswith(base + "/")
        assert (await house.http.get(found[name].removeprefix(base))).status_code == 200
