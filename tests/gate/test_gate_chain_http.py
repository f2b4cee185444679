"""Which chain a gate call means, and what a query can do to it."""

import pytest

from tests.support.house import House, refused

TWICE = {
    "": "local",
    "?chain=local": "local",
    "?chain=ethereum&chain=local": "local",
    "?chain=local&chain=base": "base",
    "?other=1": "local",
}


@pytest.mark.parametrize("query", TWICE)
async def test_the_gate_and_the_profile_mean_the_same_chain(house: House, query: str) -> None:
    """Of a name sent twice one counts, and the same one everywhere."""
    headers = await house.operator() | await house.session()
    gate = await house.http.post(f"/operator/gate/7{query}", headers=headers)
    profile = await house.http.get(f"/operator/agent/7{query}", headers=headers)
    assert gate.json()["chain"] == profile.json()["chain"]
    assert gate.json()["chain"]["name"] == TWICE[query]


async def test_the_query_wins_over_the_header_and_the_header_over_the_default(house: House) -> None:
    headers = await house.operator() | await house.session() | {"x-chain": "base"}
    by_header = await house.http.post("/operator/gate/7", headers=headers)
    by_query = await house.http.post("/operator/gate/7?chain=local", headers=headers)
    assert [a.json()["chain"]["name"] for a in (by_header, by_query)] == ["base", "local"]


@pytest.mark.parametrize("query", ["chain=", "chain=%00", "chain=%ff", "chain=" + "x" * 5000])
async def test_400_a_chain_nobody_knows(house: House, query: str) -> None:
    headers = await house.operator() | await house.session()
    for method, path in (("POST", "gate"), ("GET", "agent")):
        answer = await house.http.request(method, f"/operator/{path}/7?{query}", headers=headers)
        refused(answer, 400, "invalid_request")


async def test_400_a_query_of_too_many_fields(house: House) -> None:
    """It was a fault of ours: the parser's own refusal went unnoticed."""
    headers = await house.operator() | await house.session()
    many = "&".join(f"a{n}=1" for n in range(51))
    refused(await house.http.post(f"/operator/gate/7?{many}", headers=headers), 400,
            "invalid_request")  # fmt: skip
