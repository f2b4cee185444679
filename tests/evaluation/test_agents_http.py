"""Profiles, wallets, snapshots and sandbox runs (interface.md#trust-evaluation), by status."""

from dataclasses import replace
from pathlib import Path

import pytest

from assay.chains.model import ChainUnavailable
from assay.registries.registration import parse_registration
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)


async def test_profile_200_carries_everything_its_score_comes_from(service: TestService) -> None:
    profile = (await service.http.get("/operator/agent/7", headers=await service.operator())).json()
    assert profile["identity"]["endpoints"] == {
        "agentWallet": address(OWNER_KEY),
        "api": "http://127.0.0.1:9/",
    }
    assert profile["onchainReputation"]["feedbackCount"] == 1
    assert profile["onchainReputation"]["averageScore"] == 90
    assert profile["localReputation"] is None
    recomputed = 50 + sum(
        s["weight"] * s["confidence"] * (s["value"] - 50) for s in profile["signals"]
    )
    ladder = profile["ladder"]
    assert ladder["beforeCeiling"] == pytest.approx(recomputed, abs=0.01)
    assert profile["score"] == min(ladder["beforeCeiling"], ladder["ceiling"])
    assert profile["scoreLow"] <= profile["score"] <= profile["scoreHigh"] <= ladder["ceiling"]
    assert all(s["evidence"] for s in profile["signals"])
    weighted = profile["onchainReputation"]["weighted"]
    assert (weighted["score"], weighted["plainAverage"]) == (90, 90)
    assert weighted["reasons"]


async def test_profile_200_an_evaluation_adds_behaviour(service: TestService) -> None:
    op = await service.operator()
    await service.http.post("/operator/trigger-sandbox/7")
    profile = (await service.http.get("/operator/agent/7", headers=op)).json()
    assert {s["signal"] for s in profile["signals"]} == {"8004", "sandbox", "wallet"}
    assert profile["localReputation"]["evaluationId"]


async def test_profile_refusals(service: TestService) -> None:
    op = await service.operator()
    refused(await service.http.get("/operator/agent/7"), 401, "unauthorized")
    refused(await service.http.get("/operator/agent/9", headers=op), 404, "agent_not_found")
    refused(await service.http.get("/operator/agent/x", headers=op), 400, "invalid_request")
    key_agent = f"/operator/agent/{address(OWNER_KEY)}"
    refused(await service.http.get(key_agent, headers=op), 400, "invalid_request")
    service.chain.down = ChainUnavailable("down", retry_after_s=3)
    refused(await service.http.get("/operator/agent/7", headers=op), 503, "chain_unavailable")


async def test_snapshot_200_chains_404_before_and_400_for_what_is_no_id(
    service: TestService,
) -> None:
    refused(await service.http.get("/operator/agent/7/snapshot"), 404, "snapshot_not_found")
    refused(await service.http.get("/operator/agent/9/snapshot"), 404, "agent_not_found")
    refused(await service.http.get("/operator/agent/x/snapshot"), 400, "invalid_request")
    hashes = []
    for _ in range(2):
        await service.http.post("/operator/trigger-sandbox/7")
        hashes.append((await service.http.get("/operator/agent/7/snapshot")).json())
    assert hashes[0]["previousHash"] == "0x0"
    assert hashes[1]["previousHash"] == hashes[0]["snapshotHash"] == hashes[1]["snapshotHash"]
    assert hashes[0]["encryptedDataUri"].startswith("ipfs://bafkrei")
    path = service.app.settings.data_dir / "blocks"
    names = [p.name for p in path.iterdir()]
    assert hashes[0]["encryptedDataUri"].removeprefix("ipfs://") in names


async def test_wallet_200_and_404(service: TestService) -> None:
    found = (await service.http.get(f"/operator/resolve-wallet/{address(OWNER_KEY)}")).json()
    assert (found["agentId"], found["source"], found["chainId"]) == ("7", "owner", 31337)
    profile = await service.http.get(f"/operator/wallet/{address(OWNER_KEY)}")
    assert profile.json()["agentId"] == "7"
    for path in ("wallet", "resolve-wallet"):
        stranger = f"/operator/{path}/{address(STRANGER_KEY)}"
        refused(await service.http.get(stranger), 404, "agent_not_found")
        refused(await service.http.get(f"/operator/{path}/0x1"), 400, "invalid_request")


async def test_sandbox_200_inconclusive_is_not_a_bad_grade(service: TestService) -> None:
    result = (await service.http.post("/operator/trigger-sandbox/7")).json()
    assert result["ok"] is True
    assert result["testSummary"]["status"] == "inconclusive"
    assert result["score"] > 35
    key_agent = await service.http.post(f"/operator/trigger-sandbox-key/{address(STRANGER_KEY)}")
    assert (key_agent.json()["tier"], key_agent.json()["route"]) == ("B", "sandbox")


async def test_sandbox_429_per_agent_and_per_address(tmp_path: Path) -> None:
    async with start_test_service(
        tmp_path, sandbox_per_agent_minute=4, sandbox_per_minute=3
    ) as service:
        seven = [await service.http.post("/operator/trigger-sandbox/7") for _ in range(3)]
        assert [a.status_code for a in seven] == [200, 200, 429]
        assert int(seven[2].headers["retry-after"]) >= 1
        service.clock.move(60)
        eight = [await service.http.post(f"/operator/trigger-sandbox/{n}") for n in "7878"]
        assert [a.status_code for a in eight] == [200, 200, 200, 429]


async def test_strangers_leave_half_of_an_agents_evaluations_to_its_owner_and_operators(
    tmp_path: Path,
) -> None:
    async with start_test_service(
        tmp_path, sandbox_per_agent_minute=4, sandbox_per_minute=99
    ) as service:
        owner, stranger = await service.session(), await service.session(STRANGER_KEY)
        forged = {**owner, "x-agent-session": stranger["x-agent-session"]}
        operator = await service.operator()

        async def triggered(agent_id: str, headers: dict[str, str], times: int = 3) -> list[int]:
            path = f"/operator/trigger-sandbox/{agent_id}"
            asked = [await service.http.post(path, headers=headers) for _ in range(times)]
            return [answer.status_code for answer in asked]

        assert await triggered("7", {}) == [200, 200, 429]
        assert await triggered("7", stranger) == [429] * 3
        assert await triggered("7", forged) == [429] * 3
        assert await triggered("7", owner) == [200, 200, 429]
        assert await triggered("8", {}) == [200, 200, 429]
        assert await triggered("8", operator) == [200, 200, 429]
        service.clock.move(60)
        assert await triggered("8", operator, 5) == [200] * 4 + [429]
        assert await triggered("8", {}) == [429] * 3


async def test_a_setting_closes_what_is_open_by_default(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, open_endpoints=("snapshot",)) as service:
        for method, path in (
            ("GET", f"/operator/wallet/{address(OWNER_KEY)}"),
            ("GET", f"/operator/resolve-wallet/{address(OWNER_KEY)}"),
            ("POST", "/operator/trigger-sandbox/7"),
            ("POST", f"/operator/trigger-sandbox-key/{address(OWNER_KEY)}"),
        ):
            refused(await service.http.request(method, path), 401, "unauthorized")
        refused(await service.http.get("/operator/agent/7/snapshot"), 404, "snapshot_not_found")


async def test_problems_of_the_registration_file_are_in_profile_and_sandbox_answers(
    service: TestService,
) -> None:
    """Where it is, what was found and what was expected; as sentences in `identity` as well."""
    file = parse_registration(b'{"name": "n", "services": [{"name": "web", "endpoint": "TBD"}]}')
    service.chain.agents["7"] = replace(service.chain.agents["7"], registration=file)
    profile = await service.http.get("/operator/agent/7", headers=await service.operator())
    sandbox = await service.http.post("/operator/trigger-sandbox/7")
    for answer in (profile.json(), sandbox.json()):
        wheres = [one["where"] for one in answer["problems"]]
        assert wheres == ["type", "description", "image", "services[0].endpoint"]
        assert all(one["found"] and one["expected"] for one in answer["problems"])
    assert profile.json()["identity"]["problems"][0].startswith("type: found nothing; expected ")
