"""The order of the gate's refusals: mending one fault at a time shows the next.

Source: conventions.md#gate.
"""

from typing import Any

import pytest

from assay.chains.model import ChainUnavailable
from tests.support.live_service import STRANGER_KEY, TestService, address, refused


@pytest.mark.parametrize("memory", ["fresh", "remembered"])
async def test_faults_are_told_in_the_order_of_the_decisions(
    service: TestService, memory: str
) -> None:
    """The answer from memory must refuse in the very order of the one that asks the stores."""
    op, owner = await service.operator(), await service.session()
    stranger = await service.session(STRANGER_KEY)
    if memory == "remembered":
        assert (await service.gate(op | owner)).status_code == 200
    service.app.allowance._limit = 0
    paid, good = b'{"trustSignals": ["attestation"]}', b"{}"

    async def told(headers: dict[str, str], body: bytes, agent_id: str = "7") -> tuple[int, str]:
        path = f"/operator/gate/{agent_id}?chain=local"
        answer = await service.http.post(path, headers=headers, content=body)
        return answer.status_code, answer.json()["code"]

    assert await told({}, b"{", "nonsense") == (401, "unauthorized")
    assert await told(op, b"{", "nonsense") == (401, "identity_required")
    named = op | {"x-agent-address": address(STRANGER_KEY)}
    assert await told(named, b"{", "nonsense") == (401, "challenge_required")
    assert await told(op | stranger, b"{", "nonsense") == (400, "invalid_request")
    assert await told(op | stranger, paid, "nonsense") == (400, "invalid_request")
    assert await told(op | stranger, paid, "999") == (403, "plan_required")
    assert await told(op | stranger, paid) == (403, "plan_required")
    assert await told(op | stranger, good, "999") == (404, "agent_not_found")
    assert await told(op | stranger, good) == (401, "identity_mismatch")
    assert await told(op | owner, good) == (429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")


async def test_503_the_chain_is_asked_only_for_who_may_ask(service: TestService) -> None:
    op, owner = await service.operator(), await service.session()
    service.chain.down = ChainUnavailable("The chain is down.", retry_after_s=7)
    refused(await service.gate(op), 401, "identity_required")
    refused(await service.gate(op | owner, trustSignals=["attestation"]), 403, "plan_required")
    refused(await service.gate(op | owner), 503, "chain_unavailable")
    assert service.chain.reads == 1


async def test_a_session_that_began_is_handed_out_with_a_refusal_too(service: TestService) -> None:
    """Its challenge is spent: without the header the agent would have to sign again."""
    op, signed = await service.operator(), await service.challenge(STRANGER_KEY)
    begun = op | {
        "x-agent-address": signed["agentAddress"],
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    answer = await service.gate(begun, "999")
    refused(answer, 404, "agent_not_found")
    session = {
        "x-agent-address": signed["agentAddress"],
        "x-agent-session": answer.headers["x-agent-session"],
    }
    refused(await service.gate(op | session), 401, "identity_mismatch")


async def test_503_nothing_seen_is_no_grade_and_is_not_counted(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both base signals fail: the registry goes down after the agent was found, services too."""
    headers = await service.operator() | await service.session()
    deaf: Any = type(service.app.evaluator)

    async def nothing(*_: object, **__: object) -> Any:
        return (), {"8004": "down", "sandbox": "down"}

    monkeypatch.setattr(deaf, "collect", nothing)
    answer = await service.gate(headers)
    body = refused(answer, 503, "evidence_unavailable")
    assert (body["signals"], answer.headers["retry-after"]) == (["8004", "sandbox"], "10")
    (operator,) = await service.app.operators.list_for_admin()
    assert (await service.app.allowance.usage(operator)).used == 0
