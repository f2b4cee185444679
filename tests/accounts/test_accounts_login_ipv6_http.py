"""Who counts as one guesser at the login."""

import httpx2
import pytest

from assay.app.web import build
from tests.support.live_service import TestService


@pytest.mark.parametrize(
    ("other", "status"), [("2001:db8::2", 429), ("2001:db8:0:1::1", 401), ("203.0.113.1", 401)]
)
async def test_429_an_ipv6_network_is_one_guesser(
    service: TestService, other: str, status: int
) -> None:
    """Its 2**64 addresses are all at hand for whoever has one of them."""
    await service.operator()
    wrong = {"email": "op@example.com", "password": "wrong wrong wrong"}
    application = build(service.app)

    async def guess(client: str) -> int:
        sender = httpx2.ASGITransport(application, client=(client, 1))
        async with httpx2.AsyncClient(transport=sender, base_url="http://a") as http:
            return (await http.post("/operator/login", json=wrong)).status_code

    assert [await guess("2001:db8::1") for _ in range(6)] == [401] * 5 + [429]
    assert await guess(other) == status
