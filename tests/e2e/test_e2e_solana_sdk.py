"""The registry's own SDK is content with the loopback node and indexer, and reads what we wrote."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.support.solana import golden
from tests.support.solana.clusters import DEVNET, MAINNET, Cluster, keypair
from tests.support.solana.endpoints import KINDS, zoo
from tests.support.solana.feedback import Args, leaf, longer
from tests.support.solana.indexer import indexer
from tests.support.solana.layouts import Chain
from tests.support.solana.liveness_cases import replayed
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import Node, node
from tests.support.solana.sdk import (
    sdk_give_feedback,
    sdk_liveness,
    sdk_read,
    sdk_send,
    sdk_transactions,
)
from tests.support.solana.transactions import give_feedback, limit

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
WALLET = keypair("wallet")
STARRED = Args(value=87, score=87, tag1="starred")
MANY = [
    STARRED,
    replace(STARRED, value=0, score=0),
    Args(value=-1500, decimals=2, score=10, tag1="tradingYield", tag2="month"),
    Args(value=2**127 - 1, decimals=18, score=50, tag1="revenues"),
    Args(value=-(2**127), tag1="anything"),
    Args(
        value=1,
        score=1,
        tag1="質量",
        tag2="émoji🎉",
        endpoint="https://例え.jp/api",
        uri="ipfs://x",
    ),
    Args(value=91, score=91, file_hash=bytes(range(32)), endpoint="e" * 250, uri="u" * 250),
]


@pytest.fixture(params=[MAINNET, DEVNET], ids=lambda one: one.name)
def rpc(request: pytest.FixtureRequest) -> Iterator[Node]:
    cluster: Cluster = request.param
    with node(Registry(cluster)) as made:
        made.fund(WALLET.pubkey())
        yield made


def test_the_sdk_rates_an_agent_and_finds_its_rating_in_the_chain(rpc: Node) -> None:
    registry = rpc.runtime.registry
    agent = registry.agent(feedback_count=42, uri="https://agent.example/agent.json")
    told = sdk_send(rpc, agent, WALLET, STARRED)
    [sent] = rpc.accepted
    assert told["before"]["count"] == "42"
    assert (told["sent"][0]["success"], told["sent"][0]["feedbackIndex"]) == (True, "42")
    assert told["sent"][0]["signature"] == str(sent.signature)
    new = leaf(agent.asset, WALLET.pubkey(), 42, STARRED.seal(), sent.slot)
    digest = longer(Chain(count=42), new).digest
    assert (told["after"]["count"], told["after"]["digest"]) == ("43", digest.hex())


def test_the_sdk_hears_why_an_owner_may_not_rate_itself(rpc: Node) -> None:
    agent = rpc.runtime.registry.agent(owner=WALLET.pubkey())
    [told] = sdk_send(rpc, agent, WALLET, STARRED)["sent"]
    assert not told["success"]
    assert "custom program error: 0x300c" in told["error"]
    assert agent.account.feedback.count == 0


def test_the_sdks_transactions_are_the_grounds_own(rpc: Node) -> None:
    registry = rpc.runtime.registry
    plain = registry.agent()
    scored = registry.agent(atom=golden.atom("five-clients"))
    for agent in (plain, scored):
        made = sdk_transactions(rpc, agent, WALLET, MANY)
        wallet = WALLET.pubkey()
        assert made == [[limit(), give_feedback(agent, wallet, args)] for args in MANY]
        assert sdk_give_feedback(rpc, agent, WALLET, STARRED) == made[0][1]


@pytest.mark.parametrize("name", ["initialized", "five-clients", "forty-clients", "tier-gold"])
def test_the_sdk_reads_the_same_from_the_node_and_the_indexer(rpc: Node, name: str) -> None:
    registry = rpc.runtime.registry
    wallet = keypair("its wallet").pubkey()
    agent = registry.agent(wallet=wallet, atom=golden.atom(name), number=77, name="Research")
    for n in range(3):
        registry.feedback(
            agent, f"c{n}", score=80 + n, tag1="starred", created_at=1_800_000_000 + n
        )
    with indexer(registry) as index:
        told = sdk_read(rpc, index, agent)
    decoded = golden.account("AtomStats", name).decoded
    for field in ("trustTier", "qualityScore", "confidence", "riskScore", "uniqueCallers"):
        assert told["summary"][field] == decoded[field], field
    assert told["account"]["count"] == "3"
    for found in (told["byId"], told["byWallet"]):
        assert (found["asset"], found["agent_id"]) == (str(agent.asset), "77")
        assert (found["owner"], found["feedback_count"]) == (str(agent.account.owner), 3)
        assert found["quality_score"] == decoded["qualityScore"]
    assert [one["score"] for one in told["feedbacks"]] == [82, 81, 80]


def test_the_sdk_finds_alive_what_the_zoo_says_is_alive() -> None:
    registry = Registry(MAINNET)
    with node(registry) as rpc, zoo() as made:
        made.url = made.url.replace("127.0.0.1", "zoo.example")
        agent = registry.agent(uri=made.registration(*KINDS))
        told = sdk_liveness(rpc, agent)
    found = {one["endpoint"].rpartition("/")[2]: one["ok"] for one in told["results"]}
    assert found == {kind: alive for kind, (_, alive) in KINDS.items()}
    assert told["status"] == "partially"


REPLAYED = [
    "all-live", "partially", "timeout", "auth-statuses-are-alive", "head-405-then-get", "mcp-sse",
    "mcp-session-required-400-head-405-get-405", "a2a-well-known-agent-json", "mixed-with-skipped",
]  # fmt: skip


@pytest.mark.parametrize("name", REPLAYED)
def test_the_replayed_cases_are_the_ones_the_sdk_reported(name: str) -> None:
    registry = Registry(MAINNET)
    with node(registry) as rpc, replayed(name, host="case.example") as case:
        assert case.agent_uri is not None
        told = sdk_liveness(rpc, registry.agent(uri=case.agent_uri))
        asked = sorted((one["method"], urlsplit(str(one["url"])).path) for one in case.probes)
        assert case.asked() == asked
    assert case.report is not None
    for member in ("status", "okCount", "totalPinged", "skippedCount"):
        assert told[member] == case.report[member]
    for one, golden_one in zip(told["results"], case.report["results"], strict=True):
        assert {n: one[n] for n in ("type", "endpoint", "ok")} == {
            n: golden_one[n] for n in ("type", "endpoint", "ok")
        }
