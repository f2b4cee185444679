"""Every trust endpoint for agents on Solana, by status.

Source: interface.md#trust-profile, #sandbox-result, #snapshot, #wallet-resolution,
#liveness-report, #trust-evaluation.
"""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.model import Role
from tests.support.live_service import refused
from tests.support.solana import golden, loopback
from tests.support.solana.clusters import keypair
from tests.support.solana.live_service import SolanaTestService, file_uri, open_solana

WALLET = keypair("wallet")
OWNER = keypair("owner")
STRANGER = keypair("stranger")
CHAIN = {"network": "solana", "cluster": "mainnet-beta"}
NOBODY = str(keypair("nobody").pubkey())


def registered(service: SolanaTestService, **more: Any) -> str:
    """An agent of OWNER, with WALLET as its wallet."""
    fields = {"owner": OWNER.pubkey(), "wallet": WALLET.pubkey(), "uri": file_uri()} | more
    return str(service.registry.agent(**fields).asset)


async def test_a_profile_is_that_of_the_specification(service: SolanaTestService) -> None:
    asset = registered(service, feedback_count=40, atom=golden.atom("forty-clients"))
    agent = service.registry.agents[0]
    service.registry.feedback(agent, "one", value=80, score=80, tag1="starred")
    service.registry.feedback(agent, "two", value=90, score=90, tag1="starred")
    service.registry.feedback(agent, "off", value=5, tag1="revenues")
    answer = await service.get(f"/operator/agent/{asset}", headers=await service.operator())
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["agentId"] == asset
    assert body["chain"] == CHAIN
    assert "sequentialId" not in body
    assert body["identity"]["wallet"] == str(WALLET.pubkey())
    assert body["identity"]["owner"] == str(OWNER.pubkey())
    found = body["onchainReputation"]
    assert (found["count"], found["totalFeedback"], found["averageScore"]) == ("43", 3, 85.0)
    assert [entry["score"] for entry in found["feedbackEntries"]] == [80.0, 90.0, None]
    figures = golden.account("AtomStats", "forty-clients").decoded
    assert found["solana"] == {
        "trustTier": figures["trustTierName"],
        "qualityScore": figures["qualityScore"],
        "confidence": figures["confidence"],
        "riskScore": figures["riskScore"],
        "uniqueCallers": figures["uniqueCallers"],
    }
    assert found["weighted"]["plainAverage"] == 85.0


async def test_an_agent_without_figures_has_no_solana_object(service: SolanaTestService) -> None:
    asset = registered(service)
    answer = await service.get(f"/operator/agent/{asset}", headers=await service.operator())
    found = answer.json()["onchainReputation"]
    assert "solana" not in found
    assert (found["count"], found["averageScore"], found["totalFeedback"]) == ("0", 0.0, 0)


@pytest.mark.parametrize("number", ["1", "sol:1", "01"])
async def test_a_sequential_id_is_answered_with_the_asset_and_the_number(
    service: SolanaTestService, number: str
) -> None:
    asset = registered(service)
    who = await service.operator()
    profile = await service.get(f"/operator/agent/{number}", headers=who)
    run = await service.post(f"/operator/trigger-sandbox/{number}")
    gate = await service.gate(number, who, WALLET)
    again = await service.gate(number, who, WALLET)
    by_asset = await service.gate(asset, who, WALLET)
    snapshot = await service.get(f"/operator/agent/{number}/snapshot")
    liveness = await service.get(f"/operator/agent/{number}/liveness")
    human = await service.get(f"/operator/personhood/profile/{number}")
    assert human.json()["agentId"] == asset
    for answer in (profile, run, gate, again, snapshot, liveness):
        assert answer.status_code == 200, answer.text
        assert (answer.json()["agentId"], answer.json()["sequentialId"]) == (asset, 1)
    assert by_asset.json()["cached"] is True
    assert "sequentialId" not in by_asset.json()


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "abc", "1" * 19, "0x" + "a" * 39, "O0Il"])
async def test_an_id_that_is_none_is_400(service: SolanaTestService, wrong: str) -> None:
    who = await service.operator()
    refused(await service.get(f"/operator/agent/{wrong}", headers=who), 400, "invalid_request")
    for path in ("snapshot", "liveness"):
        answer = await service.get(f"/operator/agent/{wrong}/{path}")
        refused(answer, 400, "invalid_request")
    refused(await service.post(f"/operator/trigger-sandbox/{wrong}"), 400, "invalid_request")
    refused(await service.gate(wrong, who, WALLET), 400, "invalid_request")
    refused(await service.get(f"/operator/wallet/{wrong}"), 400, "invalid_request")
    refused(await service.get(f"/operator/resolve-wallet/{wrong}"), 400, "invalid_request")


@pytest.mark.parametrize("unknown", [NOBODY, "1", "999999999999999999"])
async def test_an_agent_nobody_registered_is_404(service: SolanaTestService, unknown: str) -> None:
    who = await service.operator()
    refused(await service.get(f"/operator/agent/{unknown}", headers=who), 404, "agent_not_found")
    for path in ("snapshot", "liveness"):
        answer = await service.get(f"/operator/agent/{unknown}/{path}")
        refused(answer, 404, "agent_not_found")
    refused(await service.post(f"/operator/trigger-sandbox/{unknown}"), 404, "agent_not_found")
    refused(await service.gate(unknown, who, WALLET), 404, "agent_not_found")
    for path in ("wallet", "resolve-wallet"):
        refused(await service.get(f"/operator/{path}/{NOBODY}"), 404, "agent_not_found")


async def test_a_node_that_is_down_is_503(service: SolanaTestService) -> None:
    asset = registered(service)
    who = await service.operator()
    service.node.faults.on(loopback.unavailable())
    for answer in (
        await service.get(f"/operator/agent/{asset}", headers=who),
        await service.get(f"/operator/agent/{asset}/liveness"),
        await service.post(f"/operator/trigger-sandbox/{asset}"),
        await service.gate(asset, who, WALLET),
        await service.get(f"/operator/wallet/{WALLET.pubkey()}"),
    ):
        refused(answer, 503, "chain_unavailable")
        assert int(answer.headers["retry-after"]) > 0


async def test_an_index_that_is_down_is_503_where_it_is_needed_and_else_not(
    service: SolanaTestService,
) -> None:
    asset = registered(service, feedback_count=7, atom=golden.atom("five-clients"))
    who = await service.operator()
    service.index.faults.on(loopback.unavailable())
    answer = await service.get("/operator/agent/1", headers=who)
    refused(answer, 503, "chain_unavailable")
    body = (await service.get(f"/operator/agent/{asset}", headers=who)).json()
    found = body["onchainReputation"]
    assert (found["count"], found["feedbackEntries"]) == ("7", [])
    assert (
        found["averageScore"] == golden.account("AtomStats", "five-clients").decoded["averageScore"]
    )
    assert next(s for s in body["signals"] if s["signal"] == "8004")["available"] is False
    by_wallet = await service.get(f"/operator/resolve-wallet/{WALLET.pubkey()}")
    assert by_wallet.json()["agentId"] == asset


async def test_a_wallet_is_resolved_as_wallet_or_owner(service: SolanaTestService) -> None:
    asset = registered(service)
    for key, source in ((WALLET, "agentWallet"), (OWNER, "owner")):
        body = (await service.get(f"/operator/resolve-wallet/{key.pubkey()}")).json()
        assert (body["wallet"], body["agentId"]) == (str(key.pubkey()), asset)
        assert (body["source"], body["chainId"], body["agentName"]) == (source, 101, "S")
        profile = await service.get(f"/operator/wallet/{key.pubkey()}")
        assert profile.json()["agentId"] == asset


@pytest.mark.parametrize("key", [WALLET, OWNER], ids=["wallet", "owner"])
async def test_who_holds_a_key_of_the_agent_passes_the_gate_as_it(
    service: SolanaTestService, key: Any
) -> None:
    asset = registered(service)
    answer = await service.gate(asset, await service.operator(), key)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["agentId"], body["wallet"], body["chain"]) == (asset, str(WALLET.pubkey()), CHAIN)
    assert (body["identityProven"], body["sandboxRan"], body["cached"]) == (True, True, False)
    assert answer.headers["x-agent-session"]


async def test_a_session_of_a_solana_key_is_a_session(service: SolanaTestService) -> None:
    asset = registered(service)
    who = await service.operator()
    began = await service.gate(asset, who, WALLET)
    session = {
        "x-agent-address": str(WALLET.pubkey()),
        "x-agent-session": began.headers["x-agent-session"],
    }
    again = await service.gate(asset, who | session)
    assert (again.status_code, again.json()["cached"]) == (200, True)
    other = session | {"x-agent-address": str(OWNER.pubkey())}
    refused(await service.gate(asset, who | other), 401, "challenge_required")


async def test_somebody_elses_key_is_refused(service: SolanaTestService) -> None:
    asset = registered(service)
    answer = await service.gate(asset, await service.operator(), STRANGER)
    refused(answer, 401, "identity_mismatch")


@pytest.mark.parametrize("written", ["base58", "base64", "hex"])
async def test_a_signature_may_be_written_in_three_ways(
    service: SolanaTestService, written: str
) -> None:
    asset = registered(service)
    who = await service.operator() | {"x-agent-address": str(WALLET.pubkey())}
    text = (await service.gate(asset, who)).json()["challenge"]
    signed = bytes(WALLET.sign_message(text.encode()))
    forms = {
        "base58": str(WALLET.sign_message(text.encode())),
        "base64": base64.b64encode(signed).decode(),
        "hex": "0x" + signed.hex(),
    }
    proof = {"x-agent-challenge": text, "x-agent-signature": forms[written]}
    assert (await service.gate(asset, who | proof)).status_code == 200


async def test_a_signature_that_is_not_the_keys_over_this_text_is_refused(
    service: SolanaTestService,
) -> None:
    asset = registered(service)
    who = await service.operator() | {"x-agent-address": str(WALLET.pubkey())}
    wrong: list[Callable[[bytes], str]] = [
        lambda said: str(STRANGER.sign_message(said)),
        lambda said: str(WALLET.sign_message(said + b" ")),
        lambda said: str(WALLET.sign_message(said))[:-1],
        lambda _: "0x" + "00" * 64,
        lambda _: "1" * 64,
        lambda _: "",
        lambda _: "z" * 5000,
    ]
    text = ""
    for sign in wrong:  # each over a challenge of its own: five wrong ones would spend it
        text = (await service.gate(asset, who)).json()["challenge"]
        proof = {"x-agent-challenge": text, "x-agent-signature": sign(text.encode())}
        refused(await service.gate(asset, who | proof), 401, "signature_invalid")
    proof = {"x-agent-challenge": text}
    good = proof | {"x-agent-signature": str(WALLET.sign_message(text.encode()))}
    assert (await service.gate(asset, who | good)).status_code == 200
    refused(await service.gate(asset, who | good), 401, "challenge_required")


async def test_nobody_signs_for_the_system_program(service: SolanaTestService) -> None:
    """Its address is a key of small order, for which a lax verification takes forged signatures."""
    asset = str(service.registry.agent(owner=keypair("x").pubkey(), wallet=None).asset)
    burnt = "1" * 32
    who = await service.operator() | {"x-agent-address": burnt}
    for _ in range(16):
        text = (await service.gate(asset, who)).json()["challenge"]
        forged = (b"\x01" + bytes(31) + bytes(32)).hex()
        proof = {"x-agent-challenge": text, "x-agent-signature": forged}
        refused(await service.gate(asset, who | proof), 401, "signature_invalid")


async def test_key_agents_stay_ethereum_addresses(service: SolanaTestService) -> None:
    answer = await service.http.post(f"/operator/key/{WALLET.pubkey()}/challenge")
    refused(answer, 400, "invalid_request")


async def test_a_sandbox_run_tells_of_liveness_and_leaves_a_snapshot(
    service: SolanaTestService,
) -> None:
    asset = registered(service, uri=file_uri([{"name": "SNS", "endpoint": "a.sol"}]))
    missing = await service.get(f"/operator/agent/{asset}/snapshot")
    refused(missing, 404, "snapshot_not_found")
    body = (await service.post(f"/operator/trigger-sandbox/{asset}")).json()
    assert (body["ok"], body["agentId"], body["chain"]) == (True, asset, CHAIN)
    assert body["liveness"] == {
        "status": "not_live",
        "okCount": 0,
        "totalPinged": 0,
        "skippedCount": 1,
    }
    snapshot = (await service.get(f"/operator/agent/{asset}/snapshot")).json()
    assert snapshot["snapshotHash"] == body["snapshotHash"]


async def test_registries_of_ethereum_addresses_are_not_asked_about_a_solana_wallet(
    tmp_path: Path,
) -> None:
    attesters = {
        "chain": "base",
        "eas": "0x" + "42" * 20,
        "schema": "0x" + "ab" * 32,
        "attesters": ["0x" + "11" * 20],
        "fields": "string source, string handle",
    }
    people = {"self_registry": "celo:0x" + "ac" * 20, "attestation_sources": [attesters]}
    async with open_solana(tmp_path, **people) as service:
        asset = registered(service)
        answer = await service.post(f"/operator/trigger-sandbox/{asset}")
        assert answer.status_code == 200, answer.text
        profile = await service.get(f"/operator/agent/{asset}", headers=await service.operator())
    heard = {row["signal"]: row for row in profile.json()["signals"]}
    for name in ("self", "wallet"):
        assert heard[name]["available"] is True
    assert heard["self"]["confidence"] == 0


async def test_liveness_is_of_solana_agents_only(service: SolanaTestService) -> None:
    refused(await service.http.get("/operator/agent/22/liveness"), 400, "invalid_request")


async def test_health_names_solana(service: SolanaTestService) -> None:
    assert "solana" in (await service.http.get("/operator/health")).json()["supportedChains"]


async def test_a_score_is_written_back_once_for_each_evaluation_that_ran(tmp_path: Path) -> None:
    writer = keypair("writer")
    async with open_solana(tmp_path, solana_keypair=writer.to_json()) as service:
        service.node.fund(writer.pubkey())
        asset = registered(service)
        who = await service.operator()
        ran = (await service.post(f"/operator/trigger-sandbox/{asset}")).json()
        cached = await service.gate(asset, who, WALLET)
        assert cached.json()["cached"] is True
        await written(service, 1)
        (sent,) = service.node.accepted
        assert (sent.given.args.score, sent.given.args.tag1) == (round(ran["score"]), "starred")
        assert await counted(service) == {
            "submitted": 1,
            "refused": 0,
            "skipped": 0,
            "failed": 0,
            "dropped": 0,
            "unpaid": 0,
        }
        fresh = await service.gate(asset, who, WALLET, ttlMs=1)
        assert fresh.json()["sandboxRan"] is True
        await written(service, 2)


async def test_every_gate_answer_is_written_back_where_that_is_asked_for(tmp_path: Path) -> None:
    writer = keypair("writer")
    settings = {"solana_keypair": writer.to_json(), "solana_feedback_on": "every-gate"}
    async with open_solana(tmp_path, **settings) as service:
        service.node.fund(writer.pubkey())
        asset = registered(service)
        who = await service.operator()
        for count in (1, 2, 3):
            assert (await service.gate(asset, who, WALLET)).status_code == 200
            await written(service, count)


async def test_a_write_that_hangs_delays_no_answer(tmp_path: Path) -> None:
    async with open_solana(tmp_path, solana_keypair=keypair("w").to_json()) as service:
        asset = registered(service)
        service.node.faults.on(loopback.hang(), only="getLatestBlockhash")
        async with asyncio.timeout(6):
            answer = await service.post(f"/operator/trigger-sandbox/{asset}")
        assert answer.status_code == 200
        assert service.node.accepted == []


async def test_nothing_is_written_without_a_keypair(service: SolanaTestService) -> None:
    asset = registered(service)
    assert (await service.post(f"/operator/trigger-sandbox/{asset}")).status_code == 200
    assert service.app.write_back is None
    assert "sendTransaction" not in {method for method, _ in service.node.calls()}


async def test_a_keypair_that_is_none_stops_the_boot(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ASSAY_SOLANA_KEYPAIR"):
        async with open_solana(tmp_path, solana_keypair="[1,2,3]"):
            pass


async def counted(service: SolanaTestService) -> dict[str, int]:
    """What the admin sees of it."""
    await service.app.operators.set_role_for_admin("op@example.com", Role.ADMIN)
    body = {"email": "op@example.com", "password": "correct horse battery"}
    token = (await service.http.post("/operator/login", json=body)).json()["token"]
    who = {"authorization": f"Bearer {token}"}
    return (await service.http.get("/operator/admin/stats", headers=who)).json()["solanaWriteBack"]


async def written(service: SolanaTestService, count: int) -> None:
    """Wait until that many scores were taken."""
    assert service.app.write_back is not None
    async with asyncio.timeout(10):
        while service.app.write_back.counts["submitted"] < count:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    assert len(service.node.accepted) == count
