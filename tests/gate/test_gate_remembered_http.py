"""What the gate's memory must never blur: operators, agents, proofs, plans (ADR 0006)."""

import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.model import Plan
from assay.gate.routes import ANSWER_REUSED_S
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)


def claims(decision: dict[str, Any]) -> dict[str, Any]:
    part = decision["decisionToken"].split(".")[1]
    return json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def decisions(
    service: TestService, headers: dict[str, str], times: int = 3
) -> list[dict[str, Any]]:
    """Evaluated or from the store, then from memory."""
    answers = [await service.gate(headers) for _ in range(times)]
    assert {a.status_code for a in answers} == {200}, answers[-1].text
    return [a.json() for a in answers]


async def test_a_remembered_answer_is_for_its_operator_alone(service: TestService) -> None:
    """`aud` of the token is the operator: a neighbour's token would let him pass for another."""
    agent = await service.session()
    told = [
        [claims(d) for d in await decisions(service, await service.operator(f"{who}@b.cc") | agent)]
        for who in "ab"
    ]
    ids = {o.email: o.id for o in await service.app.operators.list_for_admin()}
    for who, answers in zip("ab", told, strict=True):
        assert {answer["aud"] for answer in answers} == {ids[f"{who}@b.cc"]}
    assert {a["jti"] for a in told[0]}.isdisjoint({a["jti"] for a in told[1]})


async def test_one_operators_calls_do_not_use_up_anothers_allowance(service: TestService) -> None:
    agent = await service.session()
    one, two = await service.operator("one@b.cc"), await service.operator("two@b.cc")
    service.app.allowance._limit = 2
    assert [(await service.gate(one | agent)).status_code for _ in range(3)] == [200, 200, 429]
    assert [(await service.gate(two | agent)).status_code for _ in range(3)] == [200, 200, 429]


async def test_remembered_answers_of_two_agents_are_two_answers(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    for _ in range(3):
        told = [(await service.gate(headers, agent_id)).json() for agent_id in "78"]
        assert [t["agentId"] for t in told] == ["7", "8"]
        assert [claims(t)["sub"][-2:] for t in told] == ["/7", "/8"]


async def test_a_bare_word_never_gets_the_answer_of_a_proof(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, identity_proof="asserted") as service:
        op, proven = await service.operator(), await service.session()
        word = op | {"x-agent-address": address(OWNER_KEY)}
        for _ in range(3):
            assert (await service.gate(op | proven)).json()["identityProven"] is True
            assert (await service.gate(word)).json()["identityProven"] is False


async def test_where_asserting_is_enough_a_proof_that_fails_is_still_refused(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, identity_proof="asserted") as service:
        word = await service.operator() | {"x-agent-address": address(OWNER_KEY)}
        refused(await service.gate(word | {"x-agent-session": "x"}), 401, "challenge_required")
        refused(await service.gate(word | {"x-agent-signature": "0x"}), 401, "challenge_required")


async def test_401_an_ended_session_is_refused_at_once_also_where_it_was_remembered(
    service: TestService,
) -> None:
    op, session = await service.operator(), await service.session()
    await decisions(service, op | session)
    path = f"/operator/key/{address(OWNER_KEY)}/session"
    assert (await service.http.delete(path, headers=session)).status_code == 200
    refused(await service.gate(op | session), 401, "challenge_required")


async def test_401_a_remembered_session_speaks_for_no_other_address(service: TestService) -> None:
    op, session = await service.operator(), await service.session()
    await decisions(service, op | session)
    other = op | session | {"x-agent-address": address(STRANGER_KEY)}
    refused(await service.gate(other), 401, "challenge_required")


async def test_401_the_memory_lets_no_stranger_in_and_counts_no_refusal(
    service: TestService,
) -> None:
    op = await service.operator()
    await decisions(service, op | await service.session())
    stranger = op | await service.session(STRANGER_KEY)
    for _ in range(3):
        refused(await service.gate(stranger), 401, "identity_mismatch")
    (operator,) = await service.app.operators.list_for_admin()
    assert (await service.app.allowance.usage(operator)).used == 3


async def test_a_plan_that_changes_changes_the_next_answer(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    service.app.allowance._limit = 3
    await service.pro()
    await decisions(service, headers, 5)
    await service.app.operators.set_plan_for_admin("op@example.com", Plan.FREE)
    refused(await service.gate(headers), 429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")


async def test_a_sold_agents_former_owner_is_refused_within_the_bound(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await decisions(service, headers)
    seven = service.chain.agents["7"]
    service.chain.agents["7"] = replace(seven, owner=address(STRANGER_KEY))
    service.clock.move(31)
    refused(await service.gate(headers), 401, "identity_mismatch")


@pytest.mark.parametrize("later_s", [ANSWER_REUSED_S / 2, ANSWER_REUSED_S + 1])
async def test_a_token_given_again_still_holds_for_a_while(
    service: TestService, later_s: float
) -> None:
    headers = await service.operator() | await service.session()
    await decisions(service, headers)
    service.clock.move(later_s)
    left = claims((await service.gate(headers)).json())["exp"] - service.clock.now().timestamp()
    assert left >= 300 - ANSWER_REUSED_S - 1
