"""Who pays for the gas of settlements, and how much one may cost (decision 0017).

Every settlement that our own key sends is charged to the selling operator, whatever the price: to a
free number of settlements a day, else to what the operator has prepaid. It is reserved in the
transaction that claims the payment, before the upstream is asked, and given back when nothing was
sent. What cannot be paid for, costs more than it may, or is more than our key holds, is refused
before the upstream runs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final, Protocol

from assay.accounts.audit import Note
from assay.chains.model import ChainUnavailable
from assay.kit.cache import BoundedMap
from assay.kit.clock import Clock
from assay.payments.gas_cost import NO_GAS, Gas
from assay.payments.gas_rules import GAS_MAX, GAS_USUAL, WEI, GasRules, fee_per_gas
from assay.payments.model import DECIMALS, Entry, PaymentsUnavailable, Quote, State
from assay.payments.warnings import Sale

DAY_US: Final = 86_400_000_000
RETRY_S: Final = 5
UNSETTLED: Final = "Payments cannot be settled now."
DEAR_RETRY_S: Final = 60

LOW_PRICE: Final = Decimal("0.01")
"""USD: below it gas may cost more than the call, on a network whose coin is worth something."""
WARNING_S: Final = 2.0
"""How long making a wrapper waits for the price of gas."""


@dataclass(frozen=True, slots=True)
class KeyState:
    """What a network asks of our key now, in wei: the price of a unit of gas, and what it holds."""

    gas_price: int
    balance: int


class SettlingKey(Protocol):
    """The key that settles."""

    address: str
    """Empty until there is one."""

    async def state(self, network: str) -> KeyState:
        """Remembered for some seconds, failures too. Raises `ChainUnavailable`."""
        ...


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
    """What settlements of payments claimed today have cost, by currency, prepaid or not."""
    free_used: int
    """Free settlements of today."""
    is_self_registered: bool


class GasStore(Protocol):
    """Budgets of gas. Claims reserve from them, and moves of the ledger charge them."""

    async def in_flight(self, network: str, now: datetime) -> int:
        """Payments whose gas is reserved and not spent yet."""
        ...

    async def account(self, operator_id: str, day: int) -> GasAccount:
        """An account's budget."""
        ...

    async def shared_used(self, day: int) -> int:
        """Free settlements of all self-registered accounts together."""
        ...

    async def credit_for_admin(
        self, operator_id: str, currency: str, amount: int, note: Note
    ) -> int:
        """Add billionths to what is prepaid (below zero: take some back); what is there then."""
        ...

    async def networks_sold(self) -> Sequence[str]:
        """Networks on which an active wrapper takes payments that a key of ours may settle."""
        ...

    async def release_abandoned(self, before: datetime, at_most: int) -> int:
        """Release claims whose lease ended before then and that hold prepaid gas; how many."""
        ...

    async def forget(self, before_day: int) -> int:
        """Remove free budgets of earlier days; how many there were."""
        ...


@dataclass(frozen=True, slots=True)
class KeyStanding:
    """Our key on one network."""

    network: str
    address: str
    state: KeyState | None
    """None while the network cannot be asked."""
    payable: int
    """Settlements that it can pay for now, each at the most that it may cost."""
    problem: str
    """Why there are none, where it is not the balance."""


@dataclass(slots=True)
class _Watched:
    """Settlements that a reading of the key's balance has still to pay for."""

    state: KeyState
    waiting: int


@dataclass(slots=True)
class GasOffer:
    """What a claim reserves, and why the payment may not be settled now, if it may not.

    The refusal is for a claim that would be settled: what was claimed before is finished.
    """

    terms: GasTerms | None = None
    refusal: PaymentsUnavailable | None = None
    watched: _Watched | None = None

    def drop(self) -> None:
        """The payment is not settled: our key need not pay for it."""
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
        """What a claim of this quote reserves; `drop` it when nothing comes of it."""
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
        if state.balance < fee.most * GAS_MAX * (watched.waiting + 1):
            detail = f"{self.key.address} has {state.balance} wei on {network}"
            refusal = _refusal(UNSETTLED, detail, DEAR_RETRY_S)
            return GasOffer(terms, refusal)
        watched.waiting += 1
        return GasOffer(terms, None, watched)

    def spent(self, entry: Entry, wei: int | None) -> int | None:
        """What an entry's settling has cost, in its currency; never beyond the cap.

        The cost is a node's word; None where it is not known, or not in this currency any more.
        """
        if wei is None or entry.gas.currency != self.rules.currency(entry.network):
            return None
        cap = self.rules.cap_wei(entry.network, entry.amount)
        return self.rules.nano(entry.network, min(wei, cap))

    async def price_warning(self, sale: Sale) -> str | None:
        """That a price does not pay for what settling costs now, or may not."""
        network = sale.network
        if network.protocol != "x402" or not self.key.address:
            return None
        try:
            async with asyncio.timeout(WARNING_S):
                state = await self.key.state(network.id)
        except (ChainUnavailable, TimeoutError):
            return None
        cost = Decimal(GAS_USUAL * (state.gas_price + state.gas_price // 10)) / WEI
        price, worth = Decimal(sale.amount).scaleb(-DECIMALS), self.rules.usd.get(network.id)
        if worth is None:
            is_low = price < LOW_PRICE and not network.testnet
            told = f"about {cost:.9f} of the network's coin, whose worth is not configured here"
        else:
            is_low = price < cost * worth
            told = f"about {cost * worth:.6f} USD"
        if not is_low:
            return None
        return (
            f"Settling a payment costs {told} in gas now, and the price is {price:f} USD. This"
            f" service bears it {self.rules.free_per_account} times a day; beyond that your calls"
            " need prepaid gas."
        )

    async def key_standings(self, timeout_s: float) -> list[KeyStanding]:
        """Our key on every network where wrappers are sold."""
        if not self.key.address:
            return []
        return [
            await self._key_standing(network, timeout_s)
            for network in await self.store.networks_sold()
        ]

    async def _key_standing(self, network: str, timeout_s: float) -> KeyStanding:
        address, cap = self.key.address, self.rules.cap_coins[network]
        try:
            async with asyncio.timeout(timeout_s):
                state = await self.key.state(network)
        except ChainUnavailable as error:
            return KeyStanding(network, address, None, 0, error.detail or error.message)
        except TimeoutError:
            return KeyStanding(network, address, None, 0, f"no answer within {timeout_s:g} s")
        fee = fee_per_gas(state.gas_price, int(cap * WEI) // GAS_MAX)
        payable = state.balance // max(1, fee.most * GAS_MAX)
        if fee.most < state.gas_price + fee.priority:
            return KeyStanding(network, address, state, 0, "gas costs more than ASSAY_GAS_CAP")
        return KeyStanding(network, address, state, payable, "")

    def _terms(self, network: str, per_gas: int) -> GasTerms:
        rules = self.rules
        most = rules.nano(network, per_gas * GAS_MAX)
        return GasTerms(rules.currency(network), most, rules.free_per_account, rules.free_shared)

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


def closed(entry: Entry, moved: Entry) -> Gas:
    """The gas of an entry that has moved: given back when nothing was sent, else spent, once.

    What was sent and cannot be asked about any more has cost what was reserved.
    """
    gas = entry.gas
    is_open = moved.state in {State.CLAIMED, State.SETTLING, State.PENDING}
    if not gas.payer or gas.spent is not None or is_open:
        return gas
    if not moved.attempt.raw:
        return NO_GAS
    spent = moved.attempt.spent
    return replace(gas, spent=gas.reserved if spent is None else spent)


def _refusal(message: str, detail: str, retry_after_s: int) -> PaymentsUnavailable:
    return PaymentsUnavailable(message, detail=detail, retry_after_s=retry_after_s)
