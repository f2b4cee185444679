"""One schedule: a world made of a seed, run until its faults are over and everything has ended."""

import asyncio
import random as global_random
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from assay.payments.model import LedgerEntry, PaymentState, StoredResponse
from assay.payments.ports import Authorization
from tests.simulation.chain import BLOCK_S, GWEI, Chain, SettlementKey
from tests.simulation.facilitator import ADDRESS, FacilitatorService
from tests.simulation.gas import GasWatch
from tests.simulation.invariants import Invariants, Violation
from tests.simulation.kept import seeds_without_gas
from tests.simulation.loop import NothingLeft, SimulatedLoop
from tests.simulation.node import Node
from tests.simulation.payers import (
    CHAOTIC,
    PAYEE,
    PRICE,
    Purchase,
    buy,
    buy_again,
    interfere,
    purchase_of,
)
from tests.simulation.process import (
    CHAIN,
    EPOCH_S,
    Outside,
    Process,
    SimulatedClock,
    UpstreamBroken,
    answer_of,
)
from tests.simulation.wire import Trouble, Wire
from tests.support.fakes.ledger import MemoryLedgerStore

KEY = "0x" + "0e" * 20
GAS_ACCOUNTS = 0.4
"""How often settling is charged to the operator's gas account."""
WITHOUT_GAS = seeds_without_gas()
BLIND = 0.1
"""How often one of the nodes shows no transfer, faults or none."""

PATIENCE_S = 3600
"""How long after the last fault everything has ended: an authorisation's life, the slack of the
chain's clock, what a transaction may still take, and two of the looks at settled payments."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a schedule."""

    seed: int
    violation: Violation | None
    steps: int
    virtual_s: float
    crashes: int
    rows: int
    settled: int
    asked: int
    """Exchanges with the chain."""


class World:
    """Made of a seed: the same seed is the same schedule, step for step."""

    def __init__(self, seed: int, say: Any = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random, in_order=self.random.random() < 0.2)
        self.trouble = _trouble(self.random)
        self.wire = Wire(self.random, self.trouble)
        self.chain = Chain(self.random, lambda: EPOCH_S + self.loop.time())
        self.chain.lag_s = self.random.choice((0.0, 0.0, 5.0, 60.0))
        self.chain.strict = self.random.random() < 0.5
        self.disk = MemoryLedgerStore(SimulatedClock(self.loop))
        self.is_late = False
        self.crashes = 0
        self._say = say
        self.invariants = Invariants(
            self.chain, self.disk, frozenset({KEY, ADDRESS}), PAYEE, self._told
        )
        self.wire.broken = self.invariants.broken
        self._key = SettlementKey(KEY)
        self.gas = GasWatch(self.chain, self.disk, self.invariants)
        if seed not in WITHOUT_GAS and Random(f"gas {seed}").random() < GAS_ACCOUNTS:
            self.gas.begin(Random(f"credit {seed}"))
        self._outside = self._make_outside()
        self._lives: list[Process] = []
        self.processes = [self._start() for _ in range(self.random.choice((1, 2, 2)))]
        self.purchases: list[Purchase] = []
        self._shakes_fees = self.random.random() < 0.3
        self._reorganises = self.random.random() < 0.25
        self._drains = self.random.random() < 0.1
        self._kills = self.trouble.crash > 0

    def run(self) -> Outcome:
        state = global_random.getstate()
        global_random.seed(self.seed)
        try:
            self.loop.run(self._live())
        except NothingLeft:
            self.invariants.broken("everybody waits for somebody")
        finally:
            global_random.setstate(state)
        for problem in self.loop.unhandled:
            self.invariants.broken(f"unhandled: {problem}")
        rows = self.disk.rows.values()
        return Outcome(
            self.seed,
            self.invariants.violation,
            self.loop.steps,
            self.loop.time(),
            self.crashes,
            len(rows),
            sum(row.settled_at is not None for row in rows),
            sum(life.node.asked for life in self._lives),
        )

    def pick(self) -> Process:
        return self.random.choice(self.processes)

    def is_public(self, signed: Authorization) -> bool:
        """Whether anybody can read the authorisation: it is in a block, or waits for one."""
        if (signed.payer, signed.nonce) in self.chain.state.used:
            return True
        return any(sent.action == signed for sent in self.chain.pool.values())

    def is_owed(self, signed: Authorization) -> bool:
        """Whether a stranger has submitted it who was shown it here."""
        return (signed.payer, signed.nonce) in self.invariants.owed

    def is_released(self, signed: Authorization) -> bool:
        """Whether its claim has ended, verified, and nobody was served."""
        rows = (row for row in self.disk.rows.values() if row.nonce == signed.nonce)
        return any(row.state is PaymentState.RELEASED and row.look.at is not None for row in rows)

    async def upstream(self, process: Process, url: str, digest: str) -> StoredResponse:
        """What is sold, after a while, unless it fails."""
        row = next((row for row in self.disk.rows.values() if row.digest == digest), None)
        self.invariants.asked_upstream(row, process.clock.now())
        try:
            await asyncio.sleep(self.random.choice((0.0, 0.1, 0.6, 2.0)))
            roll = 1.0 if self.is_late else self.random.random()
            await self.wire.exchange(process, lambda: None, 0.0, ConnectionError)
        finally:
            if process.is_alive:
                self.invariants.upstream_ended(row)
        if roll < 0.06:
            raise UpstreamBroken("The upstream failed.")
        found = answer_of(url)
        return replace(found, status=404) if roll < 0.1 else found

    def _told(self, what: str) -> None:
        if self._say is not None:
            self._say(f"{self.loop.time():8.2f} {what}")

    def _written(self, before: LedgerEntry | None, row: LedgerEntry) -> None:
        self.invariants.moved(before, row)
        self.gas.moved(before, row)

    def _make_outside(self) -> Outside:
        facilitator = None
        if self.random.random() < 0.25:
            facilitator = FacilitatorService(
                self.chain, self.wire, self.invariants.asked, self._submitted
            )
        self.chain.told = self.invariants.mined
        self.disk.changed = self._written
        self.chain.fund_gas(KEY, 10**20)
        node = Node(self.chain, self._key.signed.__getitem__, self.random)
        node.lies = lambda _method: self.random.random() < self.trouble.lie
        node.behind = self._behind
        node.arrived = self._sent
        node.honest_url = self.random.choice(CHAIN.rpc_urls)
        if Random(f"blind {self.seed}").random() < BLIND:
            node.blind_url = next(url for url in CHAIN.rpc_urls if url != node.honest_url)
        return Outside(
            loop=self.loop,
            wire=self.wire,
            node=node,
            disk=self.disk,
            key=self._key,
            facilitator=facilitator,
            lease_s=self.random.choice((4.0, 15.0)),
            settlement_s=self.random.choice((4.0, 8.0)),
            crashed=self._crashed,
            broken=self.invariants.broken,
        )

    def _submitted(self, signed: Authorization) -> None:
        self.invariants.owed.add((signed.payer, signed.nonce))

    def _behind(self) -> int:
        """A balancer has nodes that have not seen the last blocks."""
        is_behind = self.random.random() < self.trouble.lag
        return self.random.choice((1, 1, 2, 5)) if is_behind else 0

    def _sent(self, raw: str) -> None:
        sent = self._key.signed[raw]
        if isinstance(sent.action, Authorization):
            self.invariants.sent(sent.action, raw, sent.nonce)

    def _start(self) -> Process:
        life = Process(self._outside, self.random.choice((0.0, 0.0, -1.5, 1.5)))
        self._lives.append(life)
        return life

    def _crashed(self) -> None:
        self.crashes += 1
        self._told("crash")
        self.loop.call_later(self.random.choice((0.0, 0.2, 2.0, 6.0)), self._restart)

    def _restart(self) -> None:
        for place, process in enumerate(self.processes):
            if not process.is_alive and not self.wire.is_over:
                self.processes[place] = self._start()

    async def _live(self) -> None:
        mining = self.loop.create_task(self._mine())
        shaking = self.loop.create_task(self._shake())
        buyers = self._begin()
        await asyncio.sleep(self.random.choice((6.0, 15.0, 30.0)))
        shaking.cancel()
        self._heal()
        for _ in range(int(PATIENCE_S)):
            if self._is_quiet(buyers):
                self.chain.mine()  # what a stranger has sent may still wait
                if self._is_quiet(buyers):
                    break
            await asyncio.sleep(1.0)
        self.is_late = True
        self.invariants.ended(self.purchases)
        self.gas.ended()
        await self._end([mining, shaking, *buyers])

    def _is_quiet(self, buyers: list[asyncio.Task[None]]) -> bool:
        if not all(buyer.done() for buyer in buyers):
            return False
        return next(self.invariants.unsettled(), None) is None

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        for life in self._lives:
            life.end()
        for task in tasks:
            task.cancel()
        self.wire.end()
        for _ in range(3):
            await asyncio.sleep(30.0)

    def _begin(self) -> list[asyncio.Task[None]]:
        """The payers of this world, and who interferes with them."""
        made: list[asyncio.Task[None]] = []
        for number in range(self.random.choice((1, 1, 2, 3))):
            payer = f"0x{number + 1:02x}" + "c0" * 19
            bought = self.random.choice((1, 1, 1, 2, 3))
            self.chain.fund(payer, PRICE * self.random.choice((1, bought, bought + 2)))
            for place in range(bought):
                made.extend(self._shop(f"p{number}{place}", payer))
        return made

    def _shop(self, name: str, payer: str) -> list[asyncio.Task[None]]:
        random = self.random
        purchase = purchase_of(name, payer, self.loop.time(), random)
        self.purchases.append(purchase)
        purchase.is_patient = random.random() < 0.8
        copies = random.choice((1, 1, 1, 2, 3))
        how = buy_again if random.random() < 0.25 and copies == 1 else buy
        tasks = [self.loop.create_task(how(self, purchase)) for _ in range(copies)]
        if random.random() < 0.35:
            nasty = interfere(self, purchase, random.choice(CHAOTIC))
            tasks.append(self.loop.create_task(nasty))
        return tasks

    async def _mine(self) -> None:
        while True:
            await asyncio.sleep(BLOCK_S)
            self.chain.mine()

    async def _shake(self) -> None:
        """What happens to the world by itself while faults last."""
        random = self.random
        if self._shakes_fees:
            self.chain.inclusion = random.choice((0.3, 0.7))
        if self._drains:
            self.chain.state.coins[KEY] = 10**15
        while True:
            await asyncio.sleep(random.choice((0.5, 2.0, 5.0)))
            if self._kills and random.random() < 0.3:
                self.pick().crash()
            if self._shakes_fees:
                self.chain.base_fee = (
                    10 * GWEI * random.choice((1, 1, 3, 10)) // random.choice((1, 4))
                )
            if self._reorganises and random.random() < 0.4:
                self.chain.reorganise(random.randrange(1, 11), random.choice((1.0, 1.0, 0.7)))

    def _heal(self) -> None:
        """Faults stop: what is left now has to end."""
        self._told("faults stop")
        calm = Trouble(pause=self.trouble.pause)
        for name in Trouble.__slots__:
            setattr(self.trouble, name, getattr(calm, name))
        self.chain.inclusion, self.chain.base_fee = 1.0, 10 * GWEI
        self.chain.fund_gas(KEY, 10**20)
        self.gas.credit()
        self._restart()


def _trouble(random: Random) -> Trouble:
    """Some faults often, others not at all: what hides behind the one shows without it."""

    def some(*chances: float) -> float:
        return random.choice((0.0, 0.0, *chances))

    return Trouble(
        pause=random.choice((0.2, 0.5, 0.8)),
        slow=some(0.02, 0.1),
        crash=some(0.004, 0.02),
        store_lost=some(0.02, 0.08),
        rpc_lost=some(0.05, 0.3),
        rpc_refuses=some(0.02, 0.1),
        lag=some(0.1, 0.4),
        lie=some(0.05, 0.2),
        facilitator=some(0.2, 0.5),
        cancel=some(0.1, 0.4),
    )


def run(seed: int, say: Any = None) -> Outcome:
    """Run one schedule."""
    return World(seed, say).run()
