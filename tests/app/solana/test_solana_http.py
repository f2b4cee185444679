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
from tests.support.house import refused
from tests.support.solana import golden, loopback
from tests.support.solana.clusters import keypair
from tests.support.solana.house import SolanaHouse, file_uri, open_solana

WALLET = keypair("wallet")
OWNER = keypair("owner")
STRANGER = keypair("stranger")
CHAIN = {"network": "solana", "cluster": "mainnet-beta"}
NOBODY = str(keypair("nobody").pubkey())


def registered(house: SolanaHouse, **more: Any) -> str:
    """An agent of OWNER, with WALLET as its wallet."""
    fields = {"owner": OWNER.pubkey(), "wallet": WALLET.pubkey(), "uri": file_uri()} | more
    return str(house.registry.agent(**fields).asset)


async def test_a_profile_is_that_of_the_specification(house: SolanaHouse) -> None:
    asset = registered(house, feedback_count=40, atom=golden.atom("forty-clients"))
    agent = house.registry.agents[0]
    house.registry.feedback(agent, "one", value=80, score=80, tag1="starred")
    house.registry.feedback(agent, "two", value=90, score=90, tag1="starred")
    house.registry.feedback(agent, "off", value=5, tag1="revenues")
    answer = await house.get(f"/operator/agent/{asset}", headers=await house.operator())
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


async def test_an_agent_without_figures_has_no_solana_object(house: SolanaHouse) -> None:
    asset = registered(house)
    answer = await house.get(f"/operator/agent/{asset}", headers=await house.operator())
    found = answer.json()["onchainReputation"]
    assert "solana" not in found
    assert (found["count"], found["averageScore"], found["totalFeedback"]) == ("0", 0.0, 0)


@pytest.mark.parametrize("number", ["1", "sol:1", "01"])
async def test_a_sequential_id_is_answered_with_the_asset_and_the_number(
    house: SolanaHouse, number: str
) -> None:
    asset = registered(house)
    who = await house.operator()
    profile = await house.get(f"/operator/agent/{number}", headers=who)
    run = await house.post(f"/operator/trigger-sandbox/{number}")
    gate = await house.gate(number, who, WALLET)
    again = await house.gate(number, who, WALLET)
    by_asset = await house.gate(asset, who, WALLET)
    snapshot = await house.get(f"/operator/agent/{number}/snapshot")
    liveness = await house.get(f"/operator/agent/{number}/liveness")
    human = await house.get(f"/operator/personhood/profile/{number}")
    assert human.json()["agentId"] == asset
    for answer in (profile, run, gate, again, snapshot, liveness):
        assert answer.status_code == 200, answer.text
        assert (answer.json()["agentId"], answer.json()["sequentialId"]) == (asset, 1)
    assert by_asset.json()["cached"] is True
    assert "sequentialId" not in by_asset.json()


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "abc", "1" * 19, "0x" + "a" * 39, "O0Il"])
async def test_an_id_that_is_none_is_400(house: SolanaHouse, wrong: str) -> None:
    who = await house.operator()
    refused(await house.get(f"/operator/agent/{wrong}", headers=who), 400, "invalid_request")
    for path in ("snapshot", "liveness"):
        answer = await house.get(f"/operator/agent/{wrong}/{path}")
        refused(answer, 400, "invalid_request")
    refused(await house.post(f"/operator/trigger-sandbox/{wrong}"), 400, "invalid_request")
    refused(await house.gate(wrong, who, WALLET), 400, "invalid_request")
    refused(await house.get(f"/operator/wallet/{wrong}"), 400, "invalid_request")
    refused(await house.get(f"/operator/resolve-wallet/{wrong}"), 400, "invalid_request")


@pytest.mark.parametrize("unknown", [NOBODY, "1", "999999999999999999"])
async def test_an_agent_nobody_registered_is_404(house: SolanaHouse, unknown: str) -> None:
    who = await house.operator()
    refused(await house.get(f"/operator/agent/{unknown}", headers=who), 404, "agent_not_found")
    for path in ("snapshot", "liveness"):
        answer = await house.get(f"/operator/agent/{unknown}/{path}")
        refused(answer, 404, "agent_not_found")
    refused(await house.post(f"/operator/trigger-sandbox/{unknown}"), 404, "agent_not_found")
    refused(await house.gate(unknown, who, WALLET), 404, "agent_not_found")
    for path in ("wallet", "resolve-wallet"):
        refused(await house.get(f"/operator/{path}/{NOBODY}"), 404, "agent_not_found")


async def test_a_node_that_is_down_is_503(house: SolanaHouse) -> None:
    asset = registered(house)
    who = await house.operator()
    house.node.faults.on(loopback.unavailable())
    for answer in (
        await house.get(f"/operator/agent/{asset}", headers=who),
        await house.get(f"/operator/agent/{asset}/liveness"),
        await house.post(f"/operator/trigger-sandbox/{asset}"),
        await house.gate(asset, who, WALLET),
        await house.get(f"/operator/wallet/{WALLET.pubkey()}"),
    ):
        refused(answer, 503, "chain_unavailable")
        assert int(answer.headers["retry-after"]) > 0


async def test_an_index_that_is_down_is_503_where_it_is_needed_and_else_not(
    house: SolanaHouse,
) -> None:
    asset = registered(house, feedback_count=7, atom=golden.atom("five-clients"))
    who = await house.operator()
    house.index.faults.on(loopback.unavailable())
    answer = await house.get("/operator/agent/1", headers=who)
    refused(answer, 503, "chain_unavailable")
    body = (await house.get(f"/operator/agent/{asset}", headers=who)).json()
    found = body["onchainReputation"]
    assert (found["count"], found["feedbackEntries"]) == ("7", [])
    assert (
        found["averageScore"] == golden.account("AtomStats", "five-clients").decoded["averageScore"]
    )
    assert next(s for s in body["signals"] if s["signal"] == "8004")["available"] is False
    by_wallet = await house.get(f"/operator/resolve-wallet/{WALLET.pubkey()}")
    assert by_wallet.json()["agentId"] == asset


async def test_a_wallet_is_resolved_as_wallet_or_owner(house: SolanaHouse) -> None:
    asset = registered(house)
    for key, source in ((WALLET, "agentWallet"), (OWNER, "owner")):
        body = (await house.get(f"/operator/resolve-wallet/{key.pubkey()}")).json()
        assert (body["wallet"], body["agentId"]) == (str(key.pubkey()), asset)
        assert (body["source"], body["chainId"], body["agentName"]) == (source, 101, "S")
        profile = await house.get(f"/operator/wallet/{key.pubkey()}")
        assert profile.json()["agentId"] == asset


@pytest.mark.parametrize("key", [WALLET, OWNER], ids=["wallet", "owner"])
async def test_who_holds_a_key_of_the_agent_passes_the_gate_as_it(
    house: SolanaHouse, key: Any
) -> None:
    asset = registered(house)
    answer = await house.gate(asset, await house.operator(), key)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["agentId"], body["wallet"], body["chain"]) == (asset, str(WALLET.pubkey()), CHAIN)
    assert (body["identityProven"], body["sandboxRan"], body["cached"]) == (True, True, False)
    assert answer.headers["x-agent-session"]


async def test_a_session_of_a_solana_key_is_a_session(house: SolanaHouse) -> None:
    asset = registered(house)
    who = await house.operator()
    began = await house.gate(asset, who, WALLET)
    session = {
        "x-agent-address": str(WALLET.pubkey()),
        "x-agent-session": began.headers["x-agent-session"],
    }
    again = await house.gate(asset, who | session)
    assert (again.status_code, again.json()["cached"]) == (200, True)
    other = session | {"x-agent-address": str(OWNER.pubkey())}
    refused(await house.gate(asset, who | other), 401, "challenge_required")


async def test_somebody_elses_key_is_refused(house: SolanaHouse) -> None:
    asset = registered(house)
    answer = await house.gate(asset, await house.operator(), STRANGER)
    refused(answer, 401, "identity_mismatch")


@pytest.mark.parametrize("written", ["base58", "base64", "hex"])
async def test_a_signature_may_be_written_in_three_ways(house: SolanaHouse, written: str) -> None:
    asset = registered(house)
    who = await house.operator() | {"x-agent-address": str(WALLET.pubkey())}
    text = (await house.gate(asset, who)).json()["challenge"]
    signed = bytes(WALLET.sign_message(text.encode()))
    forms = {
        "base58": str(WALLET.sign_message(text.encode())),
        "base64": base64.b64encode(signed).decode(),
        "hex": "0x" + signed.hex(),
    }
    proof = {"x-agent-challenge": text, "x-agent-signature": forms[written]}
    assert (await house.gate(asset, who | proof)).status_code == 200


async def test_a_signature_that_is_not_the_keys_over_this_text_is_refused(
    house: SolanaHouse,
) -> None:
    asset = registered(house)
    who = await house.operator() | {"x-agent-address": str(WALLET.pubkey())}
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
        text = (await house.gate(asset, who)).json()["challenge"]
        proof = {"x-agent-challenge": text, "x-agent-signature": sign(text.encode())}
        refused(await house.gate(asset, who | proof), 401, "signature_invalid")
    proof = {"x-agent-challenge": text}
    good = proof | {"x-agent-signature": str(WALLET.sign_message(text.encode()))}
    assert (await house.gate(asset, who | good)).status_code == 200
    refused(await house.gate(asset, who | good), 401, "challenge_required")


async def test_nobody_signs_for_the_system_program(house: SolanaHouse) -> None:
    """Its address is a key of small order, for which a lax verification takes forged signatures."""
    asset = str(house.registry.agent(owner=keypair("x").pubkey(), wallet=None).asset)
    burnt = "1" * 32
    who = await house.operator() | {"x-agent-address": burnt}
    for _ in range(16):
        text = (await house.gate(asset, who)).json()["challenge"]
        forged = (b"\x01" + bytes(31) + bytes(32)).hex()
        proof = {"x-agent-challenge": text, "x-agent-signature": forged}
        refused(await house.gate(asset, who | proof), 401, "signature_invalid")


async def test_key_agents_stay_ethereum_addresses(house: SolanaHouse) -> None:
    answer = await house.http.post(f"/operator/key/{WALLET.pubkey()}/challenge")
    refused(answer, 400, "invalid_request")


async def test_a_sandbox_run_tells_of_liveness_and_leaves_a_snapshot(house: SolanaHouse) -> None:
    asset = registered(house, uri=file_uri([{"name": "SNS", "endpoint": "a.sol"}]))
    missing = await house.get(f"/operator/agent/{asset}/snapshot")
    refused(missing, 404, "snapshot_not_found")
    body = (await house.post(f"/operator/trigger-sandbox/{asset}")).json()
    assert (body["ok"], body["agentId"], body["chain"]) == (True, asset, CHAIN)
    assert body["liveness"] == {
        "status": "not_live",
        "okCount": 0,
        "totalPinged": 0,
        "skippedCount": 1,
    }
    snapshot = (await house.get(f"/operator/agent/{asset}/snapshot")).json()
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
    async with open_solana(tmp_path, **people) as house:
        asset = registered(house)
        answer = await house.post(f"/operator/trigger-sandbox/{asset}")
        assert answer.status_code == 200, answer.text
        profile = await house.get(f"/operator/agent/{asset}", headers=await house.operator())
    heard = {row["signal"]: row for row in profile.json()["signals"]}
    for name in ("self", "wallet"):
        assert heard[name]["available"] is True
    assert heard["self"]["confidence"] == 0


async def test_liveness_is_of_solana_agents_only(house: SolanaHouse) -> None:
    refused(await house.http.get("/operator/agent/22/liveness"), 400, "invalid_request")


async def test_health_names_solana(house: SolanaHouse) -> None:
    assert "solana" in (await house.http.get("/operator/health")).json()["supportedChains"]


async def test_a_score_is_written_back_once_for_each_evaluation_that_ran(tmp_path: Path) -> None:
    writer = keypair("writer")
    async with open_solana(tmp_path, solana_keypair=writer.to_json()) as house:
        house.node.fund(writer.pubkey())
        asset = registered(house)
        who = await house.operator()
        ran = (await house.post(f"/operator/trigger-sandbox/{asset}")).json()
        cached = await house.gate(asset, who, WALLET)
        assert cached.json()["cached"] is True
        await written(house, 1)
        (sent,) = house.node.accepted
        assert (sent.given.args.score, sent.given.args.tag1) == (round(ran["score"]), "starred")
        assert await counted(house) == {
            "submitted": 1,
            "refused": 0,
            "skipped": 0,
            "failed": 0,
            "dropped": 0,
            "unpaid": 0,
        }
        fresh = await house.gate(asset, who, WALLET, ttlMs=1)
        assert fresh.json()["sandboxRan"] is True
        await written(house, 2)


async def test_every_gate_answer_is_written_back_where_that_is_asked_for(tmp_path: Path) -> None:
    writer = keypair("writer")
    settings = {"solana_keypair": writer.to_json(), "solana_feedback_on": "every-gate"}
    async with open_solana(tmp_path, **settings) as house:
        house.node.fund(writer.pubkey())
        asset = registered(house)
        who = await house.operator()
        for count in (1, 2, 3):
            assert (await house.gate(asset, who, WALLET)).status_code == 200
            await written(house, count)


async def test_a_write_that_hangs_delays_no_answer(tmp_path: Path) -> None:
    async with open_solana(tmp_path, solana_keypair=keypair("w").to_json()) as house:
        asset = registered(house)
        house.node.faults.on(loopback.hang(), only="getLatestBlockhash")
        async with asyncio.timeout(6):
            answer = await house.post(f"/operator/trigger-sandbox/{asset}")
        assert answer.status_code == 200
        assert house.node.accepted == []


async def test_nothing_is_written_without_a_keypair(house: SolanaHouse) -> None:
    asset = registered(house)
    assert (await house.post(f"/operator/trigger-sandbox/{asset}")).status_code == 200
    assert house.app.write_back is None
    assert "sendTransaction" not in {method for method, _ in house.node.calls()}


async def test_a_keypair_that_is_none_stops_the_boot(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ASSAY_SOLANA_KEYPAIR"):
        async with open_solana(tmp_path, solana_keypair="[1,2,3]"):
            pass


async def counted(house: SolanaHouse) -> dict[str, int]:
    """What the admin sees of it."""
    await house.app.operators.set_role_for_admin("op@example.com", Role.ADMIN)
    body = {"email": "op@example.com", "password": "correct horse battery"}
    token = (await house.http.post("/operator/login", json=body)).json()["token"]
    who = {"authorization": f"Bearer {token}"}
    return (await house.http.get("/operator/admin/stats", headers=who)).json()["solanaWriteBack"]


async def written(house: SolanaHouse, count: int) -> None:
    """Wait until that many scores were taken."""
    assert house.app.write_back is not None
    async with asyncio.timeout(10):
        while house.app.write_back.counts["submitted"] < count:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    assert len(house.node.accepted) == count
