"""Nothing is asked for ever: what finishing payments asks of a chain, counted, on every database.

The ledger and the engine are real, the clock is moved by hand, the nodes count.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from assay.app import background
from assay.app.background import RECONCILE_EVERY_S
from assay.chains.evm.signing import TransactionSigner
from assay.chains.model import Network
from assay.db.engine import Database
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import LATE_S, MISSED_MOST_S, SettlementAttempt
from assay.payments.ports import ProtocolDependencies
from assay.payments.settlement import OF_PAYER, PaymentPending, Settlement
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.protocol import X402
from tests.payments.unit.test_authorization_outcomes import NOW_S, ONE, SELLER, TWO, network
from tests.payments.unit.test_authorization_outcomes import payment as signed
from tests.support.fakes.calls import counted_ledger
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.gas import ample_gas
from tests.support.fakes.payment_nodes import BLOCK_S, Node, Nodes
from tests.support.fakes.witness import lone_witness

pytestmark = pytest.mark.slow

FEW = 200
MANY = pytest.param(1000, marks=pytest.mark.slow)
HOUR_S = 3600
PROMPT_S = 15
OTHER_SELLER = "0x" + "dd" * 20


@dataclass
class Stage:
    """One process: a ledger, an engine and its nodes."""

    database: Database
    clock: FrozenClock = field(default_factory=FrozenClock)
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    has_key: bool = False

    def __post_init__(self) -> None:
        self.ledger = counted_ledger(self.database, self.clock)
        self.settlement = self.started()

    def started(self) -> Settlement:
        """As after a start: nothing is remembered but what the database has."""
        chains = {"eip155:84532": network(*self.nodes)}
        signer = TransactionSigner("0x" + "11" * 32) if self.has_key else None
        rpc: Any = Nodes(self.nodes)
        prices = signer and ample_gas(rpc, chains, signer.address, self.clock)
        engine = X402Engine(rpc, chains, signer, prices, self.clock, 20.0)
        nothing: Any = None
        needs = ProtocolDependencies(Eip3009Signers(), engine, nothing, self.clock)
        lease = timedelta(seconds=45)
        protocols = {"x402": X402()}
        witness = lone_witness(protocols, needs, self.clock)
        return Settlement(protocols, needs, self.ledger, self.clock, lease, witness)

    def move(self, seconds: float) -> None:
        self.clock.move(seconds)
        for one in self.nodes.values():
            one.head = (int(self.clock.now().timestamp()) - one.born_s) // BLOCK_S

    async def add(self, *entries: LedgerEntry) -> None:
        """As settlements that were begun and never finished."""

        async def begun(entry: LedgerEntry) -> None:
            fresh = replace(
                entry,
                state=PaymentState.CLAIMED,
                digest=f"digest {entry.id}",
                lease_until=self.clock.now(),
                updated_at=self.clock.now(),
                expires_at=entry.created_at + timedelta(seconds=95),
            )
            claim = await self.ledger.claim(fresh, self.clock.now())
            assert claim.is_ours
            assert await self.ledger.move(claim.entry, PaymentState.SETTLING, attempt=entry.attempt)

        for start in range(0, len(entries), 20):
            async with asyncio.TaskGroup() as group:
                for entry in entries[start : start + 20]:
                    group.create_task(begun(entry))

    async def states(self) -> dict[str, str]:
        rows = await self.ledger.list(None, [], 10_000)
        return {row.id: row.state.value for row in rows}

    async def passes(self, seconds: float, every_s: float = RECONCILE_EVERY_S) -> list[LedgerEntry]:
        """The background task's passes over so much time; what has ended, in order."""
        ended: list[LedgerEntry] = []
        for _ in range(int(seconds // every_s)):
            self.move(every_s)
            ended += await self.settlement.reconcile(is_due_only=True)
        return ended

    @property
    def asked(self) -> int:
        return sum(len(one.asked) for one in self.nodes.values())

    @property
    def tried(self) -> int:
        return sum(one.tried for one in self.nodes.values())


def node() -> Node:
    made = Node(0)
    made.born_s = NOW_S - made.head * BLOCK_S
    return made


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database, nodes={ONE: node()})


def payment(number: int, *, valid_s: int = 90, payer: str | None = None) -> LedgerEntry:
    """Number's own payer's, unless one is named; sent, with nothing of ours to send again."""
    made = signed(number, valid_s=valid_s, payer=payer or f"0x{number:040x}")
    return replace(made, attempt=SettlementAttempt(f"0x{number:064x}"))


async def stuck(stage: Stage, how: str, entries: Sequence[LedgerEntry]) -> None:
    """Used for somebody else, cancelled, or at their end."""
    for entry in entries:
        for one in stage.nodes.values():
            if how != "expired":
                one.use(entry, None if how == "cancelled" else OTHER_SELLER)
    await stage.add(*entries)


@pytest.mark.parametrize("endpoints", [1, 2])
@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize("how", ["cancelled", "used elsewhere", "expired"])
async def test_a_thousand_that_cannot_pay_cost_five_answers_each_and_an_honest_one_is_prompt(
    database: Database, how: str, endpoints: int, count: int
) -> None:
    """Two hundred of them by default, a thousand in the slow suite."""
    urls = (ONE, TWO)[:endpoints]
    stage = Stage(database, nodes={url: node() for url in urls})
    await stuck(stage, how, [payment(n) for n in range(1, count + 1)])
    honest = payment(count + 1)
    await stage.add(honest)
    for one in stage.nodes.values():
        one.use(honest, SELLER)
    stage.move(RECONCILE_EVERY_S)
    ended = await stage.settlement.reconcile(is_due_only=True)  # one pass, 5 of the 15 s
    assert RECONCILE_EVERY_S <= PROMPT_S
    assert (await stage.states())[honest.id] == "settled"
    if how != "expired":
        assert len(ended) == count + 1
    await stage.passes(95 + LATE_S + RECONCILE_EVERY_S)
    states = await stage.states()
    assert list(states.values()).count("failed") == count
    rows = await stage.ledger.list(None, [PaymentState.FAILED], 10_000)
    assert max(row.look.questions for row in rows) <= 4
    assert stage.asked <= 5 * count
    ever = stage.asked
    await stage.passes(HOUR_S, 60)
    assert stage.asked == ever  # nothing is asked for ever


async def test_a_cancelled_payment_counts_against_its_payer(stage: Stage) -> None:
    payer = "0x" + "ab" * 20
    await stuck(stage, "cancelled", [payment(n, payer=payer) for n in range(1, 6)])
    await stage.passes(RECONCILE_EVERY_S)
    fresh = replace(payment(6, payer=payer), state=PaymentState.CLAIMED)
    claim = await stage.ledger.claim(fresh, stage.clock.now() - timedelta(hours=1))
    assert claim.failures == 5


async def test_one_nobody_can_decide_costs_a_handful_of_looks_an_hour(stage: Stage) -> None:
    """Used, says the node, and finds neither by what nor a cancellation."""
    await stuck(stage, "cancelled", [payment(1, valid_s=2 * HOUR_S)])
    stage.nodes[ONE].refuses = {"eth_getLogs"}
    await stage.passes(HOUR_S)
    (row,) = await stage.ledger.list(None, [PaymentState.PENDING], 10)
    assert row.look.questions <= 10
    assert stage.asked <= 5 * row.look.questions
    stage.nodes[ONE].refuses = set()
    await stage.passes(600)
    assert await stage.states() == {"1": "failed"}  # nothing was given up


@pytest.mark.parametrize("rows", [FEW, MANY])
async def test_while_no_node_answers_one_question_a_step_asks_for_all(
    stage: Stage, rows: int
) -> None:
    await stuck(stage, "cancelled", [payment(n) for n in range(1, rows + 1)])
    stage.nodes[ONE].is_down = True
    for passed in range(int(HOUR_S // RECONCILE_EVERY_S)):
        stage.move(RECONCILE_EVERY_S)
        if passed == 100:  # after a start, in another process as well
            stage.settlement = stage.started()
        before = stage.tried
        assert await stage.settlement.reconcile(is_due_only=True) == []
        assert stage.tried - before <= 1
    assert 60 <= stage.tried <= 66
    pending = await stage.ledger.list(None, [PaymentState.PENDING], 10_000)
    assert len(pending) == rows
    assert {row.look.questions for row in pending} == {0}
    stage.nodes[ONE].is_down = False
    await stage.passes(MISSED_MOST_S + RECONCILE_EVERY_S)
    assert set((await stage.states()).values()) == {"failed"}
    assert stage.asked <= 5 * rows


async def test_two_processes_ask_no_more_than_one(stage: Stage) -> None:
    await stuck(stage, "cancelled", [payment(n) for n in range(1, 101)])
    stage.nodes[ONE].is_down = True
    other = stage.started()
    for _ in range(100):
        stage.move(RECONCILE_EVERY_S)
        before = stage.tried
        for process in (stage.settlement, other):
            await process.reconcile(is_due_only=True)
        assert stage.tried - before <= 1


async def test_one_payers_many_do_not_keep_anothers_one_waiting(stage: Stage) -> None:
    payer = "0x" + "ab" * 20
    many = [payment(n, payer=payer) for n in range(1, 3 * OF_PAYER + 1)]
    await stuck(stage, "cancelled", many)
    honest = payment(5000)
    stage.nodes[ONE].use(honest, SELLER)
    await stage.add(honest)
    ended = await stage.passes(RECONCILE_EVERY_S)
    assert len(ended) == OF_PAYER + 1
    assert honest.id in {one.id for one in ended}
    await stage.passes(2 * RECONCILE_EVERY_S)
    assert list((await stage.states()).values()).count("failed") == len(many)


async def test_a_client_that_comes_again_and_again_asks_the_chain_nothing_new(
    stage: Stage,
) -> None:
    await stuck(stage, "cancelled", [payment(1, valid_s=2 * HOUR_S)])
    stage.nodes[ONE].refuses = {"eth_getLogs"}
    for _ in range(HOUR_S // 5):
        stage.move(5)
        row = await stage.ledger.find("eip155:84532", "digest 1")
        assert row is not None
        with pytest.raises(PaymentPending):
            await stage.settlement.finish(row)
    row = await stage.ledger.find("eip155:84532", "digest 1")
    assert row is not None
    assert row.look.questions <= 10


def two_networks(stage: Stage, rpc: Any) -> LedgerEntry:
    """A second network in the stage, `eip155:8453`; a payment on it that its node shows as paid."""
    other = replace(network(TWO), slug="eip155:8453", chain_id=8453)
    stage.nodes[TWO] = node()
    chains = {"eip155:84532": network(ONE), "eip155:8453": other}
    engine = X402Engine(rpc, chains, None, None, stage.clock, 20.0)
    nothing: Any = None
    needs = ProtocolDependencies(Eip3009Signers(), engine, nothing, stage.clock)
    lease = timedelta(seconds=45)
    protocols = {"x402": X402()}
    witness = lone_witness(protocols, needs, stage.clock)
    stage.settlement = Settlement(protocols, needs, stage.ledger, stage.clock, lease, witness)
    elsewhere = replace(payment(2), network="eip155:8453")
    stage.nodes[TWO].use(elsewhere, SELLER)
    return elsewhere


async def test_one_network_that_is_down_holds_up_no_other(stage: Stage) -> None:
    elsewhere = two_networks(stage, Nodes(stage.nodes))
    await stage.add(payment(1), elsewhere)
    stage.nodes[ONE].is_down = True
    await stage.passes(RECONCILE_EVERY_S)
    assert await stage.states() == {"1": "pending", "2": "settled"}


class LateNodes(Nodes):
    """One network's answers are held back."""

    late = "eip155:84532"

    def __init__(self, by_url: dict[str, Node]) -> None:
        super().__init__(by_url)
        self.is_asked, self.goes_on = asyncio.Event(), asyncio.Event()

    @override
    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        if network.slug == self.late:
            self.is_asked.set()
            await self.goes_on.wait()
        return await super().request(network, method, params)


async def test_a_network_that_answers_late_holds_up_nothing_that_is_due_on_another(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what was due at the same time nor what is due while it is waited for."""
    monkeypatch.setattr(background, "RECONCILE_EVERY_S", 0)
    rpc = LateNodes(stage.nodes)
    elsewhere = two_networks(stage, rpc)
    done: asyncio.Queue[str] = asyncio.Queue()

    def info(_event: str, *, payment: str, **_fields: object) -> None:
        done.put_nowait(payment)

    log: Any = SimpleNamespace(info=info)
    await stage.add(payment(1))
    stage.move(RECONCILE_EVERY_S)
    async with asyncio.timeout(HOUR_S), asyncio.TaskGroup() as group:
        loops = [
            group.create_task(background.reconcile_forever(stage.settlement, name, log))
            for name in (rpc.late, elsewhere.network)
        ]
        await rpc.is_asked.wait()
        await stage.add(elsewhere)
        stage.move(RECONCILE_EVERY_S)
        assert await done.get() == elsewhere.id
        assert (await stage.states())["1"] == "settling"
        for one in loops:
            one.cancel()


async def test_every_hash_is_remembered_and_an_older_one_that_was_mined_is_the_receipt(
    stage: Stage,
) -> None:
    entry = payment(1)
    older = stage.nodes[ONE].use(entry, SELLER)
    stage.nodes[ONE].refuses = {"eth_getLogs"}
    attempt = SettlementAttempt("0x" + "33" * 32, "", earlier=("0x" + "22" * 32, older))
    await stage.add(replace(entry, attempt=attempt))
    (ended,) = await stage.passes(RECONCILE_EVERY_S)
    assert (ended.state, ended.attempt.transaction) == (PaymentState.SETTLED, older)
    row = await stage.ledger.find("eip155:84532", "digest 1")
    assert row is not None
    assert row.attempt.transaction == older
    assert set(row.attempt.earlier) == {"0x" + "22" * 32, "0x" + "33" * 32}
