"""Gas accounts in memory, deterministic: what the SQL store promises, and nothing more."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from assay.payments.gas import GasSpent, GasTerms
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import NO_GAS, Gas


@dataclass(slots=True)
class MemoryGas:
    """One operator's budget: some free settlements, then what is prepaid, in one currency."""

    prepaid: int = 0
    free_used: int = 0
    credited: int = 0
    free_spent: int = 0
    """Free settlements that have spent gas, and are not given back."""
    prepaid_spent: int = 0
    told: Callable[[], None] = lambda: None

    open: Counter[str] = field(default_factory=Counter[str])
    """What is reserved, in prepaid gas, by payment."""
    free_open: set[str] = field(default_factory=set[str])

    def credit(self, amount: int) -> None:
        self.prepaid += amount
        self.credited += amount

    def reserve(self, fresh: LedgerEntry, terms: GasTerms) -> Gas:
        """Raises `GasSpent`."""
        if self.free_used < terms.free_per_account:
            self.free_used += 1
            self.free_open.add(fresh.nonce)
            return Gas("free", terms.currency, terms.most)
        if self.prepaid < terms.most:
            raise GasSpent(5)
        self.prepaid -= terms.most
        self.open[fresh.nonce] += terms.most
        return Gas("prepaid", terms.currency, terms.most)

    def settle_up(self, before: LedgerEntry, gas: Gas) -> Gas:
        """End a reservation as `GasReservations.settle_up` does; what is left of it."""
        was = before.gas
        if was == gas:
            return gas
        if was.payer == "prepaid":
            spent = gas.spent or 0
            self.prepaid += was.reserved - spent
            self.prepaid_spent += spent
            del self.open[before.nonce]
        elif was.payer:
            self.free_open.discard(before.nonce)
            self.free_used -= not gas.payer
            self.free_spent += bool(gas.payer)
        self.told()
        return gas

    def give_back(self, known: LedgerEntry) -> LedgerEntry:
        """What a process that is gone had reserved."""
        return replace(known, gas=self.settle_up(known, NO_GAS))


def in_flight(rows: list[LedgerEntry], now: datetime, since: datetime) -> int:
    """As `IN_FLIGHT` counts it."""
    return sum(
        bool(row.gas.payer)
        and (
            row.state in {PaymentState.SETTLING, PaymentState.PENDING}
            or (row.state is PaymentState.CLAIMED and row.lease_until > now)
            or (row.settled_at is not None and row.settled_at >= since)
            or (row.state is PaymentState.FAILED and row.lease_until >= since)
        )
        for row in rows
    )
