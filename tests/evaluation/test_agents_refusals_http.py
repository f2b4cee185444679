"""What the open trust endpoints refuse, and what a refusal must not cost anybody."""

from pathlib import Path

import pytest

from assay.chains.model import ChainUnavailable
from tests.support.house import OWNER_KEY, STRANGER_KEY, House, address, open_house, refused

READS = [
    ("GET", "/operator/agent/7"),
    ("GET", f"/operator/wallet/{address(OWNER_KEY)}"),
    ("GET", f"/operator/resolve-wallet/{address(OWNER_KEY)}"),
    ("POST", "/operator/trigger-sandbox/7"),
]


@pytest.mark.parametrize(("method", "path"), READS)
async def test_503_a_chain_that_is_down_is_said_with_when_to_ask_again(
    house: House, method: str, path: str
) -> None:
    op = await house.operator()
    house.chain.down = ChainUnavailable("The chain is down.", retry_after_s=3)
    answer = await house.http.request(method, path, headers=op)
    refused(answer, 503, "chain_unavailable")
    assert answer.headers["retry-after"] == "3"
    house.chain.down = None
    assert (await house.http.request(method, path, headers=op)).status_code == 200


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
    house: House, agent_id: str, status: int, code: str
) -> None:
    refused(await house.http.post(f"/operator/trigger-sandbox/{agent_id}"), status, code)
    refused(await house.http.get("/operator/agent/7/snapshot"), 404, "snapshot_not_found")


@pytest.mark.parametrize("name", ["0x12", "nobody", "0x" + "g" * 40])
async def test_sandbox_400_a_key_agent_that_is_no_address(house: House, name: str) -> None:
    refused(await house.http.post(f"/operator/trigger-sandbox-key/{name}"), 400, "invalid_request")


async def test_sandbox_what_was_refused_uses_up_nobodys_runs(tmp_path: Path) -> None:
    async with open_house(tmp_path, sandbox_per_minute=1) as house:
        for _ in range(3):
            refused(await house.http.post("/operator/trigger-sandbox/999"), 404, "agent_not_found")
        assert (await house.http.post("/operator/trigger-sandbox/7")).status_code == 200


@pytest.mark.parametrize("path", ["wallet", "resolve-wallet"])
async def test_wallets_are_found_in_any_case(house: House, path: str) -> None:
    upper = "0x" + address(OWNER_KEY)[2:].upper()
    assert (await house.http.get(f"/operator/{path}/{upper}")).json()["agentId"] == "7"


async def test_key_profile_400_for_what_is_no_address(house: House) -> None:
    op = await house.operator()
    refused(await house.http.get("/operator/key/0x12", headers=op), 400, "invalid_request")


async def test_end_session_401_without_a_proof_or_with_only_a_signature(house: House) -> None:
    path = f"/operator/key/{address(STRANGER_KEY)}/session"
    refused(await house.http.delete(path), 401, "identity_required")
    named = {"x-agent-address": address(STRANGER_KEY)}
    refused(await house.http.delete(path, headers=named), 401, "challenge_required")
    signed = await house.challenge(STRANGER_KEY)
    headers = named | {
        "x-agent-challenge": signed["challenge"],
        "x-agent-signature": signed["signature"],
    }
    refused(await house.http.delete(path, headers=headers), 401, "identity_required")


async def test_end_session_ends_that_one_and_no_other(house: House) -> None:
    op, one, two = await house.operator(), await house.session(), await house.session()
    path = f"/operator/key/{address(OWNER_KEY)}/session"
    assert (await house.http.delete(path, headers=one)).status_code == 200
    refused(await house.http.delete(path, headers=one), 401, "challenge_required")
    assert (await house.gate(op | two)).status_code == 200


async def test_an_ended_session_stays_ended_after_a_restart(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        op, session = await house.operator(), await house.session()
        path = f"/operator/key/{address(OWNER_KEY)}/session"
        await house.http.delete(path, headers=session)
    async with open_house(tmp_path) as house:
        refused(await house.gate(op | session), 401, "challenge_required")
        assert (await house.gate(op | await house.session())).status_code == 200
