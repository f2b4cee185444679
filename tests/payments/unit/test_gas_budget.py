"""A settlement never costs more than its cap, whatever a node says; refused before the work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.chains.model import ChainUnavailable, Network
from assay.payments.gas import (
    GAS_MAX,
    WEI,
    FeePerGas,
    GasBudget,
    GasRules,
    KeyNonces,
    SoldOn,
    fee_per_gas,
)
from assay.payments.model import PaymentsUnavailable, Quote
from assay.payments.networks import ROWS, PaymentNodes
from assay.payments.outcomes import Gas
from assay.payments.sale_checks import SaleTerms, gas_price_check
from assay.payments.settling_watch import SettlingWatch
from assay.payments.x402.transaction_sender import (
    FAILED_S,
    GAS_PRICE_MAX,
    KNOWN_S,
    FeeAboveCap,
    GasPrices,
)
from tests.payments.unit.test_x402_sender import NETWORK
from tests.payments.unit.test_x402_vectors import VECTORS, entry
from tests.support.fakes.clock import FrozenClock

BASE, SEPOLIA = ROWS[0], ROWS[1]
TEMPO = "tempo"
KEY = "0x" + "ab" * 20
GWEI = 10**9
CENT = 10_000
COIN_CAP = Decimal("0.00002")


def rules(**changed: Any) -> GasRules:
    made = GasRules(
        free_per_account=100,
        free_shared=1000,
        usd={},
        cap_of_price=Decimal("0.5"),
        cap_coins={BASE.id: COIN_CAP, SEPOLIA.id: Decimal("0.01")},
    )
    return replace(made, **changed)


@dataclass
class Node:
    """What a node says, and how often it was asked."""

    price: Any = "0x4c4b40"
    balance: Any = "0xde0b6b3a7640000"
    is_down: bool = False
    asked: list[Sequence[Any]] = field(default_factory=list[Sequence[Any]])

    async def request_all(self, network: Network, asked: Sequence[Any]) -> list[Any]:
        del network
        self.asked.append(asked)
        if self.is_down:
            raise ChainUnavailable("n cannot be read right now", detail="down")
        return [self.price, self.balance]


@dataclass
class Store:
    """Only what a budget asks of its store."""

    waiting: int = 0
    highest: int = 1

    async def in_flight(self, network: str, now: datetime, since: datetime) -> int:
        del network, now, since
        return self.waiting

    async def sold(self) -> list[SoldOn]:
        return [SoldOn(BASE.id, "x402", self.highest), SoldOn(TEMPO, "mpp", 1)]


@dataclass
class Bench:
    node: Node
    clock: FrozenClock
    prices: GasPrices
    budget: GasBudget
    store: Store
    watch: SettlingWatch

    async def price_warning(self, sale: SaleTerms) -> str | None:
        return await gas_price_check(self.watch, self.budget.rules)(sale)


def bench(used: GasRules | None = None) -> Bench:
    node, clock, store = Node(), FrozenClock(), Store()
    chains = {row.id: replace(NETWORK, slug=row.id) for row in ROWS}
    prices = GasPrices(node, chains, KEY, used or rules(), clock)  # type: ignore[arg-type]
    budget = GasBudget(used or rules(), prices, store, clock)  # type: ignore[arg-type]
    watch = SettlingWatch(budget, None, PaymentNodes(node, chains), clock, store)  # type: ignore[arg-type]
    return Bench(node, clock, prices, budget, store, watch)


def quote(amount: int = CENT) -> Quote:
    return Quote(
        wrapper_id="w",
        operator_id="op",
        url="http://x.example/wrap/op/q",
        method="GET",
        path="/wrap/op/q",
        query="",
        description="",
        network=BASE,
        amount=amount,
        pay_to="0x" + "cc" * 20,
        work_s=1,
        settles_first=False,
    )


@given(price=st.integers(0, 10**30), cap=st.integers(0, 10**20))
def test_no_price_makes_a_settlement_cost_more_than_its_cap(price: int, cap: int) -> None:
    fee = fee_per_gas(price, cap)
    assert 0 <= fee.priority <= fee.most <= cap


@given(price=st.integers(1, 10**12))
def test_what_is_offered_outlasts_six_full_blocks_where_the_cap_allows(price: int) -> None:
    """A full block raises the base fee by an eighth (EIP-1559)."""
    assert fee_per_gas(price, 10**20).most >= price * 1.125**5.8


@pytest.mark.parametrize(
    ("amount", "worth", "expected"),
    [
        (CENT, {}, COIN_CAP),  # nobody knows what the coin is worth: its cap
        (1, {BASE.id: Decimal(3000)}, COIN_CAP),  # a price that pays for nothing: its cap, too
        (10**6, {BASE.id: Decimal(3000)}, Decimal("0.5") / 3000),
    ],
)
def test_the_cap_is_a_part_of_the_price_and_never_less_than_the_coins(
    amount: int, worth: Mapping[str, Decimal], expected: Decimal
) -> None:
    assert rules(usd=worth).cap_wei(BASE.id, amount) == int(expected * WEI)


def test_gas_is_counted_in_usd_where_the_coins_worth_is_known() -> None:
    known = rules(usd={BASE.id: Decimal(3000)})
    assert (known.currency(BASE.id), known.nano(BASE.id, 62_432 * 5_000_000)) == ("usd", 936_480)
    assert (rules().currency(BASE.id), rules().nano(BASE.id, GWEI + 1)) == (BASE.id, 2)


async def test_one_exchange_tells_price_and_balance_for_seconds() -> None:
    made = bench()
    for _ in range(20):
        await made.budget.offer(quote())
        await made.prices.price(BASE.id)
    assert len(made.node.asked) == 1
    assert [method for method, _ in made.node.asked[0]] == ["eth_gasPrice", "eth_getBalance"]
    made.clock.move(KNOWN_S + 1)
    await made.budget.offer(quote())
    assert len(made.node.asked) == 2


async def test_a_node_that_is_down_is_not_asked_by_each_that_waits() -> None:
    made = bench()
    made.node.is_down = True
    for _ in range(5):
        refusal = (await made.budget.offer(quote())).refusal
        assert isinstance(refusal, PaymentsUnavailable)
        assert refusal.retry_after_s
    assert len(made.node.asked) == 1
    made.node.is_down = False
    made.clock.move(FAILED_S + 0.1)
    refusal = (await made.budget.offer(quote())).refusal
    assert refusal is None


@pytest.mark.parametrize("price", [10**6 * GWEI, 900 * GWEI, GAS_PRICE_MAX + 1, 2**64])
async def test_a_node_that_lies_about_the_price_is_refused_before_the_work(price: int) -> None:
    """1,000,000 gwei spent 7 ETH on a cent."""
    made = bench()
    made.node.price = hex(price)
    offer = await made.budget.offer(quote())
    assert isinstance(offer.refusal, PaymentsUnavailable)
    assert offer.refusal.retry_after_s
    assert offer.terms is not None
    assert offer.terms.most <= COIN_CAP * 10**9


async def test_a_price_that_rises_after_the_claim_spends_no_more_than_the_cap() -> None:
    made = bench()
    one = replace(entry(VECTORS["receipts"][0]), network=BASE.id, amount=CENT)
    cap = made.budget.rules.cap_per_gas(BASE.id, CENT)
    assert made.prices.fees(one, cap * 9 // 10).most * GAS_MAX <= COIN_CAP * WEI
    with pytest.raises(FeeAboveCap):  # it could not be mined, and all behind it would wait
        made.prices.fees(one, cap + 1)


async def test_a_replacement_offers_what_is_asked_for_or_nothing() -> None:
    made = bench()
    one = replace(entry(VECTORS["receipts"][0]), network=BASE.id, amount=CENT)
    first = made.prices.fees(one, 5_000_000)
    bumped = FeePerGas(first.priority * 2, first.most * 2)
    assert made.prices.fees(one, 5_000_000, bumped) == bumped
    with pytest.raises(FeeAboveCap):
        made.prices.fees(one, 5_000_000, FeePerGas(1, 10**12))


@pytest.mark.parametrize("said", ["many", None, "-0x5", 5])
async def test_an_answer_that_is_no_number_is_an_outage(said: object) -> None:
    made = bench()
    made.node.balance = said
    with pytest.raises(ChainUnavailable):
        await made.prices.state(BASE.id)


async def test_a_key_that_cannot_pay_is_refused_before_the_work() -> None:
    """Otherwise the upstream works for nothing."""
    made = bench()
    made.node.balance = hex(0)
    refusal = (await made.budget.offer(quote())).refusal
    assert isinstance(refusal, PaymentsUnavailable)
    assert refusal.code == "payments_unavailable"
    assert KEY not in refusal.message


async def test_a_key_pays_for_what_is_in_flight_anywhere_first() -> None:
    made = bench()
    one = await made.budget.offer(quote())
    assert one.terms is not None
    made.clock.move(KNOWN_S + 1)
    made.node.balance = hex(one.terms.most * GWEI * 5)
    made.store.waiting = 3
    offers = [await made.budget.offer(quote()) for _ in range(4)]
    assert [one.refusal is None for one in offers] == [True, True, False, False]
    offers[0].drop()
    offers[0].drop()
    offers[3].drop()
    later = [await made.budget.offer(quote()) for _ in range(2)]
    assert [one.refusal is None for one in later] == [True, False]


def test_what_a_node_says_was_spent_is_believed_up_to_the_cap() -> None:
    made = bench()
    one = replace(
        entry(VECTORS["receipts"][0]),
        network=BASE.id,
        amount=CENT,
        gas=Gas("prepaid", BASE.id, 1000),
    )
    assert made.budget.spent(one, 312 * GWEI) == 312
    assert made.budget.spent(one, 7 * WEI) == COIN_CAP * 10**9
    assert made.budget.spent(one, None) is None
    assert made.budget.spent(replace(one, gas=Gas("prepaid", "usd", 1000)), 312) is None


@pytest.mark.parametrize(
    ("network", "amount", "worth", "warns"),
    [
        (BASE, 1, {}, True),
        (BASE, CENT, {}, False),
        (SEPOLIA, 1, {}, True),  # its coin is worth nothing, and the budgets are the same
        (BASE, 1000, {BASE.id: Decimal(3000)}, True),
        (BASE, 2000, {BASE.id: Decimal(3000)}, False),
        (ROWS[2], 1, {}, False),  # the payer pays for Tempo's
    ],
)
async def test_a_price_below_what_settling_costs_is_warned_of(
    network: Any, amount: int, worth: Mapping[str, Decimal], *, warns: bool
) -> None:
    made = bench(rules(usd=worth))
    said = await made.price_warning(SaleTerms("op", network, amount, "0x"))
    assert (said is not None) == warns


async def test_a_wrapper_is_made_without_a_warning_while_the_chain_cannot_be_asked() -> None:
    made = bench()
    made.node.is_down = True
    assert await made.price_warning(SaleTerms("op", BASE, 1, "0x")) is None


async def test_the_keys_address_and_balance_are_told() -> None:
    made = bench()
    (told,) = await made.watch.keys()
    assert (told.address, told.network, told.problem) == (KEY, BASE.id, "")
    assert told.state is not None
    assert told.state.balance == WEI
    assert told.payable == WEI // (fee_per_gas(5_000_000, 10**18).most * GAS_MAX)
    made.node.is_down = True
    made.clock.move(KNOWN_S + 1)
    (told,) = await made.watch.keys()
    assert (told.state, told.payable, told.problem) == (None, 0, "down")


async def test_the_key_is_judged_by_the_highest_price_that_is_sold_there() -> None:
    """Where the coin's worth is known, dear calls settle at gas that cheap ones cannot pay."""
    made = bench(rules(usd={BASE.id: Decimal(1)}))
    made.node.price = hex(10 * GWEI)
    (told,) = await made.watch.keys()
    assert told.payable == 0
    assert "gas costs more" in told.problem
    made.store.highest = 10**6
    (told,) = await made.watch.keys()
    assert told.problem == ""
    assert told.payable > 0


STORE: Any = Store()


class Nodes:
    """Those of the networks that answer."""

    def __init__(self, *answering: str) -> None:
        self._answering = answering

    async def check(self, network: str) -> None:
        if network not in self._answering:
            raise ChainUnavailable("no node answers")


class NoFacilitator:
    """One that says nothing."""

    async def supported(self) -> frozenset[str] | None:
        return None


async def test_nodes_are_asked_of_networks_where_no_key_of_ours_asks_one() -> None:
    made = bench()
    with_key = SettlingWatch(made.budget, None, Nodes(TEMPO), made.clock, STORE)
    assert await with_key.nodes() == {TEMPO: True}
    prices = GasPrices(made.node, {}, "", rules(), made.clock)  # type: ignore[arg-type]
    keyless = GasBudget(rules(), prices, made.store, made.clock)  # type: ignore[arg-type]
    unsettled = SettlingWatch(keyless, None, Nodes(BASE.id), made.clock, STORE)
    assert await unsettled.nodes() == {TEMPO: False}
    facilitated = SettlingWatch(keyless, NoFacilitator(), Nodes(BASE.id), made.clock, STORE)
    assert await facilitated.nodes() == {BASE.id: True, TEMPO: False}


async def test_however_many_ask_of_the_key_a_network_is_asked_once_in_seconds() -> None:
    made = bench()
    made.node.is_down = True
    for _ in range(100):
        await made.watch.keys()
        await made.price_warning(SaleTerms("op", BASE, 1, "0x"))
    assert len(made.node.asked) == 1


@pytest.mark.parametrize(
    ("counts", "unmined", "gap"),
    [
        (("0x5", "0x5"), 0, 0),
        (("0x3", "0x5"), 2, 0),
        (("0x3", "0x3"), 0, 2),
        (("0x9", "0x3"), 0, 0),
    ],
)
async def test_nonces_that_no_node_holds_are_a_gap(
    counts: tuple[str, str], unmined: int, gap: int
) -> None:
    made = bench()
    made.prices.note_sent(BASE.id, 4)
    made.prices.note_sent(BASE.id, 2)
    made.node.price, made.node.balance = counts
    assert await made.prices.nonces(BASE.id) == KeyNonces(unmined, gap)
    made.node.balance = "five"
    with pytest.raises(ChainUnavailable):
        await made.prices.nonces(BASE.id)


async def test_what_was_read_last_is_kept_for_metrics() -> None:
    made = bench()
    await made.watch.refresh()
    reading = made.watch.readings[BASE.id]
    assert (reading.status.address, reading.read_at_s) == (KEY, made.clock.monotonic_s())
    made.node.is_down = True
    made.clock.move(KNOWN_S + 1)
    await made.watch.refresh()
    assert made.watch.readings[BASE.id].status.state is None
    assert made.watch.readings[BASE.id].nonces is None
