"""Every refusal of the gate, and their order (conventions.md#gate)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.allowance import Allowance
from assay.chains.model import ChainUnavailable
from tests.support.house import OWNER_KEY, STRANGER_KEY, House, address, open_house, refused

BAD_BODIES = [
    "{", "[]", "null", '"x"', "\xff", '{"minScore": "65"}', '{"minScore": -1}',
    '{"minScore": 101}', '{"minScore": NaN}', '{"minScore": null}', '{"ttlMs": 0}',
    '{"ttlMs": -5}', '{"ttlMs": Infinity}', '{"trustSignals": "8004"}',
    '{"trustSignals": ["karma"]}', '{"trustSignals": [null]}', '{"minscore": 5}', '{"x": 1}',
    "[" * 5000, '{"minScore": ' + "9" * 5000 + "}",
]  # fmt: skip


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda b: b[:24])
async def test_400_a_body_that_does_not_hold_is_explained(house: House, body: str) -> None:
    headers = await house.operator() | await house.session()
    answer = await house.http.post(
        "/operator/gate/7", headers=headers, content=body.encode("latin-1")
    )
    assert refused(answer, 400, "invalid_request")["details"]


@pytest.mark.parametrize(
    "agent_id", ["-1", "1.0", "abc", "0x12", "9" * 79, str(2**256), "%00", "7 "]
)
async def test_400_an_id_that_is_none(house: House, agent_id: str) -> None:
    headers = await house.operator() | await house.session()
    refused(await house.gate(headers, agent_id), 400, "invalid_request")


async def test_400_a_signal_that_is_not_offered(house: House) -> None:
    headers = await house.operator() | await house.session()
    await house.pro()
    house.clock.move(10)
    headers |= await house.session()
    body = refused(await house.gate(headers, trustSignals=["personhood"]), 400, "invalid_request")
    assert "8004, sandbox" in body["details"][0]["message"]


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer x", "Basic svc_op_x", "Bearer svc_op_" + "x" * 43],
)
async def test_401_without_a_key_that_holds_whatever_else_is_wrong(
    house: House, header: str | None
) -> None:
    headers = {} if header is None else {"authorization": header}
    answer = await house.http.post("/operator/gate/nonsense", headers=headers, content=b"{")
    refused(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_401_a_dashboard_token_is_no_key(house: House) -> None:
    await house.operator()
    refused(await house.gate(await house.token()), 401, "unauthorized")


@pytest.mark.parametrize("name", [None, "", "0x12", "nobody", "0x" + "g" * 40])
async def test_401_identity_required_comes_before_the_body(house: House, name: str | None) -> None:
    headers = await house.operator() | ({} if name is None else {"x-agent-address": name})
    answer = await house.http.post("/operator/gate/7", headers=headers, content=b"{")
    refused(answer, 401, "identity_required")


async def test_401_challenge_required_carries_a_fresh_challenge(house: House) -> None:
    headers = await house.operator() | {"x-agent-address": address(OWNER_KEY)}
    first = refused(await house.gate(headers), 401, "challenge_required")
    second = refused(await house.gate(headers), 401, "challenge_required")
    assert first["challenge"] != second["challenge"]
    assert first["agentAddress"] == address(OWNER_KEY)
    assert first["expiresAt"] == "2026-03-01T12:05:00.000Z"
    assert first["challenge"].isascii()
    assert first["challenge"].isprintable()


async def test_401_a_signature_by_somebody_else(house: House) -> None:
    signed = await house.challenge(OWNER_KEY)
    forged = await house.challenge(STRANGER_KEY)
    headers = await house.operator() | {
        "x-agent-address": signed["agentAddress"],
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": forged["signature"],
    }
    refused(await house.gate(headers), 401, "signature_invalid")


async def test_401_after_the_hour_the_flow_begins_again(house: House) -> None:
    headers = await house.operator() | await house.session()
    house.clock.move(3599)
    assert (await house.gate(headers)).status_code == 200
    house.clock.move(1)
    refused(await house.gate(headers), 401, "challenge_required")


async def test_401_a_stranger_with_a_session_is_no_owner(house: House) -> None:
    headers = await house.operator() | await house.session(STRANGER_KEY)
    body = refused(await house.gate(headers), 401, "identity_mismatch")
    assert body["agentId"] == "7"


async def test_401_a_revoked_key_is_refused_at_once_also_where_it_was_remembered(
    house: House,
) -> None:
    headers = await house.operator() | await house.session()
    assert (await house.gate(headers)).status_code == 200
    token = await house.token()
    (key,) = (await house.http.get("/operator/keys", headers=token)).json()
    await house.http.delete(f"/operator/keys/{key['id']}", headers=token)
    refused(await house.gate(headers), 401, "unauthorized")


async def test_403_a_paid_signal_on_the_free_plan_names_what_would_help(house: House) -> None:
    headers = await house.operator() | await house.session()
    body = refused(await house.gate(headers, trustSignals=["attestation"]), 403, "plan_required")
    assert body["signal"] == "attestation"
    assert body["upgradeUrl"].startswith("http")


async def test_404_an_agent_the_registry_does_not_know(house: House) -> None:
    headers = await house.operator() | await house.session()
    refused(await house.gate(headers, "999"), 404, "agent_not_found")


@pytest.mark.parametrize("path", ["/operator/gate/", "/operator/gate/7/8"])
async def test_404_nothing_is_there(house: House, path: str) -> None:
    refused(await house.http.post(path), 404, "not_found")


async def test_405_only_post_is_taken(house: House) -> None:
    answer = await house.http.get("/operator/gate/7")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


async def test_413_a_body_beyond_the_cap(house: House) -> None:
    headers = await house.operator() | await house.session()
    answer = await house.http.post("/operator/gate/7", headers=headers, content=b"x" * 2_000_000)
    refused(answer, 413, "payload_too_large")


async def test_429_the_monthly_allowance_counts_answers_only(house: House) -> None:
    headers = await house.operator() | await house.session()
    limited: Any = house.app.allowance
    limited._limit = 3
    for wrong in ("999", "abc"):
        await house.gate(headers, wrong)
    await house.gate(headers, trustSignals=["attestation"])
    await house.gate(headers | await house.session(STRANGER_KEY))
    statuses = [(await house.gate(headers)).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    answer = await house.gate(headers)
    body = refused(answer, 429, "MONTHLY_REQUEST_LIMIT_EXCEEDED")
    assert (body["used"], body["limit"]) == (3, 3)
    assert body["resetsAt"] == "2026-04-01T00:00:00.000Z"
    assert body["upgradeUrl"].startswith("http")
    april = datetime(2026, 4, 1, tzinfo=UTC)
    assert int(answer.headers["retry-after"]) == (april - house.clock.now()).total_seconds()
    house.clock.set(april)
    fresh = headers | await house.session()
    assert (await house.gate(fresh)).status_code == 200


async def test_429_pro_has_no_cap(house: House) -> None:
    headers = await house.operator() | await house.session()
    limited: Any = house.app.allowance
    limited._limit = 1
    await house.pro()
    assert [(await house.gate(headers)).status_code for _ in range(3)] == [200, 200, 200]


async def test_503_a_chain_that_cannot_be_read_is_never_guessed(house: House) -> None:
    headers = await house.operator() | await house.session()
    house.chain.down = ChainUnavailable("The chain is down.", retry_after_s=7)
    answer = await house.gate(headers)
    refused(answer, 503, "chain_unavailable")
    assert answer.headers["retry-after"] == "7"


async def test_what_was_counted_survives_a_restart(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        op = await house.operator()
        headers = op | await house.session()
        for _ in range(3):
            await house.gate(headers)
    async with open_house(tmp_path) as house:
        (operator,) = await house.app.operators.list_for_admin()
        assert (await house.app.allowance.usage(operator)).used == 3
        assert isinstance(house.app.allowance, Allowance)
