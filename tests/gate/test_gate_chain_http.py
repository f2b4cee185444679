"""Which chain a gate call means, and what a query can do to it."""

import pytest

from tests.support.live_service import TestService, refused

TWICE = {
    "": "local",
    "?chain=local": "local",
    "?chain=ethereum&chain=local": "local",
    "?chain=local&chain=base": "base",
    "?other=1": "local",
}


@pytest.mark.parametrize("query", TWICE)
async def test_the_gate_and_the_profile_mean_the_same_chain(
    service: TestService, query: str
) -> None:
    """Of a name sent twice one counts, and the same one everywhere."""
    headers = await service.operator() | await service.session()
    gate = await service.http.post(f"/operator/gate/7{query}", headers=headers)
    profile = await service.http.get(f"/operator/agent/7{query}", headers=headers)
    assert gate.json()["chain"] == profile.json()["chain"]
    assert gate.json()["chain"]["name"] == TWICE[query]


async def test_the_query_wins_over_the_header_and_the_header_over_the_default(
    service: TestService,
) -> None:
    headers = await service.operator() | await service.session() | {"x-chain": "base"}
    by_header = await service.http.post("/operator/gate/7", headers=headers)
    by_query = await service.http.post("/operator/gate/7?chain=local", headers=headers)
    assert [a.json()["chain"]["name"] for a in (by_header, by_query)] == ["base", "local"]


@pytest.mark.parametrize("query", ["chain=", "chain=%00", "chain=%ff", "chain=" + "x" * 5000])
async def test_400_a_chain_nobody_knows(service: TestService, query: str) -> None:
    headers = await service.operator() | await service.session()
    for method, path in (("POST", "gate"), ("GET", "agent")):
        answer = await service.http.request(method, f"/operator/{path}/7?{query}", headers=headers)
        refused(answer, 400, "invalid_request")


async def test_400_a_query_of_too_many_fields(service: TestService) -> None:
    """It was a fault of ours: the parser's own refusal went unnoticed."""
    headers = await service.operator() | await service.session()
    many = "&".join(f"a{n}=1" for n in range(51))
    refused(await service.http.post(f"/operator/gate/7?{many}", headers=headers), 400,
            "invalid_request")  # fmt: skip
