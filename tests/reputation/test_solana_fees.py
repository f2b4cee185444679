"""What writing to Solana may cost: a budget that all processes share, and a wallet that can pay."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from solders.keypair import Keypair

from assay.chains.networks import Networks
from assay.common.costs import SERVICE, Bearer, serve_for
from assay.common.tasks import Tasks
from assay.db.engine import Database
from assay.db.store_costs import DailyBudgets
from assay.registries.subjects import Subjects
from assay.reputation.solana_writer import SolanaWriter
from assay.reputation.write_back import (
    BALANCE_KNOWN_S,
    FeedbackPublisher,
    PublishResult,
    SolanaFees,
)
from tests.support.databases import migrated_sqlite
from tests.support.fakes.clock import FrozenClock
from tests.support.solana.clusters import keypair
from tests.support.solana.reading import Reading, reading

ONE, OTHER = Bearer("operator one"), Bearer("address 192.0.2.7")


@dataclass
class Office:
    ground: Reading
    wallet: Keypair
    databases: list[Database]
    clock: FrozenClock = field(default_factory=FrozenClock)

    def fees(self, per_day: int, process: int = 0) -> SolanaFees:
        writer = SolanaWriter(self.ground.rpc, self.wallet, 0)
        return SolanaFees(writer, DailyBudgets(self.databases[process]), per_day, self.clock)

    def balances_asked(self) -> int:
        return [method for method, _ in self.ground.node.calls()].count("getBalance")


@pytest.fixture
async def office(tmp_path: Path) -> AsyncGenerator[Office]:
    url = migrated_sqlite(tmp_path / "assay.db")
    databases = [await Database.open(url), await Database.open(url)]
    async with reading() as ground:
        wallet = keypair("writer")
        ground.node.fund(wallet.pubkey())
        yield Office(ground, wallet, databases)
    for database in databases:
        await database.close()


async def test_all_writes_of_all_processes_share_a_budget_of_the_day(office: Office) -> None:
    network = office.ground.network
    fees = office.fees(4), office.fees(4, process=1)
    taken = [await fees[n % 2].take(network, SERVICE) for n in range(6)]
    assert [one is None for one in taken] == [True] * 4 + [False] * 2
    assert "budget" in str(taken[-1])
    office.clock.move(86_400)
    assert await fees[0].take(network, SERVICE) is None


async def test_one_caller_causes_a_tenth_of_them_at_most(office: Office) -> None:
    network, fees = office.ground.network, office.fees(20)
    assert [await fees.take(network, ONE) is None for _ in range(4)] == [True, True, False, False]
    assert await fees.take(network, OTHER) is None
    pro = Bearer("operator pro", is_limited=False)
    assert [await fees.take(network, pro) for _ in range(5)] == [None] * 5


async def test_a_budget_of_none_writes_nothing(office: Office) -> None:
    assert await office.fees(0).take(office.ground.network, SERVICE)


async def test_a_wallet_that_cannot_pay_writes_nothing_and_uses_up_nothing(office: Office) -> None:
    network, poor = office.ground.network, keypair("poor")
    writer = SolanaWriter(office.ground.rpc, poor, 0)
    fees = SolanaFees(writer, DailyBudgets(office.databases[0]), 1, office.clock)
    assert "0 lamports" in str(await fees.take(network, ONE))
    office.ground.node.fund(poor.pubkey())
    office.clock.move(BALANCE_KNOWN_S + 1)
    assert await fees.take(network, ONE) is None


async def test_the_balance_is_asked_for_once_a_minute(office: Office) -> None:
    fees = office.fees(1000)
    for _ in range(20):
        await fees.take(office.ground.network, SERVICE)
    assert office.balances_asked() == 1


async def test_a_write_beyond_the_budget_sends_nothing_and_says_so(office: Office) -> None:
    notes: list[PublishResult] = []
    networks = Networks.built_in().with_solana(office.ground.network)
    writer = SolanaWriter(office.ground.rpc, office.wallet, 0)
    subjects = Subjects({"solana": office.ground.reader})
    back = FeedbackPublisher(subjects, networks, writer, notes.append, office.fees(10))
    tasks = Tasks(lambda *_: None)
    tasks.spawn("write back", back.run())
    asset = str(office.ground.registry.agent().asset)
    serve_for(lambda: ONE)
    for score in (10, 20, 30):
        back.offer("solana", asset, score)
    await back.close(10)
    await tasks.drain(0)
    assert [note.outcome.value for note in notes] == ["submitted", "unpaid", "unpaid"]
    assert back.counts["unpaid"] == 2
    assert len(office.ground.node.accepted) == 1
