"""One sale that something goes wrong with, and what must hold of it whatever that was.

Never paid twice, never served free, never lost money, never stuck.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.ports import Authorization
from tests.payments.boundary import Fault, FaultKind
from tests.payments.outside import PRICE, SOLD, FakeReply, Payer, incoming, payment
from tests.payments.service import Process, Reply, start
from tests.payments.world import Terms, World
from tests.simulation.chain import Action, Cancel, Send

PAID = frozenset({PaymentState.SETTLED, PaymentState.DELIVERED})
ENDED = PAID | {PaymentState.RELEASED, PaymentState.FAILED, PaymentState.REVERSED}
LIFE_S = 120.0
"""How long the payment is good."""

STRANGER = "0x" + "5b" * 20
ELSEWHERE = "0x" + "e1" * 20

Prepare = Callable[["Sale"], None]
"""Sets the scene before the call."""


@dataclass(slots=True)
class Sale:
    """One payment for one call, and all that its buyer was told."""

    world: World
    payer: Payer = field(default_factory=Payer)
    told: list[Reply | None] = field(default_factory=list[Reply | None])
    signed: Authorization = field(init=False)

    def __post_init__(self) -> None:
        self.world.chain.fund(self.payer.address, PRICE)
        self.signed = self.payer.signs(self.world.now_s() + LIFE_S)

    def process(self, fault: Fault | None = None) -> Process:
        """Another life of the service."""
        return start(self.world, fault)

    def show(self, process: Process) -> Reply | None:
        """The buyer sends the request with its payment."""
        reply = process.call(incoming(payment(self.signed)))
        self.told.append(reply)
        self._is_not_free(reply)
        return reply

    def steal(self, process: Process) -> None:
        """Somebody who has read the payment on the chain shows it."""
        reply = process.call(incoming(payment(self.signed), client="198.51.100.9"))
        assert reply is not None
        assert reply.status != 200

    def comes_again(self, process: Process, *others: Process) -> Reply:
        """The buyer comes again until it is known what became of the payment."""
        for _ in range(60):
            reply = self.show(process)
            if reply is not None and reply.status in {200, 402}:
                return reply
            self.goes_on(6.0, process, *others)
        raise AssertionError(f"never told: {self.told[-1]}, {self.states()}")

    def goes_on(self, seconds: float, *processes: Process) -> None:
        """Time passes, and the background of the processes works."""
        self.world.wait(seconds)
        for one in processes:
            if not one.boundary.is_dead:
                one.work()

    def ends(self, *processes: Process) -> None:
        """An hour without any fault, and nobody comes."""
        for seconds in (6, 18, 60, 120, 600, 1200, 1800):
            self.goes_on(seconds, *processes)

    def states(self) -> list[tuple[PaymentState, str]]:
        return [(row.state, row.reason) for row in self.world.rows()]

    def is_served_and_paid_once(self, reply: Reply) -> None:
        assert (reply.status, reply.body) == (200, SOLD)
        assert self.world.taken() == PRICE
        assert self.world.row().state in PAID
        assert len(set(self.world.upstream.keys)) == 1  # one call to the seller, known as one

    def is_charged_nothing(self, reply: Reply) -> None:
        assert reply.status == 402
        assert self.world.taken() == 0
        assert {state for state, _ in self.states()}.isdisjoint(PAID)
        assert all(one is None or one.status != 200 for one in self.told)

    def books_agree(self, process: Process) -> None:
        """Everything has ended, money and books agree, and nothing is held of payer or seller."""
        rows, is_paid = self.world.rows(), self.world.taken() == PRICE
        assert {row.state for row in rows} <= ENDED | {PaymentState.CLAIMED}
        assert any(row.state in PAID for row in rows) is is_paid
        for row in rows:
            assert self._in_flight(process, row) == 0
            assert row.gas.spent is not None or not row.gas.payer, row.gas

    def _in_flight(self, process: Process, row: LedgerEntry) -> int:
        if row.state is PaymentState.CLAIMED:
            assert row.lease_until < self.world.clock.now()
        other = replace(row, nonce="0x" + "99" * 32)
        return self.world.run(process.ledger.committed(other)).amount

    def _is_not_free(self, reply: Reply | None) -> None:
        if reply is not None and reply.status == 200:
            paid = self.world.chain.ever_paid.get((self.signed.payer, self.signed.nonce), [])
            assert [(use.to, use.value) for use in paid[-1:]] == [(self.signed.to, PRICE)]


@contextmanager
def sale(folder: Path, terms: Terms, prepare: Prepare) -> Generator[Sale]:
    """A world for one sale, closed at its end."""
    world = World(folder, terms)
    made = Sale(world)
    prepare(made)
    try:
        yield made
    finally:
        world.close()


def faults(folder: Path, terms: Terms, prepare: Prepare, kind: FaultKind) -> Iterator[Fault]:
    """Everything that can go wrong so at each step of a call: of polls at the first and the last.

    Who is killed before a step might as well have been killed after the one before it.
    """
    with sale(folder, terms, prepare) as made:
        process = made.process()
        made.show(process)
        steps = process.boundary.steps
    for place in places(steps):
        if kind == "lost":
            yield Fault(kind, place, is_after=False)
        yield Fault(kind, place, is_after=True)


def places(steps: Sequence[str]) -> list[int]:
    """Those of the steps, without the middle of a row of the same ones."""
    around = [None, *steps, None]
    return [n for n, step in enumerate(steps) if {around[n], around[n + 2]} != {step}]


def nothing(_made: Sale) -> None:
    """All goes well."""


def empties_wallet(made: Sale) -> None:
    """The payer sends the money away while the seller works."""
    payer = made.payer.address
    _while_sold(made, payer, Send(payer, ELSEWHERE, PRICE))


def cancels(made: Sale) -> None:
    """The payer takes the authorisation back while the seller works."""
    payer = made.payer.address
    _while_sold(made, payer, Cancel(payer, made.signed.nonce))


def is_submitted_by_a_stranger(made: Sale) -> None:
    """Somebody else submits the authorisation while the seller works."""
    _while_sold(made, STRANGER, made.signed)


def upstream_fails(made: Sale) -> None:
    """The seller's API fails the first time."""
    made.world.upstream.script = [FakeReply(500)]


def upstream_refuses(made: Sale) -> None:
    """The seller's API answers that there is no such thing, the first time."""
    made.world.upstream.script = [FakeReply(404)]


def _while_sold(made: Sale, sender: str, action: Action) -> None:
    def act() -> None:
        made.world.upstream.asked = lambda: None
        made.world.chain.submit_plain(sender, action)
        made.world.chain.mine()

    made.world.upstream.asked = act
