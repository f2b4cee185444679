"""What the service writes to the registry is what the registry's own SDK would have written."""

import asyncio
from pathlib import Path

import pytest

from assay.registries.solana_accounts import SolanaFeedback, give_feedback
from tests.support.solana import golden
from tests.support.solana.clusters import DEVNET, MAINNET, Cluster, keypair
from tests.support.solana.feedback import Args
from tests.support.solana.live_service import open_solana
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import node
from tests.support.solana.sdk import sdk_read, sdk_transactions

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
WALLET = keypair("writer")
SCORES = (0, 1, 35, 64, 65, 87, 99, 100)


@pytest.mark.parametrize("cluster", [MAINNET, DEVNET], ids=lambda one: one.name)
def test_the_instruction_is_the_sdks_for_every_score(cluster: Cluster) -> None:
    with node(Registry(cluster)) as rpc:
        registry = rpc.runtime.registry
        for agent in (registry.agent(), registry.agent(atom=golden.atom("five-clients"))):
            many = [Args(value=score, score=score, tag1="starred") for score in SCORES]
            theirs = sdk_transactions(rpc, agent, WALLET, many)
            client, asset = str(WALLET.pubkey()), str(agent.asset)
            for score, (_, sdks) in zip(SCORES, theirs, strict=True):
                given = SolanaFeedback(value=score, score=score)
                collection = str(registry.collection)
                ours = give_feedback(cluster.name, client, asset, collection, given)
                assert ours.data == bytes(sdks.data)
                assert ours.program == str(sdks.program_id)
                assert [(m.key, m.is_signer, m.is_writable) for m in ours.accounts] == [
                    (str(m.pubkey), m.is_signer, m.is_writable) for m in sdks.accounts
                ]


async def test_the_sdk_reads_the_score_the_service_wrote(tmp_path: Path) -> None:
    async with open_solana(tmp_path, solana_keypair=WALLET.to_json()) as service:
        service.node.fund(WALLET.pubkey())
        agent = service.registry.agent(atom=golden.atom("five-clients"))
        score = (await service.post("/operator/trigger-sandbox/1")).json()["score"]
        assert service.app.write_back is not None
        async with asyncio.timeout(10):
            while not service.app.write_back.counts["submitted"]:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
        told = await asyncio.to_thread(sdk_read, service.node, service.index, agent)
    (entry,) = told["feedbacks"]
    assert (entry["score"], entry["tag1"]) == (int(score + 0.5), "starred")
    assert entry["client"] == str(WALLET.pubkey())
    assert told["account"]["count"] == "1"
