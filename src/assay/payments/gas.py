"""Decides who pays for the gas of settlements, and how much one may cost (ADR 0017).

Every settlement that our own key sends is charged to the selling operator, whatever the price:
first to a free number of settlements a day, then to the operator's prepaid gas. Gas is reserved in
the transaction that claims the payment, before the upstream is asked, and given back if nothing was
sent. A settlement that cannot be paid for, that costs more than it may, or that our key cannot
afford is refused before the upstream runs.

It also has gas accounts: what an operator has left for settling, and an admin's credits.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import Final, NamedTuple, Protocol

from assay.audit.service import TERMINAL, Actor, AuditEntry, new_entry
from assay.chains.model import ChainUnavailable
from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest
from assay.common.numbers import DECIMALS
from assay.payments.model import LedgerEntry, PaymentState, PaymentsUnavailable, Quote
from assay.payments.outcomes import NO_GAS, Gas

GAS_MAX: Final = 200_000
"""Most gas that a transfer may burn; Circle's takes less than half. Every bound on the cost of a
settlement is for this amount. Source: payment-safety.md#gas-griefing."""

USD: Final = "usd"
WEI: Final = 10**18
NANO: Final = 10**9
"""Balances are counted in billionths of their currency: for a coin, gwei."""

GAS_USUAL: Final = 65_000
"""Gas of a transfer of Circle's dollar. Source: x402.md#gas-of-a-transfer."""


class FeePerGas(NamedTuple):
    """Wei per gas: the offer beyond the base fee, and the most in all (EIP-1559)."""

    priority: int
    most: int


NO_FEE: Final = FeePerGas(0, 0)


def fee_per_gas(price: int, cap: int, at_least: FeePerGas = NO_FEE) -> FeePerGas:
    """Return twice the present price, which outlasts six full blocks (EIP-1559), at most `cap`.

    `at_least` is what a replacement must offer; beyond the cap it is not reached.
    """
    tip = max(1, min(price, price // 10 + 1))
    most = min(max(price * 2 + tip, at_least.most), cap)
    return FeePerGas(min(max(tip, at_least.priority), most), most)


@dataclass(frozen=True, slots=True)
class GasRules:
    """What the operator of the service has configured."""

    free_per_account: int
    """Free settlements of each account a UTC day."""
    free_shared: int
    """Free settlements of all self-registered accounts together."""
    usd: Mapping[str, Decimal]
    """The value of a coin in USD, by network; gas of other networks is counted in their coin."""
    cap_of_price: Decimal
    """The most that a settlement may cost, as a part of its price, if the coin's value is known;
    never less than `cap_coins`."""
    cap_coins: Mapping[str, Decimal]
    """The most that a settlement may cost in coins, by network."""

    def cap_wei(self, network: str, amount: int) -> int:
        """Return the most that settling `amount` base units may cost, in wei."""
        cap = self.cap_coins[network]
        if worth := self.usd.get(network):
            price = Decimal(amount).scaleb(-DECIMALS)
            cap = max(cap, price * self.cap_of_price / worth)
        return int(cap * WEI)

    def cap_per_gas(self, network: str, amount: int) -> int:
        """Return the most that one unit of gas may cost, in wei."""
        return self.cap_wei(network, amount) // GAS_MAX

    def currency(self, network: str) -> str:
        """Return the currency in which gas of a network is counted."""
        return USD if network in self.usd else network

    def nano(self, network: str, wei: int) -> int:
        """Return wei in billionths of the currency, rounded up."""
        cost = Decimal(wei) * self.usd.get(network, Decimal(1)) * NANO / WEI
        return int(cost.to_integral_value(ROUND_CEILING))


RETRY_S: Final = 5
UNSETTLED: Final = "Payments cannot be settled now."
DEAR_RETRY_S: Final = 60

SHARED_BELOW: Final = 2_000
"""If a key can pay for fewer settlements than this, every claim counts those of all processes.
Above it, each process counts its own beside a reading: the others would have to claim this many
within seconds."""
OVERLAP: Final = timedelta(seconds=5)
"""Seconds before a reading in which a settlement may have ended without showing in the balance:
nodes are some blocks behind, and clocks of processes differ."""


@dataclass(frozen=True, slots=True)
class KeyState:
    """What a network charges and what our key holds, in wei: gas price and balance."""

    gas_price: int
    balance: int
    read_at: datetime
    """A time not later than the question to the node."""


@dataclass(frozen=True, slots=True)
class KeyNonces:
    """How far a network is with our key's transactions."""

    unmined: int
    """Transactions that a node holds and that are in no block yet."""
    gap: int
    """Transactions that this process sent and the node does not hold: above 0, later ones wait."""


class SettlingKey(Protocol):
    """The key that settles."""

    address: str
    """The address; empty until there is a key."""

    async def state(self, network: str) -> KeyState:
        """Return the state, remembered for some seconds like failures.

        Raises `ChainUnavailable`.
        """
        ...

    async def nonces(self, network: str) -> KeyNonces:
        """Return the nonces, asked for each time. Raises `ChainUnavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class GasTerms:
    """What a claim reserves for settling, and from which budgets."""

    currency: str
    most: int
    """The reservation, in billionths of the currency."""
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
    """Billionths by currency; below zero if a settlement cost more than was reserved."""
    spent: Mapping[str, int]
    """The cost of settlements of payments claimed today, by currency, prepaid or not."""
    free_used: int
    """Free settlements used today."""
    is_self_registered: bool


@dataclass(frozen=True, slots=True)
class SoldOn:
    """A network on which wrappers sell, and the highest of their prices in base units."""

    network: str
    protocol: str
    highest: int


class GasStore(Protocol):
    """Budgets of gas. Claims reserve from them, and changes of the ledger charge them."""

    async def in_flight(self, network: str, now: datetime, since: datetime) -> int:
        """Return payments of all processes whose gas is reserved, or was spent since then."""
        ...

    async def account(self, operator_id: str, day: int) -> GasAccount:
        """Return an account's budget."""
        ...

    async def shared_used(self, day: int) -> int:
        """Return the free settlements used by all self-registered accounts together."""
        ...

    async def credit_for_admin(
        self, operator_id: str, currency: str, amount: int, entry: AuditEntry
    ) -> int:
        """Add billionths to the prepaid gas (negative: take back); return the new balance."""
        ...

    async def sold(self) -> Sequence[SoldOn]:
        """Return the networks on which an active wrapper takes payments, by their ids."""
        ...

    async def release_abandoned(self, before: datetime, limit: int) -> int:
        """Release claims with prepaid gas whose lease ended before then; return how many."""
        ...

    async def forget(self, before_day: int) -> int:
        """Remove free budgets of earlier days; return how many there were."""
        ...


@dataclass(slots=True)
class _Watched:
    """Settlements that a reading of the key's balance must still pay for."""

    state: KeyState
    waiting: int


@dataclass(slots=True)
class GasOffer:
    """What a claim reserves, and why the payment may not be settled now, if so.

    The refusal is for a new claim; a payment that was claimed before is finished.
    """

    terms: GasTerms | None = None
    refusal: PaymentsUnavailable | None = None
    watched: _Watched | None = None
    shared: Callable[[], Awaitable[PaymentsUnavailable | None]] | None = None
    """Asks what all processes have promised, if the key holds little."""

    async def require_paid(self) -> None:
        """Require that our key can pay for a stored claim beside all others.

        If two are stored at once, each counts the other, and both may be refused. Raises
        `PaymentsUnavailable`.
        """
        refusal = self.refusal
        if refusal is None and self.shared is not None:
            refusal = await self.shared()
        if refusal is not None:
            raise refusal

    def drop(self) -> None:
        """Drop the claim: our key need not pay for it."""
        if self.watched is not None:
            self.watched.waiting -= 1
            self.watched = None


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

    async def offer(self, quote: Quote) -> GasOffer:
        """Return what a claim of this quote reserves; call `drop` if the claim comes to nothing."""
        network, rules = quote.network.id, self.rules
        cap = rules.cap_per_gas(network, quote.amount)
        if not self.key.address:
            return GasOffer(
                None, _refusal("Payments cannot be settled here now.", "no key", RETRY_S)
            )
        try:
            state = await self.key.state(network)
        except ChainUnavailable as error:
            detail = error.detail or error.message
            refusal = _refusal(UNSETTLED, detail, RETRY_S)
            return GasOffer(self._terms(network, cap), refusal)
        fee = fee_per_gas(state.gas_price, cap)
        terms = self._terms(network, fee.most)
        if fee.most < state.gas_price + fee.priority:
            message = "Settling costs more at the moment than this wrapper's price allows."
            refusal = _refusal(message, f"{state.gas_price} wei per gas", DEAR_RETRY_S)
            return GasOffer(terms, refusal)
        watched = await self._watch(network, state)
        payable = state.balance // max(1, fee.most * GAS_MAX)
        if payable <= watched.waiting:
            return GasOffer(terms, self._empty(network, state))
        watched.waiting += 1
        shared = partial(self._shared, network, state, payable) if payable < SHARED_BELOW else None
        return GasOffer(terms, None, watched, shared)

    async def _shared(
        self, network: str, state: KeyState, payable: int
    ) -> PaymentsUnavailable | None:
        return (
            self._empty(network, state) if await self._promised(network, state) > payable else None
        )

    async def _promised(self, network: str, state: KeyState) -> int:
        """Return what a reading of the balance must pay for, over all processes."""
        return await self.store.in_flight(network, self._clock.now(), state.read_at - OVERLAP)

    def _empty(self, network: str, state: KeyState) -> PaymentsUnavailable:
        detail = f"{self.key.address} has {state.balance} wei on {network}"
        return _refusal(UNSETTLED, detail, DEAR_RETRY_S)

    def spent(self, entry: LedgerEntry, wei: int | None) -> int | None:
        """Return the cost of settling an entry in its currency, at most the cap.

        The cost is a node's word. Returns None if it is unknown, or no longer in this currency.
        """
        if wei is None or entry.gas.currency != self.rules.currency(entry.network):
            return None
        cap = self.rules.cap_wei(entry.network, entry.amount)
        return self.rules.nano(entry.network, min(wei, cap))

    def _terms(self, network: str, per_gas: int) -> GasTerms:
        rules = self.rules
        most = rules.nano(network, per_gas * GAS_MAX)
        return GasTerms(rules.currency(network), most, rules.free_per_account, rules.free_shared)

    async def _watch(self, network: str, state: KeyState) -> _Watched:
        """Return what all processes had in flight at the reading, and ours since."""
        known = self._watched.get(network)
        if known is None or known.state is not state:
            waiting = await self._promised(network, state)
            known = self._watched.get(network)
            if known is None or known.state is not state:
                known = _Watched(state, waiting)
                self._watched.put(network, known)
        return known


def closed(entry: LedgerEntry, moved: LedgerEntry) -> Gas:
    """Return the gas of a moved entry: given back if nothing was sent, else spent, once.

    If the cost of a sent settlement can no longer be found out, it is what was reserved.
    """
    gas = entry.gas
    is_open = moved.state in {PaymentState.CLAIMED, PaymentState.SETTLING, PaymentState.PENDING}
    if not gas.payer or gas.spent is not None or is_open:
        return gas
    if not moved.attempt.raw:
        return NO_GAS
    spent = moved.attempt.spent
    return replace(gas, spent=gas.reserved if spent is None else spent)


def _refusal(message: str, detail: str, retry_after_s: int) -> PaymentsUnavailable:
    return PaymentsUnavailable(message, detail=detail, retry_after_s=retry_after_s)


CREDIT_MAX: Final = Decimal(1_000_000)
"""Largest credit in USD or coins: a thousand such credits fit into a balance."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class GasUsage:
    """An account's budget today. What is left is never below zero."""

    account: GasAccount
    free_left: int
    """Free settlements left of the account's own."""
    shared_left: int | None
    """Free settlements left of all self-registered accounts; None if this is not one of them."""


class GasAccounts:
    """The gas accounts of operators."""

    def __init__(self, rules: GasRules, store: GasStore, clock: Clock) -> None:
        self._rules = rules
        self._store = store
        self._clock = clock

    async def usage(self, operator_id: str) -> GasUsage:
        """Return what an account may still spend today."""
        account = await self._store.account(operator_id, self._today())
        shared = None
        if account.is_self_registered:
            shared = max(0, self._rules.free_shared - await self.shared_used())
        free = max(0, self._rules.free_per_account - account.free_used)
        return GasUsage(account, free, shared)

    async def shared_used(self) -> int:
        """Return the free settlements that all self-registered accounts have used today."""
        return await self._store.shared_used(self._today())

    async def credit_for_admin(
        self, operator_id: str, amount: Decimal, network: str | None, actor: Actor = TERMINAL
    ) -> tuple[str, Decimal]:
        """Add prepaid gas to an account; return its currency and the new balance.

        The amount is in USD, or in the coin of `network` if `ASSAY_GAS_USD` does not name it. A
        negative amount takes back. Raises `InvalidRequest`.
        """
        if network is not None and network not in self._rules.cap_coins:
            known = ", ".join(self._rules.cap_coins)
            raise InvalidRequest(f"The network must be one of {known}.")
        currency = USD if network is None else self._rules.currency(network)
        nano = amount * NANO if amount.is_finite() else Decimal("NaN")
        if not nano.is_finite() or nano != nano.to_integral_value() or abs(amount) > CREDIT_MAX:
            message = f"The amount must be up to {CREDIT_MAX}, with at most nine decimals."
            raise InvalidRequest(message)
        entry = new_entry(
            *(self._clock, actor, "gas.credited", operator_id),
            amount=f"{amount:f}",
            currency=currency,
        )
        left = await self._store.credit_for_admin(operator_id, currency, int(nano), entry)
        return currency, Decimal(left) / NANO

    def _today(self) -> int:
        return int(self._clock.now().timestamp() // _DAY.total_seconds())
