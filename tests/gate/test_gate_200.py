from pathlib import Path

import pytest

from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    start_test_service,
)

FIELDS = {
    "allow", "tier", "riskLevel", "meetsThreshold", "route", "agentId", "wallet", "chain",
    "sandboxRan", "cached", "score", "reasons", "signals", "identityProven", "evaluatedAt",
    "expiresAt", "decisionToken",
}  # fmt: skip


async def test_a_decision_has_every_field_of_the_specification(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    decision = (await service.gate(headers)).json()
    assert decision.keys() >= FIELDS
    assert decision["allow"] == decision["meetsThreshold"] == (decision["score"] >= 65)
    assert (decision["sandboxRan"], decision["cached"]) == (True, False)
    assert decision["wallet"] == address(OWNER_KEY)


async def test_the_cached_answer_is_the_fresh_one_but_for_saying_so(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    fresh = (await service.gate(headers)).json()
    again = (await service.gate(headers)).json()
    third = (await service.gate(headers)).json()
    said = {"sandboxRan", "cached", "decisionToken"}
    assert {k: v for k, v in fresh.items() if k not in said} == {
        k: v for k, v in again.items() if k not in said
    }
    assert (again["sandboxRan"], again["cached"]) == (False, True)
    assert third == again


async def test_nothing_conclusive_is_believed_for_five_minutes_at_most(
    service: TestService,
) -> None:
    """The sample's service is down: a day's memory of that would be a day's wrong answer."""
    op = await service.operator()
    first = (await service.gate(op | await service.session())).json()
    service.clock.move(299)
    assert (await service.gate(op | await service.session())).json()["cached"] is True
    service.clock.move(2)
    later = (await service.gate(op | await service.session())).json()
    assert later["cached"] is False
    assert later["evaluatedAt"] > first["evaluatedAt"]


async def test_a_shorter_window_asks_for_a_younger_evaluation(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await service.gate(headers)
    service.clock.move(2)
    assert (await service.gate(headers, ttlMs=1000)).json()["cached"] is False
    assert (await service.gate(headers, ttlMs=1000)).json()["cached"] is True


@pytest.mark.parametrize("ttl", [1e308, 1e300, 10**30])
async def test_a_window_beyond_all_time_is_taken_as_very_long(
    service: TestService, ttl: float
) -> None:
    headers = await service.operator() | await service.session()
    assert (await service.gate(headers, ttlMs=ttl)).status_code == 200


async def test_an_evaluation_made_elsewhere_is_seen_at_once(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await service.gate(headers)
    service.clock.move(5)
    ran = (await service.http.post("/operator/trigger-sandbox/7")).json()
    assert (await service.gate(headers)).json()["evaluatedAt"] == ran["evaluatedAt"]


async def test_the_threshold_decides_and_nothing_else(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    score = (await service.gate(headers)).json()["score"]
    assert (await service.gate(headers, minScore=score)).json()["allow"] is True
    assert (await service.gate(headers, minScore=min(100, score + 0.01))).json()["allow"] is False


async def test_only_the_asked_signals_count(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    only = (await service.gate(headers, trustSignals=["8004"])).json()
    assert [s["signal"] for s in only["signals"]] == ["8004"]


async def test_a_key_agent_passes_as_itself_in_any_case(service: TestService) -> None:
    headers = await service.operator() | await service.session(STRANGER_KEY)
    upper = "0x" + address(STRANGER_KEY)[2:].upper()
    decision = (await service.gate(headers, upper)).json()
    assert (decision["agentId"], decision["tier"]) == (address(STRANGER_KEY), "B")


async def test_a_signed_challenge_in_the_headers_begins_a_session(service: TestService) -> None:
    signed = await service.challenge(OWNER_KEY)
    headers = await service.operator() | {
        "x-agent-address": signed["agentAddress"],
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    answer = await service.gate(headers)
    assert answer.status_code == 200
    session = {"x-agent-session": answer.headers["x-agent-session"]}
    kept = {k: headers[k] for k in ("authorization", "x-agent-address")}
    assert (await service.gate(kept | session)).status_code == 200


async def test_where_asserting_is_enough_the_answer_says_that_nothing_is_proven(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, identity_proof="asserted") as service:
        op = await service.operator()
        named = (await service.gate(op | {"x-agent-address": address(OWNER_KEY)})).json()
        proven = (await service.gate(op | await service.session())).json()
        assert (named["identityProven"], proven["identityProven"]) == (False, True)
        stranger = await service.gate(op | {"x-agent-address": address(STRANGER_KEY)})
        assert stranger.json()["error"] == "identity_mismatch"


async def test_a_missing_body_asks_with_the_defaults(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    bare = await service.http.post("/operator/gate/7", headers=headers)
    assert bare.json()["minScore"] == 65
