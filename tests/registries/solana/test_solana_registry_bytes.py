"""The grounds' accounts and digests are, byte for byte, those of the registry's own SDK."""

from typing import Any

import pytest
from solders.pubkey import Pubkey

from tests.support.solana import golden, layouts
from tests.support.solana.clusters import CORE, DEVNET, MAINNET, Cluster, keypair
from tests.support.solana.feedback import Args, leaf, longer
from tests.support.solana.golden import GoldenAccount
from tests.support.solana.layouts import AgentAccount, AtomStats, Chain, WrongAccount
from tests.support.solana.registry import Registry

CLUSTERS = {"mainnet-beta": MAINNET, "devnet": DEVNET}


def of(kind: str) -> list[Any]:
    found = [one for one in golden.accounts() if one.kind == kind]
    return [pytest.param(one, id=one.title) for one in found]


def key(text: str) -> Pubkey:
    return Pubkey.from_string(text)


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=lambda one: one.name)
def test_derived_addresses_are_the_golden_ones(cluster: Cluster) -> None:
    told = golden.read("give-feedback")["pdas"][cluster.name]
    assert str(cluster.registry) == told["agentRegistry"]
    assert str(cluster.atom) == told["atomEngine"]
    assert str(CORE) == told["mplCore"]
    assert str(cluster.root_config()) == told["rootConfig"]["address"]
    assert str(cluster.atom_config()[0]) == told["atomConfig"]["address"]
    assert str(cluster.atom_authority()) == told["atomCpiAuthority"]["address"]


@pytest.mark.parametrize("one", of("AgentAccount"))
def test_agent_accounts_are_built_byte_for_byte(one: GoldenAccount) -> None:
    told, read = one.decoded, AgentAccount.decoded(one.data)
    assert read.encoded() == one.data
    assert str(read.asset) == told["asset"]
    assert str(read.owner) == told["owner"]
    assert (None if read.wallet is None else str(read.wallet)) == told["agentWallet"]
    assert str(read.feedback.count) == told["feedbackCount"]
    assert (read.uri, read.name, read.col) == (told["agentUri"], told["nftName"], told["col"])
    assert CLUSTERS[one.cluster].agent(read.asset) == (key(one.address), read.bump)


def test_an_agent_built_from_its_decoded_values_has_the_golden_bytes() -> None:
    for one in golden.accounts():
        if one.kind != "AgentAccount" or one.name == "stale-tail":
            continue
        told, registry = one.decoded, Registry(CLUSTERS[one.cluster])
        chains: dict[str, Any] = {
            name: Chain(bytes.fromhex(told[f"{word}Digest"]), int(told[f"{word}Count"]))
            for name, word in
            {"feedback": "feedback", "responses": "response", "revocations": "revoke"}.items()
        }  # fmt: skip
        made = registry.agent(
            asset=key(told["asset"]), owner=key(told["owner"]), creator=key(told["creator"]),
            collection=key(told["collection"]), atom_enabled=told["atomEnabled"],
            wallet=told["agentWallet"] and key(told["agentWallet"]),
            parent=told["parentAsset"] and key(told["parentAsset"]),
            parent_locked=told["parentLocked"], col_locked=told["colLocked"],
            uri=told["agentUri"], name=told["nftName"], col=told["col"], **chains,
        )  # fmt: skip
        assert bytes(registry.accounts[made.address].data) == one.data, one.title
        assert str(made.address) == one.address


@pytest.mark.parametrize("one", of("AtomStats"))
def test_atom_stats_are_built_byte_for_byte(one: GoldenAccount) -> None:
    told, read = one.decoded, AtomStats.decoded(one.data)
    assert read.encoded() == one.data
    assert (str(read.asset), read.bump) == (told["asset"], told["bump"])
    numbers = read.numbers
    assert str(numbers.feedback_count) == told["feedbackCount"]
    assert (numbers.ema_fast, numbers.ema_slow) == (told["emaScoreFast"], told["emaScoreSlow"])
    assert (numbers.quality_score, numbers.confidence) == (told["qualityScore"], told["confidence"])
    assert (numbers.risk_score, numbers.trust_tier) == (told["riskScore"], told["trustTier"])
    assert (numbers.diversity_ratio, numbers.loyalty) == (
        told["diversityRatio"],
        told["loyaltyScore"],
    )
    assert (str(numbers.hll_salt), numbers.freeze_epochs) == (told["hllSalt"], told["freezeEpochs"])
    assert CLUSTERS[one.cluster].atom_stats(read.asset) == (key(one.address), read.bump)


@pytest.mark.parametrize("one", [*of("RootConfig"), *of("RegistryConfig"), *of("AtomConfig")])
def test_configurations_are_built_byte_for_byte(one: GoldenAccount) -> None:
    told, cluster = one.decoded, CLUSTERS[one.cluster]
    authority, bump = key(told["authority"]), told["bump"]
    if one.kind == "AtomConfig":
        made = layouts.atom_config(authority, cluster.registry, bump)
        address = cluster.atom_config()[0]
    elif one.kind == "RootConfig":
        made = layouts.root_config(key(told["baseCollection"]), authority, bump)
        address = cluster.root_config()
    else:
        collection = key(told["collection"])
        made = layouts.registry_config(collection, authority, bump)
        address = cluster.registry_config(collection)
    assert (made, str(address)) == (one.data, one.address)


@pytest.mark.parametrize("one", of("MetadataEntryPda"))
def test_metadata_entries_are_built_byte_for_byte(one: GoldenAccount) -> None:
    told = one.decoded
    address, bump = CLUSTERS[one.cluster].metadata(key(told["asset"]), told["key"])
    made = layouts.metadata_entry(key(told["asset"]), told["key"], told["value"].encode(), bump)
    assert (made, str(address)) == (one.data, one.address)


@pytest.mark.parametrize(("kind", "name", "data"), golden.refused())
def test_what_the_sdk_refuses_is_no_account_here(kind: str, name: str, data: bytes) -> None:
    del name
    with pytest.raises((WrongAccount, UnicodeDecodeError)):
        (AgentAccount if kind == "AgentAccount" else AtomStats).decoded(data)


@pytest.mark.parametrize("vector", golden.vectors(), ids=lambda one: one["name"])
def test_seal_leaf_and_digest_are_the_programs_own(vector: dict[str, Any]) -> None:
    told, effect = vector["encodedArgs"], vector["onChainEffect"]
    args = Args(
        value=int(told["value"]), decimals=told["valueDecimals"], score=told["score"],
        file_hash=told["feedbackFileHash"] and bytes.fromhex(told["feedbackFileHash"]),
        tag1=told["tag1"], tag2=told["tag2"], endpoint=told["endpoint"], uri=told["feedbackUri"],
    )  # fmt: skip
    assert args.encoded().hex() == vector["instruction"]["dataHex"]
    assert Args.decoded(args.encoded()) == args
    assert args.seal().hex() == effect["sealHash"]
    count, slot = int(effect["previousFeedbackCount"]), int(effect["slot"])
    new = leaf(key(vector["asset"]), key(vector["client"]), count, args.seal(), slot)
    assert new.hex() == effect["leaf"]
    after = longer(Chain(bytes.fromhex(effect["previousFeedbackDigest"]), count), new)
    assert after.digest.hex() == effect["newFeedbackDigest"]
    assert str(after.count) == effect["newFeedbackCount"]


def test_every_rating_of_a_fixture_lengthens_the_chain_on_chain() -> None:
    registry = Registry()
    agent = registry.agent(feedback_count=42)
    said = registry.feedback(agent, "somebody", score=80, tag1="starred")
    assert (said.index, agent.account.feedback.count) == (42, 43)
    assert said.client == keypair("client:somebody").pubkey()
    new = leaf(agent.asset, said.client, 42, said.args.seal(), said.slot)
    assert agent.account.feedback == longer(Chain(layouts.NOBODY, 42), new)
