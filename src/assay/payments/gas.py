"""Who pays for the gas of settlements, and how much one may cost (decision 0017).

Every settlement that our own key sends is charged to the selling operator, whatever the price: to a
free number of settlements a day, else to what the operator has prepaid. It is reserved in the
transaction that claims the payment, before the upstream is asked, and given back when nothing was
sent. What cannot be paid for, costs more than it may, or is more than our key holds, is refused
before the upstream runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from typing import Final, NamedTuple, Protocol

from assay.accounts.audit import Note
from assay.chains.model import ChainUnavailable
from assay.kit.cache import BoundedMap
from assay.kit.clock import Clock
from assay.payments.model import (
    DECIMALS,
    Entry,
    Gas,
    PaymentsUnavailable,
    Quote,
    State,
)

GAS_MAX: Final = 200_000
"""Most gas a transfer may burn; Circle's takes less than half. Source: facts, payments 6, row 27.
Every bound on what a settlement costs is for so much."""

USD: Final = "usd"
WEI: Final = 10**18
NANO: Final = 10**9
"""Balances are counted in billionths of their currency: of a coin, gwei."""

DAY_US: Final = 86_400_000_000
RETRY_S: Final = 5
DEAR_RETRY_S: Final = 60


class FeePerGas(NamedTuple):
    """Wei per gas: what is offered beyond the base fee, and the most in all (EIP-1559)."""

    priority: int
    most: int


NO_FEE: Final = FeePerGas(0, 0)


def fee_per_gas(price: int, cap: int, at_least: FeePerGas = NO_FEE) -> FeePerGas:
    """Twice the price of now, which outlasts six full blocks (EIP-1559), and never above `cap`.

    `at_least` is what a replacement has to offer; beyond the cap it is not reached.
    """
    tip = max(1, min(price, price // 10 + 1))
    most = min(max(price * 2 + tip, at_least.most), cap)
    return FeePerGas(min(max(tip, at_least.priority), most), most)


@dataclass(frozen=True, slots=True)
class KeyState:
    """What a network asks of our key now, in wei: the price of a unit of gas, and what it holds."""

    gas_price: int
    balance: int


class SettlingKey(Protocol):
    """The key that settles."""

    address: str

    async def state(self, network: str) -> KeyState:
        """Remembered for some seconds, failures too. Raises `ChainUnavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class GasRules:
    """What the operator of the service has decided."""

    free_per_account: int
    """Settlements a UTC day, of each account."""
    free_shared: int
    """The same of all self-registered accounts together."""
    usd: Mapping[str, Decimal]
    """What a coin is worth, by network; a network that is not there is counted in its coin."""
    cap_of_price: Decimal
    """The most that a settlement may cost, as a part of its price, where the coin's worth is known."""
    cap_coins: Mapping[str, Decimal]
    """The most in coins, by network: wherever that is more than the part of the price."""

    def cap_wei(self, network: str, amount: int) -> int:
        """The most that settling `amount` base units may cost, in wei."""
        cap = self.cap_coins[network]
        if worth := self.usd.get(network):
            price = Decimal(amount).scaleb(-DECIMALS)
            cap = max(cap, price * self.cap_of_price / worth)
        return int(cap * WEI)

    def cap_per_gas(self, network: str, amount: int) -> int:
        """The same for one unit of gas."""
        return self.cap_wei(network, amount) // GAS_MAX

    def currency(self, network: str) -> str:
        """What gas of a network is counted in."""
        return USD if network in self.usd else network

    def nano(self, network: str, wei: int) -> int:
        """Wei in billionths of the currency, rounded up."""
        cost = Decimal(wei) * self.usd.get(network, Decimal(1)) * NANO / WEI
        return int(cost.to_integral_value(ROUND_CEILING))


@dataclass(frozen=True, slots=True)
class GasTerms:
    """What a claim reserves for settling, and from what it may be taken."""

    currency: str
    most: int
    """Billionths of the currency."""
    free_per_account: int
    free_shared: int


class GasSpent(PaymentsUnavailable):
    """The seller's budget is used up: 503 `payments_unavailable`."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            "The seller's budget for settling payments is used up; nothing was charged.",
            detail="gas budget",
            retry_after_s=retry_after_s,
        )


@dataclass(frozen=True, slots=True)
class GasAccount:
    """What an account may spend on settling, and has spent."""

    prepaid: Mapping[str, int]
    """Billionths by currency. Below zero where a settlement cost more than was expected."""
    spent: Mapping[str, int]
    """What settlements cost in all, by currency, prepaid or not."""
    free_used: int
    """Free settlements of today."""
    is_self_registered: bool


@dataclass(frozen=True, slots=True)
class GasUsage:
    """What everybody's settlements cost on a day."""

    free_shared_used: int
    free_used: int


class GasStore(Protocol):
    """Budgets of gas. Claims reserve from them, and moves of the ledger charge them."""

    async def in_flight(self, network: str, now: datetime) -> int:
        """Payments whose gas is reserved and not spent yet."""
        ...

    async def account(self, operator_id: str, day: int) -> GasAccount:
        """An account's budget."""
        ...

    async def usage_for_admin(self, day: int) -> GasUsage:
        """The budgets of one day."""
        ...

    async def credit_for_admin(
        self, operator_id: str, currency: str, amount: int, note: Note
    ) -> int:
        """Add billionths to what is prepaid (below zero: take some back); what is there then."""
        ...

    async def abandoned(self, before: datetime, at_most: int) -> Sequence[Entry]:
        """Claims with prepaid gas whose lease ended before then."""
        ...

    async def forget(self, before_day: int) -> int:
        """Remove free budgets of earlier days; how many there were."""
        ...


@dataclass(slots=True)
class _Watched:
    """Settlements that a reading of the key's balance has still to pay for."""

    state: KeyState
    waiting: int


class GasBudget:
    """Says before each claim what settling may cost, and whether our key can pay for it."""

    def __init__(
        self, rules: GasRules, key: SettlingKey, store: GasStore, clock: Clock, networks: int = 16
    ) -> None:
        self.rules = rules
        self.key = key
        self.store = store
        self._clock = clock
        self._watched: BoundedMap[str, _Watched] = BoundedMap(networks)

    async def terms(self, quote: Quote) -> tuple[GasTerms, PaymentsUnavailable | None]:
        """What a claim of this quote reserves, and why it may not be settled now, if it may not.

        The refusal is for a claim that would be settled: what was claimed before is finished.
        """
        network, rules = quote.network.id, self.rules
        cap = rules.cap_per_gas(network, quote.amount)
        try:
            state = await self.key.state(network)
        except ChainUnavailable as error:
            detail = error.detail or error.message
            refusal = _refusal("Payments cannot be settled now.", detail, RETRY_S)
            return self._terms(network, cap), refusal
        fee = fee_per_gas(state.gas_price, cap)
        terms = self._terms(network, fee.most)
        if fee.most < state.gas_price + fee.priority:
            message = "Settling costs more at the moment than this wrapper's price allows."
            return terms, _refusal(message, f"{state.gas_price} wei per gas", DEAR_RETRY_S)
        watched = await self._watch(network, state)
        watched.waiting += 1
        if state.balance < fee.most * GAS_MAX * watched.waiting:
            detail = f"{self.key.address} has {state.balance} wei on {network}"
            return terms, _refusal("Payments cannot be settled now.", detail, DEAR_RETRY_S)
        return terms, None

    def spent(self, entry: Entry, wei: int | None) -> int | None:
        """What an entry's settling has cost, in its currency; never beyond the cap.

        The cost is a node's word; None where it is not known, or not in this currency any more.
        """
        if wei is None or entry.gas.currency != self.rules.currency(entry.network):
            return None
        cap = self.rules.cap_wei(entry.network, entry.amount)
        return self.rules.nano(entry.network, min(wei, cap))

    def _terms(self, network: str, per_gas: int) -> GasTerms:
        rules = self.rules
        most = rules.nano(network, per_gas * GAS_MAX)
        return GasTerms(
            rules.currency(network), most, rules.free_per_account, rules.free_shared
        )

    async def _watch(self, network: str, state: KeyState) -> _Watched:
        """Those in flight, of all processes, when the balance was read, and ours since."""
        known = self._watched.get(network)
        if known is None or known.state is not state:
            waiting = await self.store.in_flight(network, self._clock.now())
            known = self._watched.get(network)
            if known is None or known.state is not state:
                known = _Watched(state, waiting)
                self._watched.put(network, known)
        return known


def closed(entry: Entry, moved: Entry, spent: int | None) -> Gas:
    """The gas of an entry that has moved: given back when nothing was sent, else spent, once.

    What was sent and cannot be asked about any more has cost what was reserved.
    """
    gas = entry.gas
    is_open = moved.state in {State.CLAIMED, State.SETTLING, State.PENDING}
    if not gas.payer or gas.spent is not None or is_open:
        return gas
    if not moved.attempt.raw:
        return Gas()
    return replace(gas, spent=gas.reserved if spent is None else spent)


def _refusal(message: str, detail: str, retry_after_s: int) -> PaymentsUnavailable:
    return PaymentsUnavailable(message, detail=detail, retry_after_s=retry_after_s)
