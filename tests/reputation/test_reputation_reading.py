"""Who paid an agent, and who speaks of it, read from a real EVM through real nodes' faults."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from eth_abi.abi import encode
from eth_account import Account

from assay.chains.evm.rpc_endpoint import RpcLimits
from assay.chains.evm.rpc_network import JsonRpc
from assay.common.clock import SystemClock
from assay.common.numbers import MICRO
from assay.db.engine import Database
from assay.evaluation.model import Evidence, SignalUnavailable
from assay.evaluation.ports import SignalDependencies, Sources
from assay.evaluation.signals.registry_8004 import SIGNAL
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.probing.clients.dialers import StockDialers
from assay.registries.documents import GuardedDocuments
from assay.registries.families.evm import EvmReader
from assay.registries.model import OnchainAgent, Subject
from assay.registries.ports import ReaderDependencies
from assay.reputation.agent_facts import IndexedFacts
from assay.reputation.events import KINDS, Indexer
from assay.reputation.model import AgentFacts, ListedAsset, NotIndexed, PaymentChain
from assay.reputation.ports import EventCursor, Stream
from assay.reputation.store_events import SqlEventStore
from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.dollars import mint
from assay_demo.chain.registries import (
    Wallet,
    deploy,
    give_feedback,
    register,
    revoke_feedback,
    selector,
    set_agent_wallet,
    transfer,
)
from tests.probing.unit.test_probe_visiting import Scripted
from tests.support.chain import LocalChain
from tests.support.databases import migrated_sqlite
from tests.support.fakes.chain import NoIndex
from tests.support.node_proxy import NodeProxy, node_proxy

pytestmark = pytest.mark.slow

DOLLAR = "0x036cbd53842c5426634e7929541ec2318f3dcf7e"
MINTER = ACCOUNTS[0].key
OWNER, LATER = ACCOUNTS[2], ACCOUNTS[3]
PATIENT = RpcLimits(endpoint_s=20.0, total_s=40.0)
"""The local chain reads its logs slowly, and machines are busy."""


@pytest.fixture(scope="module")
def money() -> Iterator[LocalChain]:
    """A chain with registries and a dollar."""
    run = [sys.executable, "-m", "assay_demo.chain.node", "--dollar", DOLLAR]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    try:
        with Wallet(url) as wallet:
            yield LocalChain(url, wallet, deploy(wallet, ACCOUNTS[0].key))
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


class Later(SystemClock):
    """Sixty days ahead: money has matured."""

    def now(self) -> datetime:
        return super().now() + timedelta(days=60)


def pay(chain: LocalChain, key: str, to: str, cents: int) -> None:
    data = selector("transfer(address,uint256)")
    chain.wallet.send(key, DOLLAR, data + encode(["address", "uint256"], [to, cents * 10_000]))


@dataclass
class Shop:
    """One agent with a wallet of its own, and what reads it."""

    chain: LocalChain
    proxy: NodeProxy
    agent: OnchainAgent
    store: SqlEventStore
    rpc: JsonRpc
    reader: EvmReader

    @property
    def payments(self) -> dict[str, PaymentChain]:
        network = replace(self.agent.network, slug="eip155:31337")
        return {network.slug: PaymentChain(network, (ListedAsset(DOLLAR),))}

    def source(self) -> IndexedFacts:
        return IndexedFacts(self.rpc, self.store, self.payments, Later())

    def indexer(self) -> Indexer:
        return Indexer(self.rpc, self.store, self.payments, tail=0)

    async def facts(self) -> AgentFacts:
        return await self.source().facts(self.agent, ())

    async def index(self) -> None:
        """Everything up to the newest block."""
        networks = [self.agent.network, *(c.network for c in self.payments.values())]
        for network in networks:
            while await self.indexer().step(network):
                pass

    def needs(self, deadline_s: float) -> SignalDependencies:
        made = SignalDependencies(
            self.reader, Scripted(), StockDialers(), {}, SystemClock(), deadline_s
        )
        return replace(made, sources=Sources(reputation=self.source()))

    def buyer(self, cents: int, *, funder: str = MINTER) -> str:
        """Somebody new, with a coin for gas, who paid; the key."""
        made = Account.create()
        key = "0x" + made.key.hex().removeprefix("0x")
        endow(self.chain, made.address)
        if funder == MINTER:
            mint(self.chain.wallet, MINTER, DOLLAR, made.address, cents * 10_000)
        else:
            pay(self.chain, funder, made.address, cents)
        pay(self.chain, key, self.agent.wallet or "", cents)
        return key

    def say(self, key: str, rating: int) -> None:
        give_feedback(self.chain.wallet, self.chain.registries, key, self.agent.agent_id, rating)


def endow(chain: LocalChain, to: str) -> None:
    """Coin for gas, from an account that nobody else uses."""
    request, sender = chain.wallet.request, ACCOUNTS[9]
    made = {
        "chainId": 31337,
        "nonce": int(request("eth_getTransactionCount", sender.address, "latest"), 16),
        "gas": 21_000,
        "gasPrice": 2 * 10**9,
        "value": 10**17,
        "to": to,
    }
    signed = Account.sign_transaction(made, sender.key)
    request("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())


def address(key: str) -> str:
    return Account.from_key(key).address.lower()


@pytest.fixture
async def shop(money: LocalChain, tmp_path: Path) -> AsyncGenerator[Shop]:
    database = await Database.open(migrated_sqlite(tmp_path / "assay.db"))
    wallet, registries = money.wallet, money.registries
    agent_id = register(wallet, registries, OWNER.key, "")
    seller = Account.create()
    key = "0x" + seller.key.hex().removeprefix("0x")
    set_agent_wallet(wallet, registries, OWNER.key, agent_id, key, int(time.time()) + 200)
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    rpc = JsonRpc(SystemClock(), PATIENT)
    with node_proxy(money.url) as proxy:
        network = replace(money.network, rpc_urls=(proxy.url,))
        needs = ReaderDependencies(rpc, GuardedDocuments(http, None), NoIndex(), SystemClock())
        reader = EvmReader(needs)
        agent = await reader.fetch_agent(network, agent_id)
        yield Shop(money, proxy, agent, SqlEventStore(database, SystemClock()), rpc, reader)
    await rpc.aclose()
    await http.aclose()
    await database.close()
    for _ in range(5):
        await asyncio.sleep(0)  # connections that were given up close


async def test_payers_and_their_sources_are_read_from_the_chain(shop: Shop) -> None:
    one, two = shop.buyer(250), shop.buyer(100)
    source = shop.buyer(0)
    mint(shop.chain.wallet, MINTER, DOLLAR, address(source), 9 * MICRO)
    third, fourth = shop.buyer(300, funder=source), shop.buyer(300, funder=source)
    facts = await shop.facts()
    payers = {p.address: p for p in facts.payers}
    assert {a: p.net for a, p in payers.items()} == {
        address(one): 2_500_000,
        address(two): 1_000_000,
        address(third): 3_000_000,
        address(fourth): 3_000_000,
    }
    assert payers[address(third)].sources == payers[address(fourth)].sources == (address(source),)
    assert not payers[address(one)].sources
    assert not any(p.is_own or p.is_pending for p in payers.values())


async def test_the_owners_money_and_money_that_returns_is_no_purchase(shop: Shop) -> None:
    mint(shop.chain.wallet, MINTER, DOLLAR, OWNER.address, 5 * MICRO)
    wash = shop.buyer(200, funder=OWNER.key)
    plain = shop.buyer(200)
    mint(shop.chain.wallet, MINTER, DOLLAR, OWNER.address, 5 * MICRO)
    pay(shop.chain, OWNER.key, address(plain), 150)
    facts = await shop.facts()
    payers = {p.address: p for p in facts.payers}
    assert payers[address(wash)].is_own
    assert payers[address(plain)].returned in {0, 1_500_000}


async def test_the_index_shows_what_the_chain_showed(shop: Shop) -> None:
    keys = [shop.buyer(120) for _ in range(3)]
    for n, key in enumerate(keys):
        shop.say(key, 80 + n)
    revoke_feedback(shop.chain.wallet, shop.chain.registries, keys[0], shop.agent.agent_id, 1)
    live = await shop.facts()
    assert len(live.events) == 3
    assert live.events[address(keys[0]), 1].is_revoked
    assert live.events[address(keys[1]), 1].rating == 81.0
    await shop.index()
    indexed = await shop.facts()
    assert indexed == live
    assert await shop.source().known(shop.agent) == live


async def test_history_of_ownership_is_read(shop: Shop) -> None:
    wallet, registries = shop.chain.wallet, shop.chain.registries
    transfer(wallet, registries, OWNER.key, shop.agent.agent_id, LATER.address)
    facts = await shop.facts()
    assert {OWNER.address, LATER.address} <= facts.owners


async def test_an_evaluation_reads_two_ranges_beyond_the_index_and_no_more(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.buyer(100)
    monkeypatch.setattr("assay.reputation.agent_facts.RANGE", 3)
    with pytest.raises(NotIndexed, match="still to be read"):
        await shop.facts()
    await shop.index()
    monkeypatch.setattr("assay.reputation.agent_facts.RANGE", 10_000)
    shop.buyer(100)
    monkeypatch.setattr("assay.reputation.agent_facts.RANGE", 3)
    ranges: list[str] = []
    shop.proxy.before = ranges.append
    found = await shop.facts()
    assert len(found.payers) == 2
    logs = ranges.count("eth_getLogs")
    assert 0 < logs <= 2 * (2 + 3) + 2


async def test_a_block_that_is_taken_back_is_read_again(shop: Shop) -> None:
    key = shop.buyer(100)
    await shop.facts()
    await shop.index()
    slug = "eip155:31337"
    stream = Stream("payments", slug, shop.agent.wallet or "")
    cursor = (await shop.store.watch([stream], -1))[stream]
    forked = EventCursor(cursor.block, "0x" + "ee" * 32)
    assert await shop.store.advance(
        [stream],
        cursor,
        forked,
        await shop.indexer().read(shop.payments[slug].network, "payments", 0, 0, [stream]),
    )
    network = shop.payments[slug].network
    shop.buyer(100)
    await shop.indexer().step(network, ("payments",))
    back = (await shop.store.watch([stream], -1))[stream]
    assert back == EventCursor(-1, "", is_whole=True)
    assert not await shop.store.transfers(slug, [shop.agent.wallet or ""])
    await shop.index()
    assert address(key) in {p.address for p in (await shop.facts()).payers}


FAULTS = ("silent", "logs lost", "logs refused", "all lost")


@pytest.mark.parametrize("rating", [95, 5])
async def test_no_fault_of_a_node_lifts_a_score(shop: Shop, rating: int) -> None:
    """Praised and damned agents, with an index and without: at most what a sound node gives."""
    shop.say(shop.buyer(300), rating)
    whole = await _points(shop, "none")
    assert (whole > 0) == (rating > 50)
    if rating > 50:  # what nobody has read yet cannot speak against anybody
        for fault in FAULTS:
            assert await _points(shop, fault) <= whole + 1e-9, fault
    await shop.index()
    for fault in FAULTS:
        assert await _points(shop, fault) <= whole + 1e-9, fault


async def _points(shop: Shop, fault: str) -> float:
    """How far the signal moves a score under a fault; what is unavailable moves nothing."""
    proxy, agent, rpc = shop.proxy, shop.agent, JsonRpc(SystemClock(), PATIENT)
    if fault == "slow":
        proxy.before = lambda _: time.sleep(0.05)
    over = Event()
    if fault == "silent":
        proxy.instead = lambda asked: _refuse_logs(asked, over)
    if fault == "logs lost":
        proxy.lost = {"eth_getLogs"}
    if fault == "all lost":
        proxy.lost = {"eth_getLogs", "eth_call", "eth_getBlockByNumber", "eth_blockNumber"}
    if fault == "logs refused":
        proxy.instead = _refuse_logs
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    reader = EvmReader(
        ReaderDependencies(rpc, GuardedDocuments(http, None), NoIndex(), SystemClock())
    )
    fresh = replace(shop, rpc=rpc, reader=reader)
    subject = Subject(agent.network, agent.agent_id, agent.owner, agent)
    needs = fresh.needs(1.0 if fault == "silent" else 60.0)
    got = await SIGNAL.collect(subject, needs)
    over.set()
    if fault == "silent" and needs.sources.reputation is not None:
        with suppress(NotIndexed):  # what was begun goes on for others: its connections end with it
            await needs.sources.reputation.facts(agent, ())
    proxy.lost, proxy.before, proxy.instead = set(), lambda _: None, lambda _: None
    await rpc.aclose()
    await http.aclose()
    if isinstance(got, SignalUnavailable):
        assert "indexing" in got.reason or fault == "all lost"
        return 0.0
    assert isinstance(got, Evidence)
    weighed = SIGNAL.weigh(got, {})
    return weighed.confidence * (weighed.value - 50)


def _refuse_logs(asked: object, when: Event | None = None) -> object:
    """A refusal to read logs: at once, or when it does not matter any more."""
    rows = asked if isinstance(asked, list) else [asked]
    if not any(row["method"] == "eth_getLogs" for row in rows):
        return None
    if when is not None:
        when.wait(30)
    error = {"code": -32005, "message": "query returned more than 10 results"}
    answers = [{"jsonrpc": "2.0", "id": row["id"], "error": error} for row in rows]
    return answers if isinstance(asked, list) else answers[0]


def test_every_kind_of_event_is_indexed() -> None:
    assert set(KINDS) == {"feedback", "owners", "payments", "funding"}
