"""What the open trust endpoints refuse, and what a refusal must not cost anybody."""

from pathlib import Path

import pytest

from assay.chains.model import ChainUnavailable
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

READS = [
    ("GET", "/operator/agent/7"),
    ("GET", f"/operator/wallet/{address(OWNER_KEY)}"),
    ("GET", f"/operator/resolve-wallet/{address(OWNER_KEY)}"),
    ("POST", "/operator/trigger-sandbox/7"),
]


@pytest.mark.parametrize(("method", "path"), READS)
async def test_503_a_chain_that_is_down_is_said_with_when_to_ask_again(
    service: TestService, method: str, path: str
) -> None:
    op = await service.operator()
    service.chain.down = ChainUnavailable("The chain is down.", retry_after_s=3)
    answer = await service.http.request(method, path, headers=op)
    refused(answer, 503, "chain_unavailable")
    assert answer.headers["retry-after"] == "3"
    service.chain.down = None
    assert (await service.http.request(method, path, headers=op)).status_code == 200


@pytest.mark.parametrize(
    ("agent_id", "status", "code"),
    [
        ("999", 404, "agent_not_found"),
        ("x", 400, "invalid_request"),
        ("-1", 400, "invalid_request"),
        (str(2**256), 400, "invalid_request"),
        ("9" * 101, 400, "invalid_request"),
    ],
)
async def test_sandbox_an_agent_that_is_none_is_never_visited(
    service: TestService, agent_id: str, status: int, code: str
) -> None:
    refused(await service.http.post(f"/operator/trigger-sandbox/{agent_id}"), status, code)
    refused(await service.http.get("/operator/agent/7/snapshot"), 404, "snapshot_not_found")


@pytest.mark.parametrize("name", ["0x12", "nobody", "0x" + "g" * 40])
async def test_sandbox_400_a_key_agent_that_is_no_address(service: TestService, name: str) -> None:
    refused(
        await service.http.post(f"/operator/trigger-sandbox-key/{name}"), 400, "invalid_request"
    )


async def test_sandbox_what_was_refused_uses_up_nobodys_runs(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, sandbox_per_minute=1) as service:
        for _ in range(3):
            refused(
                await service.http.post("/operator/trigger-sandbox/999"), 404, "agent_not_found"
            )
        assert (await service.http.post("/operator/trigger-sandbox/7")).status_code == 200


@pytest.mark.parametrize("path", ["wallet", "resolve-wallet"])
async def test_wallets_are_found_in_any_case(service: TestService, path: str) -> None:
    upper = "0x" + address(OWNER_KEY)[2:].upper()
    assert (await service.http.get(f"/operator/{path}/{upper}")).json()["agentId"] == "7"


async def test_key_profile_400_for_what_is_no_address(service: TestService) -> None:
    op = await service.operator()
    refused(await service.http.get("/operator/key/0x12", headers=op), 400, "invalid_request")


async def test_end_session_401_without_a_proof_or_with_only_a_signature(
    service: TestService,
) -> None:
    path = f"/operator/key/{address(STRANGER_KEY)}/session"
    refused(await service.http.delete(path), 401, "identity_required")
    named = {"x-agent-address": address(STRANGER_KEY)}
    refused(await service.http.delete(path, headers=named), 401, "challenge_required")
    signed = await service.challenge(STRANGER_KEY)
    headers = named | {
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    refused(await service.http.delete(path, headers=headers), 401, "identity_required")


async def test_end_session_ends_that_one_and_no_other(service: TestService) -> None:
    op, one, two = await service.operator(), await service.session(), await service.session()
    path = f"/operator/key/{address(OWNER_KEY)}/session"
    assert (await service.http.delete(path, headers=one)).status_code == 200
    refused(await service.http.delete(path, headers=one), 401, "challenge_required")
    assert (await service.gate(op | two)).status_code == 200


async def test_an_ended_session_stays_ended_after_a_restart(tmp_path: Path) -> None:
    async with start_test_service(tmp_path) as service:
        op, session = await service.operator(), await service.session()
        path = f"/operator/key/{address(OWNER_KEY)}/session"
        await service.http.delete(path, headers=session)
    async with start_test_service(tmp_path) as service:
        refused(await service.gate(op | session), 401, "challenge_required")
        assert (await service.gate(op | await service.session())).status_code == 200
