"""What the gate's memory must never blur: operators, agents, proofs, plans (ADR 0006)."""

import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.model import Plan
from assay.gate.routes import ANSWER_REUSED_S
from tests.support.house import OWNER_KEY, STRANGER_KEY, House, address, open_house, refused


def claims(decision: dict[str, Any]) -> dict[str, Any]:
    part = decision["decisionToken"].split(".")[1]
    return json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def decisions(house: House, headers: dict[str, str], times: int = 3) -> list[dict[str, Any]]:
    """Evaluated or from the store, then from memory."""
    answers = [await house.gate(headers) for _ in range(times)]
    assert {a.status_code for a in answers} == {200}, answers[-1].text
    return [a.json() for a in answers]


async def test_a_remembered_answer_is_for_its_operator_alone(house: House) -> None:
    """`aud` of the token is the operator: a neighbour's token would let him pass for another."""
    agent = await house.session()
    told = [
        [claims(d) for d in await decisions(house, await house.operator(f"{who}@b.cc") | agent)]
        for who in "ab"
    ]
    ids = {o.email: o.id for o in await house.app.operators.list_for_admin()}
    for who, answers in zip("ab", told, strict=True):
        assert {answer["aud"] for answer in answers} == {ids[f"{who}@b.cc"]}
    assert {a["jti"] for a in told[0]}.isdisjoint({a["jti"] for a in told[1]})


async def test_one_operators_calls_do_not_use_up_anothers_allowance(house: House) -> None:
    agent = await house.session()
    one, two = await house.operator("one@b.cc"), await house.operator("two@b.cc")
    house.app.allowance._limit = 2
    assert [(await house.gate(one | agent)).status_code for _ in range(3)] == [200, 200, 429]
    assert [(await house.gate(two | agent)).status_code for _ in range(3)] == [200, 200, 429]


async def test_remembered_answers_of_two_agents_are_two_answers(house: House) -> None:
    headers = await house.operator() | await house.session()
    for _ in range(3):
        told = [(await house.gate(headers, agent_id)).json() for agent_id in "78"]
        assert [t["agentId"] for t in told] == ["7", "8"]
        assert [claims(t)["sub"][-2:] for t in told] == ["/7", "/8"]


async def test_a_bare_word_never_gets_the_answer_of_a_proof(tmp_path: Path) -> None:
    async with open_house(tmp_path, identity_proof="asserted") as house:
        op, proven = await house.operator(), await house.session()
        word = op | {"x-agent-address": address(OWNER_KEY)}
        for _ in range(3):
            assert (await house.gate(op | proven)).json()["identityProven"] is True
            assert (await house.gate(word)).json()["identityProven"] is False


async def test_where_asserting_is_enough_a_proof_that_fails_is_still_refused(
    tmp_path: Path,
) -> None:
    async with open_house(tmp_path, identity_proof="asserted") as house:
        word = await house.operator() | {"x-agent-address": address(OWNER_KEY)}
        refused(await house.gate(word | {"x-agent-session": "x"}), 401, "challenge_required")
        refused(await house.gate(word | {"x-agent-signature": "0x"}), 401, "challenge_required")


async def test_401_an_ended_session_is_refused_at_once_also_where_it_was_remembered(
    house: House,
) -> None:
    op, session = await house.operator(), await house.session()
    await decisions(house, op | session)
    path = f"/operator/key/{address(OWNER_KEY)}/session"
    assert (await house.http.delete(path, headers=session)).status_code == 200
    refused(await house.gate(op | session), 401, "challenge_required")


async def test_401_a_remembered_session_speaks_for_no_other_address(house: House) -> None:
    op, session = await house.operator(), await house.session()
    await decisions(house, op | session)
    other = op | session | {"x-agent-address": address(STRANGER_KEY)}
    refused(await house.gate(other), 401, "challenge_required")


async def test_401_the_memory_lets_no_stranger_in_and_counts_no_refusal(house: House) -> None:
    op = await house.operator()
    await decisions(house, op | await house.session())
    stranger = op | await house.session(STRANGER_KEY)
    for _ in range(3):
        refused(await house.gate(stranger), 401, "identity_mismatch")
    (operator,) = await house.app.operators.list_for_admin()
    assert (await house.app.allowance.usage(operator)).used == 3


async def test_a_plan_that_changes_changes_the_next_answer(house: House) -> None:
    headers = await house.operator() | await house.session()
    house.app.allowance._limit = 3
    await house.pro()
    await decisions(house, headers, 5)
    await house.app.operators.set_plan_for_admin("op@example.com", Plan.FREE)
    refused(await house.gate(headers), 429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")


async def test_a_sold_agents_former_owner_is_refused_within_the_bound(house: House) -> None:
    headers = await house.operator() | await house.session()
    await decisions(house, headers)
    seven = house.chain.agents["7"]
    house.chain.agents["7"] = replace(seven, owner=address(STRANGER_KEY))
    house.clock.move(31)
    refused(await house.gate(headers), 401, "identity_mismatch")


@pytest.mark.parametrize("later_s", [ANSWER_REUSED_S / 2, ANSWER_REUSED_S + 1])
async def test_a_token_given_again_still_holds_for_a_while(house: House, later_s: float) -> None:
    headers = await house.operator() | await house.session()
    await decisions(house, headers)
    house.clock.move(later_s)
    left = claims((await house.gate(headers)).json())["exp"] - house.clock.now().timestamp()
    assert left >= 300 - ANSWER_REUSED_S - 1
