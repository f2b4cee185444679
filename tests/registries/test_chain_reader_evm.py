"""The reader of EVM chains against real registries on a real EVM, through the real JSON-RPC."""

import base64
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from eth_abi.abi import encode
from eth_account import Account

from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.model import ChainUnavailable, Network
from assay.common.clock import SystemClock
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.registries.documents import GuardedDocuments
from assay.registries.families.evm import EvmReader
from assay.registries.model import AgentNotFound
from assay.registries.ports import ChainReader, ReaderDependencies
from assay.registries.registration import TYPE
from assay.registries.subjects import WalletResolver
from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.node import PAST
from assay_demo.chain.registries import (
    give_feedback,
    register,
    revoke_feedback,
    set_agent_wallet,
    transfer,
)
from tests.support.chain import LocalChain
from tests.support.fakes.chain import NoIndex
from tests.support.fakes.clock import FrozenClock

DIGEST = bytes(range(32))


@dataclass
class Reading:
    """A fresh reader, whose memory is only as old as the test makes it."""

    chain: LocalChain
    reader: ChainReader
    clock: FrozenClock

    @property
    def network(self) -> Network:
        return self.chain.network

    def register(self, owner: int, uri: str = "") -> str:
        return register(self.chain.wallet, self.chain.registries, ACCOUNTS[owner].key, uri)


@pytest.fixture
async def reading(chain: LocalChain) -> AsyncGenerator[Reading]:
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    rpc, clock = JsonRpc(SystemClock()), FrozenClock()
    needs = ReaderDependencies(rpc, GuardedDocuments(http, None), NoIndex(), clock)
    yield Reading(chain, EvmReader(needs), clock)
    await rpc.aclose()
    await http.aclose()


async def test_a_registered_agent_is_read_with_its_file(reading: Reading) -> None:
    file = {"type": TYPE, "name": "Steady", "services": [{"name": "web", "endpoint": "http://a/"}]}
    packed = base64.b64encode(json.dumps(file).encode()).decode()
    uri = f"data:application/json;base64,{packed}"
    agent_id = reading.register(1, uri)
    agent = await reading.reader.fetch_agent(reading.network, agent_id)
    assert agent.agent_id == agent_id
    assert agent.owner == ACCOUNTS[1].address
    assert agent.wallet == ACCOUNTS[1].address
    assert agent.token_uri == uri
    assert agent.registration is not None
    assert agent.registration.raw == file


@pytest.mark.parametrize("agent_id", ["999999", str(2**256 - 1)])
async def test_an_unregistered_id_is_not_found(reading: Reading, agent_id: str) -> None:
    with pytest.raises(AgentNotFound):
        await reading.reader.fetch_agent(reading.network, agent_id)
    assert await reading.reader.fetch_feedback(reading.network, agent_id) == ()


async def test_a_transfer_clears_the_wallet(reading: Reading) -> None:
    agent_id = reading.register(2)
    wallet, registries = reading.chain.wallet, reading.chain.registries
    transfer(wallet, registries, ACCOUNTS[2].key, agent_id, ACCOUNTS[3].address)
    agent = await reading.reader.fetch_agent(reading.network, agent_id)
    assert (agent.owner, agent.wallet) == (ACCOUNTS[3].address, None)


async def test_feedback_comes_back_exactly_and_without_what_was_revoked(reading: Reading) -> None:
    agent_id = reading.register(4)
    wallet, registries = reading.chain.wallet, reading.chain.registries
    given = [
        (20, 87, 0, "starred", "speed"),
        (21, 9977, 2, "uptime", "\N{SNOWMAN}"),
        (20, -(10**38), 18, "", ""),
        (22, 10**38, 0, "x" * 64, ""),
        (21, 1, 0, "starred", "revoked"),
    ]
    for client, *entry in given:
        give_feedback(wallet, registries, ACCOUNTS[client].key, agent_id, *entry)  # type: ignore[arg-type]
    revoke_feedback(wallet, registries, ACCOUNTS[21].key, agent_id, 2)
    found = await reading.reader.fetch_feedback(reading.network, agent_id)
    a, b, c = (ACCOUNTS[n].address for n in (20, 21, 22))
    assert [(f.client, f.index, f.value, f.tag1, f.tag2) for f in found] == [
        (a, 1, Decimal(87), "starred", "speed"),
        (a, 2, Decimal(-(10**20)), "", ""),
        (b, 1, Decimal("99.77"), "uptime", "\N{SNOWMAN}"),
        (c, 1, Decimal(10**38), "x" * 64, ""),
    ]


async def test_wallets_resolve_as_owner_and_as_agent_wallet(reading: Reading) -> None:
    wallet, registries = reading.chain.wallet, reading.chain.registries
    owned, other = reading.register(5), reading.register(6)
    now = int(wallet.request("eth_getBlockByNumber", "latest", False)["timestamp"], 16)  # noqa: FBT003
    deadline = max(now, int(time.time())) + 120
    set_agent_wallet(wallet, registries, ACCOUNTS[6].key, other, ACCOUNTS[7].key, deadline)
    resolver = WalletResolver({"evm": reading.reader}, reading.clock)
    by_owner = await resolver.resolve(reading.network, ACCOUNTS[5].address)
    by_wallet = await resolver.resolve(reading.network, ACCOUNTS[7].address)
    assert (by_owner.agent_id, by_owner.source) == (owned, "owner")
    assert (by_wallet.agent_id, by_wallet.source) == (other, "agentWallet")
    assert by_wallet.chain_id == 31337
    with pytest.raises(AgentNotFound):
        await resolver.resolve(reading.network, "0x" + "de" * 20)


async def test_an_agent_registered_after_the_first_reading_is_found(reading: Reading) -> None:
    someone = ACCOUNTS[8].address
    assert await reading.reader.fetch_agents_of(reading.network, someone) == ()
    agent_id = reading.register(8)
    reading.clock.move(2)
    (match,) = await reading.reader.fetch_agents_of(reading.network, someone)
    assert (match.agent_id, match.source) == (agent_id, "owner")


async def test_addresses_that_hold_no_registries_make_a_chain_unavailable(
    reading: Reading,
) -> None:
    registries = reading.chain.registries
    for wrong in (
        replace(reading.network, slug="a", identity_registry="0x" + "12" * 20),
        replace(reading.network, slug="b", reputation_registry="0x" + "12" * 20),
        replace(
            reading.network,
            slug="c",
            identity_registry=registries.reputation,
            reputation_registry=registries.identity,
        ),
    ):
        with pytest.raises(ChainUnavailable, match="no ERC-8004 registries"):
            await reading.reader.fetch_agent(wrong, "0")


async def test_a_contract_wallet_accepts_its_owners_signatures_alone(reading: Reading) -> None:
    owner, stranger = ACCOUNTS[9], ACCOUNTS[10]
    wallet = reading.chain.wallet
    contract = wallet.deploy(owner.key, "ContractWallet", encode(["address"], [owner.address]))
    signed = Account.unsafe_sign_hash(DIGEST, owner.key).signature
    forged = Account.unsafe_sign_hash(DIGEST, stranger.key).signature
    accepts, network = reading.reader.accepts_signature, reading.network
    assert await accepts(network, contract, DIGEST, bytes(signed)) is True
    assert await accepts(network, contract, bytes(32), bytes(signed)) is False
    assert await accepts(network, contract, DIGEST, bytes(forged)) is False
    assert await accepts(network, contract, DIGEST, b"") is False
    assert await accepts(network, contract, DIGEST, bytes(4096)) is False


async def test_an_address_without_a_wallet_contract_accepts_nothing(reading: Reading) -> None:
    signed = bytes(Account.unsafe_sign_hash(DIGEST, ACCOUNTS[9].key).signature)
    for address in (
        ACCOUNTS[9].address,
        "0x" + "00" * 19 + "04",
        reading.network.identity_registry,
    ):
        assert not await reading.reader.accepts_signature(reading.network, address, DIGEST, signed)


async def test_an_account_is_known_by_what_it_sent_and_holds(reading: Reading) -> None:
    person = await reading.reader.fetch_account(reading.network, ACCOUNTS[22].address)
    assert (person.transactions or 0) >= PAST
    assert person.is_contract is False
    assert (person.balance or 0) > 10**20
    contract = await reading.reader.fetch_account(
        reading.network, reading.chain.registries.identity
    )
    assert contract.is_contract is True


async def test_a_dead_chain_tells_nothing_of_an_account(reading: Reading) -> None:
    dead = replace(reading.network, slug="dead", rpc_urls=("http://127.0.0.1:9",))
    with pytest.raises(ChainUnavailable):
        await reading.reader.fetch_account(dead, ACCOUNTS[21].address)
