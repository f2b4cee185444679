"""Personhood by status; the provider's API is a double that takes every proof it is told to."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_service import (
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)
from tests.support.raw_server import RawServer, Request, plain, serving

VERIFY, STATUS, PROFILE = (
    "/operator/personhood/verify/{}",
    "/operator/personhood/status/{}",
    "/operator/personhood/profile/{}",
)


def proof(agent_id: str, human: int = 1, **changed: Any) -> dict[str, Any]:
    return {
        "merkle_root": "0x01",
        "nullifier_hash": hex(human),
        "proof": "0x" + "ab" * 256,
        "signal": agent_id,
    } | changed


@pytest.fixture
async def provider() -> AsyncGenerator[RawServer]:
    """Takes proofs whose root is 1; a root of 2 makes it fall over."""

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        root = int(json.loads(request.body)["merkle_root"], 16)
        status = {1: "200 OK", 2: "500 Internal Server Error"}.get(root, "400 Bad Request")
        told = {"success": True} if root == 1 else {"code": "invalid_proof"}
        writer.write(plain(json.dumps(told).encode(), status, "Connection: close"))
        await writer.drain()
        writer.close()

    async with serving(respond) as server:
        yield server


@pytest.fixture
async def human(tmp_path: Path, provider: RawServer) -> AsyncGenerator[TestService]:
    settings = {
        "world_id_app": "app_1",
        "world_id_verifier": "cloud",
        "world_id_api": provider.url("").rstrip("/"),
    }
    async with start_test_service(tmp_path, **settings) as service:
        yield service


async def test_200_a_proof_is_kept_and_shown(human: TestService) -> None:
    answer = await human.http.post(VERIFY.format("7"), json=proof("7"))
    assert answer.status_code == 200
    told = answer.json()
    assert (told["verified"], told["agentId"], told["level"]) == (True, "7", "orb")
    status = (await human.http.get(STATUS.format("7"))).json()
    assert status == {"verified": True, "level": "orb", "verifiedAt": told["verifiedAt"]}
    shown = (await human.http.get(PROFILE.format("7"))).json()
    assert shown == {"agentId": "7", "personhood": status}


async def test_200_a_key_agent_may_have_a_human_too(human: TestService) -> None:
    who = address(STRANGER_KEY)
    answer = await human.http.post(VERIFY.format(who), json=proof(who, 9))
    assert answer.json()["agentId"] == who
    other_case = "0x" + who[2:].upper()
    assert (await human.http.get(STATUS.format(other_case))).json()["verified"] is True


@pytest.mark.parametrize("signal", ["7", "31337:7", "eip155:31337/7"])
async def test_200_the_signal_may_name_the_agent_in_several_ways(
    human: TestService, signal: str
) -> None:
    answer = await human.http.post(VERIFY.format("7"), json=proof(signal))
    assert answer.status_code == 200, answer.text


async def test_400_a_proof_for_another_agent_or_of_nothing(human: TestService) -> None:
    for body, code in (
        (proof("8"), "proof_invalid"),
        (proof("7", merkle_root="0x03"), "proof_invalid"),
        (proof("7", proof="x"), "invalid_request"),
        (proof("7", signal=7), "invalid_request"),
        ({}, "invalid_request"),
    ):
        refused(await human.http.post(VERIFY.format("7"), json=body), 400, code)
    refused(await human.http.post(VERIFY.format("7"), content=b"{"), 400, "invalid_request")
    refused(await human.http.get(STATUS.format("x")), 400, "invalid_request")


async def test_404_nobody_stands_behind_nobody(human: TestService) -> None:
    refused(await human.http.post(VERIFY.format("99"), json=proof("99")), 404, "agent_not_found")
    refused(await human.http.get(STATUS.format("99")), 404, "agent_not_found")


async def test_409_one_human_one_agent(human: TestService) -> None:
    assert (await human.http.post(VERIFY.format("7"), json=proof("7", 1))).status_code == 200
    refused(await human.http.post(VERIFY.format("8"), json=proof("8", 1)), 409, "human_taken")
    refused(await human.http.post(VERIFY.format("7"), json=proof("7", 2)), 409, "human_taken")
    assert (await human.http.post(VERIFY.format("7"), json=proof("7", 1))).status_code == 200
    assert (await human.http.get(STATUS.format("8"))).json()["verified"] is False


async def test_503_a_provider_that_falls_over_proves_nothing(human: TestService) -> None:
    body = proof("7", merkle_root="0x02")
    refused(await human.http.post(VERIFY.format("7"), json=body), 503, "personhood_unavailable")
    assert (await human.http.get(STATUS.format("7"))).json()["verified"] is False


async def test_503_where_no_app_is_configured(service: TestService) -> None:
    answer = await service.http.post(VERIFY.format("7"), json=proof("7"))
    refused(answer, 503, "personhood_unavailable")
    assert (await service.http.get(STATUS.format("7"))).json()["verified"] is False


async def test_the_bonus_is_in_the_gates_cached_answer_at_once(human: TestService) -> None:
    op, agent = await human.operator(), await human.session()
    await human.gate(op | agent)
    before = (await human.gate(op | agent)).json()
    await human.http.post(VERIFY.format("7"), json=proof("7"))
    after = (await human.gate(op | agent)).json()
    assert (before["cached"], after["cached"]) == (True, True)
    assert after["score"] == pytest.approx(before["score"] + 8)
