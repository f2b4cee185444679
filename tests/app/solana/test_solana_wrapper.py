"""A wrapper lets Solana agents in by a key of theirs.

Source: interface.md#wrappers; conventions.md#agent-identity, #wrapper.
"""

from pathlib import Path
from typing import Any

from solders.keypair import Keypair

from tests.support.live_service import refused
from tests.support.solana.clusters import keypair
from tests.support.solana.endpoints import Zoo, zoo
from tests.support.solana.live_service import SolanaTestService, file_uri, open_solana

WALLET = keypair("wallet")


async def wrapper(
    service: SolanaTestService, animals: Zoo, **more: Any
) -> tuple[str, dict[str, str]]:
    """A trusting wrapper's address, and its operator's API key."""
    who = await service.operator()
    body = {"email": "op@example.com", "password": "correct horse battery"}
    login = (await service.http.post("/operator/login", json=body)).json()
    config = {
        "path": "/web",
        "pricePerCall": 0,
        "targetUrl": animals.url,
        "trustEnabled": True,
        "minScore": 0,
        **more,
    }
    token = {"authorization": f"Bearer {login['token']}"}
    made = await service.http.post("/operator/endpoints", json=config, headers=token)
    assert made.status_code in {200, 201}, made.text
    return f"/wrap/{login['operator']['id']}/web", who


async def signed_in(service: SolanaTestService, path: str, key: Keypair, agent_id: str) -> Any:
    """A call that answers the wrapper's challenge."""
    named = {"x-chain": "solana", "x-agent-id": agent_id, "x-agent-address": str(key.pubkey())}
    asked = await service.http.get(path, headers=named)
    assert asked.json()["error"] == "challenge_required", asked.text
    text = asked.json()["challenge"]
    proof = {
        "x-agent-challenge": text,
        "x-agent-signature": str(key.sign_message(text.encode())),
    }
    return await service.http.get(path, headers=named | proof)


async def test_an_agent_is_let_in_by_its_wallets_key_and_its_number(tmp_path: Path) -> None:
    async with open_solana(tmp_path) as service:
        with zoo() as animals:
            agent = service.registry.agent(wallet=WALLET.pubkey(), uri=file_uri())
            path, _ = await wrapper(service, animals)
            answer = await signed_in(service, path, WALLET, "1")
            assert answer.status_code == 200, answer.text
            seen = animals.requests("web")[-1]
            session = {
                "x-chain": "solana",
                "x-agent-id": str(agent.asset),
                "x-agent-address": str(WALLET.pubkey()),
                "x-agent-session": answer.headers["x-agent-session"],
            }
            for agent_id in (str(agent.asset), "1"):
                again = await service.http.get(path, headers=session | {"x-agent-id": agent_id})
                assert again.status_code == 200, again.text
    assert seen.headers.get("x-assay-agent") == str(agent.asset)


async def test_somebody_elses_key_is_turned_away(tmp_path: Path) -> None:
    async with open_solana(tmp_path) as service:
        with zoo() as animals:
            service.registry.agent(wallet=WALLET.pubkey(), uri=file_uri())
            path, _ = await wrapper(service, animals)
            answer = await signed_in(service, path, keypair("stranger"), "1")
            refused(answer, 401, "identity_mismatch")
            assert animals.requests("web") == []


async def test_an_agent_below_the_wrappers_score_is_denied(tmp_path: Path) -> None:
    async with open_solana(tmp_path) as service:
        with zoo() as animals:
            service.registry.agent(wallet=WALLET.pubkey(), uri=file_uri())
            path, _ = await wrapper(service, animals, minScore=99)
            refused(await signed_in(service, path, WALLET, "1"), 403, "trust_denied")
            assert animals.requests("web") == []


async def test_an_address_alone_names_no_agent_on_solana(tmp_path: Path) -> None:
    async with open_solana(tmp_path) as service:
        with zoo() as animals:
            service.registry.agent(wallet=WALLET.pubkey(), uri=file_uri())
            path, _ = await wrapper(service, animals)
            answer = await signed_in(service, path, WALLET, "")
            refused(answer, 401, "identity_required")
            assert animals.requests("web") == []
