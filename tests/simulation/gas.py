"""What must hold of a gas account: every reservation ends once, and what is charged was burnt."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random

from assay.payments.gas import NANO, WEI
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import hashes
from tests.simulation.chain import Chain
from tests.simulation.invariants import PAID, Invariants
from tests.simulation.process import FREE
from tests.support.fakes.gas_accounts import MemoryGas
from tests.support.fakes.ledger import MemoryLedgerStore

CLOSED = frozenset(
    {
        PaymentState.SETTLED,
        PaymentState.DELIVERED,
        PaymentState.FAILED,
        PaymentState.RELEASED,
        PaymentState.REVERSED,
    }
)


@dataclass(slots=True)
class GasWatch:
    """Watches the account of one world, if there is one."""

    chain: Chain
    disk: MemoryLedgerStore
    invariants: Invariants
    account: MemoryGas | None = None
    _unpaid: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """What was signed for a payment, by its id, before it had settled: its seller is charged for
    that. What is sent again for one that has settled is the service's own (ADR 0017)."""

    def begin(self, random: Random) -> None:
        """Settling is charged from now on, to a budget that may not last."""
        self.account = account = MemoryGas(told=self.balanced)
        self.disk.gas = account
        account.credit(random.choice((0, 0, 1, 3)) * WEI // NANO)

    def credit(self) -> None:
        """The operator pays: what was refused for that alone is served."""
        if self.account is not None:
            self.account.credit(100 * WEI // NANO)

    def balanced(self) -> None:
        """A reservation has ended: nothing of the account is lost, or there twice."""
        account = self.account
        assert account is not None
        held = account.prepaid + sum(account.open.values()) + account.prepaid_spent
        if held != account.credited:
            self.invariants.broken(f"a gas account of {account.credited} holds {held}")
        if not 0 <= account.free_used <= FREE:
            self.invariants.broken(f"{account.free_used} free settlements of {FREE}")
        if account.free_used != account.free_spent + len(account.free_open):
            self.invariants.broken("free settlements are counted that nobody holds")

    def moved(self, before: LedgerEntry | None, row: LedgerEntry) -> None:
        """A row of the ledger was written: what is charged now was burnt by now."""
        if self.account is None:
            return
        if before is None or before.state not in PAID:
            self._unpaid.setdefault(row.id, set()).update(hashes(row.attempt))
        spent, was = row.gas.spent, None if before is None else before.gas.spent
        # Of one that cannot be asked about any more what was reserved is charged.
        if spent is not None and spent not in {was, row.gas.reserved}:
            burnt = self._burnt(row)
            if not any(spent == charge for charge in _charges(burnt)):
                self.invariants.broken(f"{spent} charged for gas of {burnt}")
        if was is not None and was != spent:
            self.invariants.broken(f"{was} charged for gas, and then {spent}")

    def ended(self) -> None:
        """Everything has ended: nothing is reserved, and what was burnt is charged."""
        if self.account is None:
            return
        self.balanced()
        for row in self.disk.rows.values():
            gas = row.gas
            if row.state in CLOSED and gas.payer and gas.spent is None:
                what = f"gas of a payment that is {row.state} is reserved for ever"
                self.invariants.broken(what)
            if self._burnt(row) and not gas.payer:
                what = f"gas was burnt for a payment that is {row.state}: by nobody"
                self.invariants.broken(what)

    def _burnt(self, row: LedgerEntry) -> list[list[int]]:
        """Wei that each transaction for a payment has cost, in whichever block a node showed it."""
        ever = self.chain.ever_burnt
        return [sorted(ever[one]) for one in sorted(self._unpaid.get(row.id, ())) if one in ever]


def _charges(burnt: list[list[int]]) -> Iterator[int]:
    """What may be charged for transactions that cost so much, in billionths: their sum, rounded
    once, without those that no node had shown yet."""
    for costs in product(*[[0, *some] for some in burnt]):
        if any(costs):
            yield -(-sum(costs) * NANO // WEI)
