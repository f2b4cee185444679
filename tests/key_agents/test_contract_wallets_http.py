"""A contract proves its address on the chains where it accepts, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from assay.identity.challenge import WRONG_SIGNATURES_MAX
from tests.support.live_service import (
    NETWORK,
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

OWNER = address(OWNER_KEY)
"""The agents' owner: here a contract, whose signatures no key of ours makes."""

CHAINS = {
    slug: {
        "chain_id": number,
        "identity_registry": NETWORK.identity_registry,
        "reputation_registry": NETWORK.reputation_registry,
        "rpc_urls": ["http://127.0.0.1:9"],
    }
    for slug, number in (("local", NETWORK.chain_id), ("second", 4242), ("third", 4343))
}


async def signed_by_contract(service: TestService) -> dict[str, str]:
    """A challenge of the owner's address, with a signature its key has not made."""
    text = (await service.http.post(f"/operator/key/{OWNER}/challenge")).json()["challenge"]
    signature = (await service.challenge(STRANGER_KEY))["signature"]
    return {"agentAddress": OWNER, "challenge": text, "signature": signature}


async def gated(service: TestService, op: dict[str, str], chain: str) -> Any:
    """The gate for agent 7 of a chain, by the header flow."""
    body = await signed_by_contract(service)
    headers = {
        "x-agent-address": OWNER,
        "x-agent-challenge": body["challenge"],
        "x-agent-signature": body["signature"],
        "x-chain": chain,
    }
    return await service.gate(op | headers)


def opened(folder: Path) -> Any:
    return start_test_service(folder, chains=CHAINS, contract_wallet_chains=("local", "second"))


@pytest.mark.parametrize("accepts", [("local",), ("second",), ("local", "second")])
async def test_a_contract_speaks_only_for_agents_of_chains_it_accepts_on(
    tmp_path: Path, accepts: tuple[str, ...]
) -> None:
    """Whoever deploys at the same address of another chain is somebody else."""
    async with opened(tmp_path) as service:
        op = await service.operator()
        service.chain.contracts[OWNER] = frozenset(accepts)
        for chain in ("local", "second", "third"):
            first = await gated(service, op, chain)
            session = {"x-agent-address": OWNER, "x-chain": chain}
            session["x-agent-session"] = first.headers["x-agent-session"]
            for answer in (
                first,
                await service.gate(op | session),
                await service.gate(op | session),
            ):
                if chain in accepts:
                    assert answer.status_code == 200, answer.text
                else:
                    refused(answer, 401, "identity_mismatch")


async def test_a_key_agent_is_its_contract_on_the_first_chain(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        op = await service.operator()
        service.chain.contracts[OWNER] = frozenset({"second"})
        answer = await service.http.post(
            "/operator/key/verify", json=await signed_by_contract(service)
        )
        refused(answer, 401, "signature_invalid")
        profile = await service.http.get(f"/operator/key/{OWNER}", headers=op)
        assert profile.json()["verified"] is False
        service.chain.contracts[OWNER] = frozenset({"local"})
        answer = await service.http.post(
            "/operator/key/verify", json=await signed_by_contract(service)
        )
        assert answer.json()["verified"] is True


async def test_a_contract_of_another_chain_enters_no_course_and_reads_no_attestation(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as service:
        op = await service.operator()
        service.chain.contracts[OWNER] = frozenset({"second"})
        token = (await gated(service, op, "second")).headers["x-agent-session"]
        session = {"x-agent-address": OWNER, "x-agent-session": token}
        for method, path in (
            ("POST", "/operator/sandbox/course"),
            ("GET", f"/operator/key/{OWNER}/attestation"),
        ):
            answer = await service.http.request(method, path, headers=session)
            refused(answer, 401, "identity_mismatch")


async def test_a_key_speaks_on_every_chain(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        op, session = await service.operator(), await service.session()
        for chain in ("local", "second", "third"):
            assert (await service.gate(op | session | {"x-chain": chain})).status_code == 200


async def test_one_challenge_cannot_be_tried_without_end(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        body = await signed_by_contract(service)
        for _ in range(WRONG_SIGNATURES_MAX):
            answer = await service.http.post("/operator/key/verify", json=body)
            refused(answer, 401, "signature_invalid")
        asked = service.chain.contract_calls
        for _ in range(3):
            answer = await service.http.post("/operator/key/verify", json=body)
            refused(answer, 401, "challenge_required")
        assert service.chain.contract_calls == asked
        assert asked == WRONG_SIGNATURES_MAX * 2  # a call on each of two chains


async def test_a_spent_challenge_calls_no_contract(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        service.chain.contracts[OWNER] = frozenset({"local"})
        body = await signed_by_contract(service)
        assert (await service.http.post("/operator/key/verify", json=body)).status_code == 200
        asked = service.chain.contract_calls
        answer = await service.http.post("/operator/key/verify", json=body)
        refused(answer, 401, "challenge_required")
        assert service.chain.contract_calls == asked
