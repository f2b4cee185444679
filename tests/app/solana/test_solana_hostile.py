"""What strangers can put on the chain, into a file or into a request does nobody harm."""

import json
from pathlib import Path
from typing import Any

import pytest
from solders.pubkey import Pubkey

from tests.support.live_service import refused
from tests.support.solana.clusters import CORE, SYSTEM_PROGRAM, keypair
from tests.support.solana.endpoints import zoo
from tests.support.solana.live_service import SolanaTestService, file_uri, open_solana
from tests.support.solana.loopback import garbage, rewritten

WALLET = keypair("wallet")
NOBODY = keypair("nobody").pubkey()
NO_ADDRESSES = (
    "http://[",
    "http://[::1",
    "https://a\u2100b/",
    "http://",
    "https://:99999/",
    "http://a:b:c/",
    "http://x y/",
)
"""They begin as addresses do; the first three cannot even be taken apart."""


def lamports_only(service: SolanaTestService, address: Pubkey) -> None:
    """Somebody sent lamports to an address nothing lives at."""
    service.registry.put(address, b"", SYSTEM_PROGRAM)


async def test_lamports_at_the_place_of_figures_take_no_agent_away(
    service: SolanaTestService,
) -> None:
    agent = service.registry.agent(uri=file_uri())
    lamports_only(service, agent.stats_address)
    answer = await service.get(f"/operator/agent/{agent.asset}", headers=await service.operator())
    assert answer.status_code == 200, answer.text
    assert "solana" not in answer.json()["onchainReputation"]


async def test_lamports_at_the_place_of_an_agent_make_none(service: SolanaTestService) -> None:
    lamports_only(service, service.registry.cluster.agent(NOBODY)[0])
    lamports_only(service, NOBODY)
    answer = await service.get(f"/operator/agent/{NOBODY}", headers=await service.operator())
    refused(answer, 404, "agent_not_found")


async def test_a_burnt_asset_is_no_agent(service: SolanaTestService) -> None:
    """Metaplex Core leaves one byte, 0, at the address of what was burnt."""
    agent = service.registry.agent(wallet=WALLET.pubkey(), uri=file_uri())
    service.registry.put(agent.asset, b"\0", CORE)
    who = await service.operator()
    refused(
        await service.get(f"/operator/agent/{agent.asset}", headers=who), 404, "agent_not_found"
    )
    refused(await service.get(f"/operator/wallet/{WALLET.pubkey()}"), 404, "agent_not_found")
    refused(await service.gate(str(agent.asset), who, WALLET), 404, "agent_not_found")


async def test_too_many_sandbox_runs_are_429(tmp_path: Path) -> None:
    async with open_solana(tmp_path, sandbox_per_minute=1) as service:
        asset = service.registry.agent(uri=file_uri()).asset
        assert (await service.post(f"/operator/trigger-sandbox/{asset}")).status_code == 200
        refused(await service.post(f"/operator/trigger-sandbox/{asset}"), 429, "rate_limited")


@pytest.mark.parametrize("kind", ["MCP", "A2A", "web"])
async def test_an_address_that_is_none_is_not_alive(service: SolanaTestService, kind: str) -> None:
    for endpoint in NO_ADDRESSES:
        services = [{"name": kind, "endpoint": endpoint}]
        text = json.dumps({"services": services}, separators=(",", ":"))
        agent = service.registry.agent(uri="data:application/json," + text)
        answer = await service.get(f"/operator/agent/{agent.asset}/liveness")
        assert answer.status_code == 200, answer.text
        found = answer.json()["liveness"]
        assert (found["okCount"], found["totalPinged"]) == (0, 1)
        run = await service.post(f"/operator/trigger-sandbox/{agent.asset}")
        assert run.status_code == 200, run.text


async def test_a_newer_evaluation_counts_by_number_too(service: SolanaTestService) -> None:
    asset = str(service.registry.agent(wallet=WALLET.pubkey(), uri=file_uri()).asset)
    who = await service.operator()
    began = await service.gate("1", who, WALLET)
    session = {
        "x-agent-address": str(WALLET.pubkey()),
        "x-agent-session": began.headers["x-agent-session"],
    }

    async def token_of(agent_id: str, **body: Any) -> Any:
        answer = await service.gate(agent_id, who | session, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    await token_of(asset, minScore=10)
    assert (await service.post(f"/operator/trigger-sandbox/{asset}")).status_code == 200
    by_asset, by_number = await token_of(asset), await token_of("1")
    assert by_asset["evaluatedAt"] == by_number["evaluatedAt"]


async def test_an_address_that_is_none_ends_no_probe_of_the_others(
    service: SolanaTestService,
) -> None:
    with zoo() as animals:
        urls = [animals.endpoint("web").url, "http://["]
        text = json.dumps({"services": [{"name": "web", "endpoint": url} for url in urls]})
        asset = service.registry.agent(uri="data:application/json," + text).asset
        told = (await service.post(f"/operator/trigger-sandbox/{asset}")).json()["testSummary"]
    assert (told["status"], told["unfinished"]) == ("tested", 0)


async def test_a_tag_that_is_no_text_is_shown_as_far_as_it_is_one(
    service: SolanaTestService,
) -> None:
    """JSON can spell half a character (RFC 8259, section 8.2); an answer of ours cannot."""
    agent = service.registry.agent(uri=file_uri())
    service.registry.feedback(agent, "one", value=80, score=80, tag1="half: HALF")
    half = json.dumps("\ud800")[1:-1]
    broken = rewritten(lambda told: json.loads(json.dumps(told).replace("HALF", half)))
    service.index.faults.on(broken)
    answer = await service.get(f"/operator/agent/{agent.asset}", headers=await service.operator())
    assert answer.status_code == 200, answer.text
    assert [e["tag1"] for e in answer.json()["onchainReputation"]["feedbackEntries"]] == ["half: ?"]


@pytest.mark.parametrize("form", ["graphql", "rest"])
async def test_an_index_that_names_another_number_is_not_believed(
    service: SolanaTestService, form: str
) -> None:
    """Such as one that passes over a filter it does not know, and lists whom it likes."""
    first = service.registry.agent(uri=file_uri())
    service.registry.agent(uri=file_uri())
    rows = {
        "graphql": {"data": {"agents": [{"id": str(first.asset), "agentId": "1"}]}},
        "rest": [{"asset": str(first.asset), "agent_id": 1, "created_at": "2026-03-05T00:00:00Z"}],
    }
    service.index.faults.on(garbage(json.dumps(rows[form]).encode()))
    who = await service.operator()
    refused(await service.get("/operator/agent/2", headers=who), 503, "chain_unavailable")
    assert (await service.get("/operator/agent/1", headers=who)).json()["sequentialId"] == 1
