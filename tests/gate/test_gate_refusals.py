"""Every refusal of the gate, and their order (conventions.md#gate)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.allowance import Allowance
from assay.chains.model import ChainUnavailable
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

BAD_BODIES = [
    "{", "[]", "null", '"x"', "\xff", '{"minScore": "65"}', '{"minScore": -1}',
    '{"minScore": 101}', '{"minScore": NaN}', '{"minScore": null}', '{"ttlMs": 0}',
    '{"ttlMs": -5}', '{"ttlMs": Infinity}', '{"trustSignals": "8004"}',
    '{"trustSignals": ["karma"]}', '{"trustSignals": [null]}', '{"minscore": 5}', '{"x": 1}',
    "[" * 5000, '{"minScore": ' + "9" * 5000 + "}",
]  # fmt: skip


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda b: b[:24])
async def test_400_a_body_that_does_not_hold_is_explained(service: TestService, body: str) -> None:
    headers = await service.operator() | await service.session()
    answer = await service.http.post(
        "/operator/gate/7", headers=headers, content=body.encode("latin-1")
    )
    assert refused(answer, 400, "invalid_request")["details"]


@pytest.mark.parametrize(
    "agent_id", ["-1", "1.0", "abc", "0x12", "9" * 79, str(2**256), "%00", "7 "]
)
async def test_400_an_id_that_is_none(service: TestService, agent_id: str) -> None:
    headers = await service.operator() | await service.session()
    refused(await service.gate(headers, agent_id), 400, "invalid_request")


async def test_400_a_signal_that_is_not_offered(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    await service.pro()
    service.clock.move(10)
    headers |= await service.session()
    body = refused(await service.gate(headers, trustSignals=["personhood"]), 400, "invalid_request")
    assert "8004, sandbox" in body["details"][0]["message"]


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer x", "Basic svc_op_x", "Bearer svc_op_" + "x" * 43],
)
async def test_401_without_a_key_that_holds_whatever_else_is_wrong(
    service: TestService, header: str | None
) -> None:
    headers = {} if header is None else {"authorization": header}
    answer = await service.http.post("/operator/gate/nonsense", headers=headers, content=b"{")
    refused(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_401_a_dashboard_token_is_no_key(service: TestService) -> None:
    await service.operator()
    refused(await service.gate(await service.token()), 401, "unauthorized")


@pytest.mark.parametrize("name", [None, "", "0x12", "nobody", "0x" + "g" * 40])
async def test_401_identity_required_comes_before_the_body(
    service: TestService, name: str | None
) -> None:
    headers = await service.operator() | ({} if name is None else {"x-agent-address": name})
    answer = await service.http.post("/operator/gate/7", headers=headers, content=b"{")
    refused(answer, 401, "identity_required")


async def test_401_challenge_required_carries_a_fresh_challenge(service: TestService) -> None:
    headers = await service.operator() | {"x-agent-address": address(OWNER_KEY)}
    first = refused(await service.gate(headers), 401, "challenge_required")
    second = refused(await service.gate(headers), 401, "challenge_required")
    assert first["challenge"] != second["challenge"]
    assert first["agentAddress"] == address(OWNER_KEY)
    assert first["expiresAt"] == "2026-03-01T12:05:00.000Z"
    assert first["challenge"].isascii()
    assert first["challenge"].isprintable()


async def test_401_a_signature_by_somebody_else(service: TestService) -> None:
    signed = await service.challenge(OWNER_KEY)
    forged = await service.challenge(STRANGER_KEY)
    headers = await service.operator() | {
        "x-agent-address": signed["agentAddress"],
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": forged["signature"],
    }
    refused(await service.gate(headers), 401, "signature_invalid")


async def test_401_after_the_hour_the_flow_begins_again(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    service.clock.move(3599)
    assert (await service.gate(headers)).status_code == 200
    service.clock.move(1)
    refused(await service.gate(headers), 401, "challenge_required")


async def test_401_a_stranger_with_a_session_is_no_owner(service: TestService) -> None:
    headers = await service.operator() | await service.session(STRANGER_KEY)
    body = refused(await service.gate(headers), 401, "identity_mismatch")
    assert body["agentId"] == "7"


async def test_401_a_revoked_key_is_refused_at_once_also_where_it_was_remembered(
    service: TestService,
) -> None:
    headers = await service.operator() | await service.session()
    assert (await service.gate(headers)).status_code == 200
    token = await service.token()
    (key,) = (await service.http.get("/operator/keys", headers=token)).json()
    await service.http.delete(f"/operator/keys/{key['id']}", headers=token)
    refused(await service.gate(headers), 401, "unauthorized")


async def test_403_a_paid_signal_on_the_free_plan_names_what_would_help(
    service: TestService,
) -> None:
    headers = await service.operator() | await service.session()
    body = refused(await service.gate(headers, trustSignals=["attestation"]), 403, "plan_required")
    assert body["signal"] == "attestation"
    assert body["upgradeUrl"].startswith("http")


async def test_404_an_agent_the_registry_does_not_know(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    refused(await service.gate(headers, "999"), 404, "agent_not_found")


@pytest.mark.parametrize("path", ["/operator/gate/", "/operator/gate/7/8"])
async def test_404_nothing_is_there(service: TestService, path: str) -> None:
    refused(await service.http.post(path), 404, "not_found")


async def test_405_only_post_is_taken(service: TestService) -> None:
    answer = await service.http.get("/operator/gate/7")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


async def test_413_a_body_beyond_the_cap(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    answer = await service.http.post("/operator/gate/7", headers=headers, content=b"x" * 2_000_000)
    refused(answer, 413, "payload_too_large")


async def test_429_the_monthly_allowance_counts_answers_only(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    limited: Any = service.app.allowance
    limited._limit = 3
    for wrong in ("999", "abc"):
        await service.gate(headers, wrong)
    await service.gate(headers, trustSignals=["attestation"])
    await service.gate(headers | await service.session(STRANGER_KEY))
    statuses = [(await service.gate(headers)).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    answer = await service.gate(headers)
    body = refused(answer, 429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")
    assert (body["used"], body["limit"]) == (3, 3)
    assert body["resetsAt"] == "2026-04-01T00:00:00.000Z"
    assert body["upgradeUrl"].startswith("http")
    april = datetime(2026, 4, 1, tzinfo=UTC)
    assert int(answer.headers["retry-after"]) == (april - service.clock.now()).total_seconds()
    service.clock.set(april)
    fresh = headers | await service.session()
    assert (await service.gate(fresh)).status_code == 200


async def test_429_pro_has_no_cap(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    limited: Any = service.app.allowance
    limited._limit = 1
    await service.pro()
    assert [(await service.gate(headers)).status_code for _ in range(3)] == [200, 200, 200]


async def test_503_a_chain_that_cannot_be_read_is_never_guessed(service: TestService) -> None:
    headers = await service.operator() | await service.session()
    service.chain.down = ChainUnavailable("The chain is down.", retry_after_s=7)
    answer = await service.gate(headers)
    refused(answer, 503, "chain_unavailable")
    assert answer.headers["retry-after"] == "7"


async def test_what_was_counted_survives_a_restart(tmp_path: Path) -> None:
    async with start_test_service(tmp_path) as service:
        op = await service.operator()
        headers = op | await service.session()
        for _ in range(3):
            await service.gate(headers)
    async with start_test_service(tmp_path) as service:
        (operator,) = await service.app.operators.list_for_admin()
        assert (await service.app.allowance.usage(operator)).used == 3
        assert isinstance(service.app.allowance, Allowance)
