"""Prices and limits by tier, free calls and wrappers that only observe, over HTTP.

Where no chain answers, a payment whose price is accepted gets as far as asking it: 503.
"""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.payments.networks import ROWS
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)
from tests.support.wire_upstream import wire_upstream
from tests.wrappers.test_wrap_quotes_http import HEARD_S, LIFE_S, NOBODY, ONE, Seller, accepted

RPC = {row.id: NOBODY for row in ROWS}
BEST_AT_ZERO = ((0, "AAA", "GREEN", "prod"),)
WORST_AT_ZERO = ((99, "AAA", "GREEN", "prod"), (0, "C", "RED", "sandbox_only"))
TIERS = [
    {"minTier": "AAA", "pricePerCall": 0.002, "rateLimit": 5},
    {"minTier": "BA", "pricePerCall": 0.005},
]
OPEN: dict[str, Any] = {"trustEnabled": True, "minScore": 0, "coldStart": "allow"}


@asynccontextmanager
async def started(
    folder: Path, tiers: Any = BEST_AT_ZERO, **settings: Any
) -> AsyncGenerator[TestService]:
    async with start_test_service(
        folder, payment_rpc=RPC, x402_clock_s=7200, tiers=tiers, **settings
    ) as service:
        yield service


async def opened(service: TestService) -> Seller:
    await service.operator()
    token = await service.token()
    me = (await service.http.get("/operator/me", headers=token)).json()
    return Seller(service, me["operator"]["id"], token)


@pytest.fixture
async def seller(tmp_path: Path) -> AsyncGenerator[Seller]:
    async with started(tmp_path / "data") as service:
        yield await opened(service)


@pytest.fixture
def upstream() -> Iterator[str]:
    with wire_upstream() as up:
        yield up.url


async def ask(
    seller: Seller, agent: dict[str, str] | None = None, service: TestService | None = None
) -> httpx2.Response:
    return await (service or seller.service).http.get(seller.url, headers=agent or {})


async def as_agent(seller: Seller, key: str = OWNER_KEY) -> dict[str, str]:
    agent = await seller.service.session(key)
    return {**agent, "x-agent-id": "7"} if key == OWNER_KEY else agent


async def price(seller: Seller, agent: dict[str, str] | None = None) -> str:
    return (await quote(seller, agent))["accepts"][0]["amount"]


async def quote(seller: Seller, agent: dict[str, str] | None = None) -> dict[str, Any]:
    answer = await ask(seller, agent)
    assert answer.status_code == 402, answer.text
    return json.loads(base64.b64decode(answer.headers["payment-required"]))


async def pay(
    seller: Seller,
    payment: dict[str, Any],
    agent: dict[str, str],
    service: TestService | None = None,
) -> httpx2.Response:
    header = base64.b64encode(json.dumps(payment).encode()).decode()
    return await ask(seller, {**agent, "payment-signature": header}, service)


async def test_a_proven_agent_has_the_price_of_its_tier_and_nobody_else(seller: Seller) -> None:
    await seller.sell(pricing=TIERS, identityProof="asserted", **OPEN)
    agent = await as_agent(seller)
    assert await price(seller) == "10000"
    assert await price(seller, {"x-agent-id": "7"}) == "10000"  # anybody can say that
    assert await price(seller, agent) == "2000"
    accepted(await pay(seller, seller.payment(await quote(seller, agent)), agent))


async def test_the_price_of_a_tier_is_taken_from_its_agent_alone(seller: Seller) -> None:
    """A quote is worth nothing to another caller, whoever pays."""
    await seller.sell(pricing=TIERS, **OPEN)
    agent = await as_agent(seller)
    payment = seller.payment(await quote(seller, agent))
    await seller.change(pricing=[])
    accepted(await pay(seller, payment, agent))
    stranger = await as_agent(seller, STRANGER_KEY)
    mixed = {**agent, "x-agent-session": stranger["x-agent-session"]}
    for other in ({}, stranger, {"x-agent-id": "7"}, {**agent, "x-agent-session": "x"}, mixed):
        assert (await pay(seller, payment, other)).status_code in {401, 402}
    accepted(await pay(seller, payment, agent))


async def test_a_tier_that_fell_pays_what_it_was_quoted_for_the_life_of_the_quote(
    tmp_path: Path,
) -> None:
    """The second process grades the agent worse, as a new evaluation would."""
    folder = tmp_path / "data"
    async with started(folder, port=8001) as one, started(folder, WORST_AT_ZERO, port=8002) as two:
        seller = await opened(one)
        await seller.sell(pricing=TIERS, **OPEN)
        agent = await as_agent(seller)
        payment = seller.payment(await quote(seller, agent))
        worse = seller.payment(await quote(seller, agent), amount="1999")
        accepted(await pay(seller, payment, agent, two))
        refused(await pay(seller, worse, agent, two), 402, "payment_required")
        for service in (one, two):
            service.clock.move(LIFE_S - 1)
        accepted(await pay(seller, payment, agent, two))
        for service in (one, two):
            service.clock.move(LIFE_S + HEARD_S)
        refused(await pay(seller, payment, agent, two), 402, "payment_required")
        told = refused(await ask(seller, agent, two), 402, "payment_required")
        assert told["accepts"][0]["maxAmountRequired"] == "10000"


async def test_a_price_that_was_quoted_for_one_wrapper_is_none_of_another(seller: Seller) -> None:
    await seller.sell(path="/other", pricing=TIERS, **OPEN)
    agent = await as_agent(seller)
    there, here = seller.url.replace("/quote", "/other"), seller.url
    seller.url = there
    found = await quote(seller, agent)
    seller.url = here
    await seller.sell(**OPEN)
    found["resource"]["url"] = found["resource"]["url"].replace("/other", "/quote")
    refused(await pay(seller, seller.payment(found), agent), 402, "payment_required")


async def test_a_tier_that_costs_nothing_is_served_within_its_own_limit(
    seller: Seller, upstream: str
) -> None:
    free = [{"minTier": "AAA", "pricePerCall": 0, "rateLimit": 2}]
    await seller.sell(pricing=free, rateLimit=1, targetUrl=upstream, **OPEN)
    agent = await as_agent(seller)
    statuses = [(await ask(seller, agent)).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert await price(seller) == "10000"


async def test_a_free_wrapper_has_limits_by_tier(seller: Seller, upstream: str) -> None:
    terms = [{"minTier": "C", "pricePerCall": 0, "rateLimit": 2}]
    fields = {"pricePerCall": 0, "pricing": terms, "rateLimit": 1, "targetUrl": upstream}
    await seller.sell(**fields, **OPEN)
    agent = await as_agent(seller)
    assert [(await ask(seller, agent)).status_code for _ in range(3)] == [200, 200, 429]


async def test_everybody_without_a_rung_shares_one_free_quota(
    seller: Seller, upstream: str
) -> None:
    quota = {"calls": 2, "per": "day"}
    await seller.sell(freeQuota=quota, targetUrl=upstream, **OPEN)
    keys = [f"0x{number:064x}" for number in range(1, 4)]
    callers = [await as_agent(seller, key) for key in keys]
    assert [(await ask(seller, caller)).status_code for caller in callers] == [200, 200, 402]
    refused(await ask(seller), 402, "payment_required")
    seller.service.clock.move(86_400)
    renewed = [await as_agent(seller, key) for key in keys]
    assert [(await ask(seller, caller)).status_code for caller in renewed] == [200, 200, 402]


async def test_a_free_quota_is_not_doubled_by_two_processes(tmp_path: Path, upstream: str) -> None:
    folder = tmp_path / "data"
    async with started(folder, port=8001) as one, started(folder, port=8002) as two:
        seller = await opened(one)
        await seller.sell(freeQuota={"calls": 5, "per": "month"}, targetUrl=upstream)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(ask(seller, None, service))
                for service in (one, two)
                for _ in range(5)
            ]
        statuses = [task.result().status_code for task in tasks]
        assert (statuses.count(200), statuses.count(402)) == (5, 5)


async def test_a_call_that_is_forwarded_uses_a_free_call_and_a_refused_one_none(
    seller: Seller, upstream: str
) -> None:
    quota = {"calls": 2, "per": "day"}
    await seller.sell(freeQuota=quota, rateLimit=1, targetUrl="http://127.0.0.1:20009")
    refused(await ask(seller), 502, "wrapper_request_failed")
    refused(await ask(seller), 429, "rate_limit_exceeded")
    await seller.change(targetUrl=upstream, rateLimit=None)
    seller.service.clock.move(HEARD_S)
    assert (await ask(seller)).status_code == 200
    refused(await ask(seller), 402, "payment_required")


async def test_a_payment_uses_no_free_call(seller: Seller, upstream: str) -> None:
    await seller.sell(freeQuota={"calls": 1, "per": "day"}, targetUrl=upstream)
    required = await quote_of_paid(seller)
    accepted(await pay(seller, seller.payment(required), {}))
    assert (await ask(seller)).status_code == 200


async def quote_of_paid(seller: Seller) -> dict[str, Any]:
    """The 402 of a wrapper whose free calls are not used: a HEAD has its price."""
    answer = await seller.service.http.head(seller.url)
    return json.loads(base64.b64decode(answer.headers["payment-required"]))


async def test_an_observing_wrapper_lets_pass_and_says_so_to_its_operator_alone(
    seller: Seller, upstream: str
) -> None:
    strict = {"trustEnabled": True, "minScore": 100}
    await seller.sell(pricePerCall=0, targetUrl=upstream, enforce="observe", **strict)
    agent = await as_agent(seller)
    answers = [await ask(seller, agent), await ask(seller), await ask(seller, {"x-agent-id": "9"})]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    for answer in answers:
        assert not {name for name in answer.headers if "would" in name or "tier" in name}
    http, token = seller.service.http, seller.token
    logs = (await http.get("/operator/analytics/logs", headers=token)).json()["items"]
    assert {row["wouldHave"] for row in logs} == {"denied"}
    assert logs[-1]["wouldHaveReason"] in {"low_score", "insufficient_evidence"}
    stats = (await http.get("/operator/analytics/stats", headers=token)).json()
    assert stats["funnel"]["wouldBeDeniedByTrust"] == 3
    assert stats["funnel"]["deniedByTrust"] == 0
    [top] = (await http.get("/operator/analytics/top-endpoints", headers=token)).json()["items"]
    assert top["wouldBeDenied"] == 3
    await seller.change(enforce="enforce")
    seller.service.clock.move(HEARD_S)
    refused(await ask(seller, agent), 403, "trust_denied")


async def test_observing_relaxes_neither_payment_nor_proof_nor_limit(
    seller: Seller, upstream: str
) -> None:
    fields = {"trustEnabled": True, "minScore": 100, "enforce": "observe", "targetUrl": upstream}
    await seller.sell(pricing=TIERS, **fields)
    assert await price(seller) == "10000"
    forged = {"x-agent-id": "7", "x-agent-address": address(OWNER_KEY), "x-agent-session": "x"}
    assert await price(seller, forged) == "10000"
    assert await price(seller, await as_agent(seller)) == "2000"
    await seller.change(pricePerCall=0, pricing=[], rateLimit=1)
    seller.service.clock.move(HEARD_S)
    assert [(await ask(seller)).status_code for _ in range(2)] == [200, 429]
    # An agent that would be refused is no caller of its own: anybody can make many.
    assert (await ask(seller, await as_agent(seller))).status_code == 429


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"pricing": TIERS, "trustEnabled": False}, "pricing"),
    ({"pricing": [TIERS[0], TIERS[0]]}, "pricing"),
    ({"pricing": [{"minTier": "AAA", "pricePerCall": 0.02}]}, "pricing"),
    ({"pricing": [TIERS[0], {"minTier": "C", "pricePerCall": 0.001}]}, "pricing"),
    ({"pricing": [{"minTier": "AAA", "pricePerCall": 0.0000001}]}, "pricing"),
    ({"pricing": [{**TIERS[0], "rateLimit": 0}]}, "pricing"),
    ({"pricing": [{"minTier": "D", "pricePerCall": 0}]}, "minTier"),
    ({"pricing": TIERS * 5}, "pricing"),
    ({"freeQuota": {"calls": 0, "per": "day"}}, "freeQuota"),
    ({"freeQuota": {"calls": 1, "per": "year"}}, "per"),
    ({"enforce": "observe", "trustEnabled": False}, "enforce"),
    ({"enforce": "ignore"}, "enforce"),
]


async def test_terms_that_contradict_each_other_are_refused(seller: Seller) -> None:
    body = {"path": "/x", "pricePerCall": 0.01, "payoutAddress": ONE, "trustEnabled": True}
    body |= {"targetUrl": "http://127.0.0.1:20009"}
    http = seller.service.http
    for fields, field in WRONG:
        answer = await http.post("/operator/endpoints", json=body | fields, headers=seller.token)
        details = refused(answer, 400, "invalid_request")["details"]
        assert field in {place for one in details for place in one["loc"]}, fields
