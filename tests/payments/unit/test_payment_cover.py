"""A shortage is believed only where nothing can have been counted twice."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import pytest
from typing_extensions import override

from assay.payments.model import (
    Fees,
    InFlightAmount,
    LedgerEntry,
    PaymentClaim,
    PaymentRefused,
    PaymentSighting,
    PaymentsUnavailable,
)
from assay.payments.ports import Balances, ProtocolDependencies
from assay.payments.service import LANDING_S, require_cover
from tests.payments.unit.test_x402_vectors import VECTORS, entry
from tests.support.fakes.clock import FrozenClock

PRICE = 100
ASSET, OTHER = "0x" + "aa" * 20, "0x" + "bb" * 20


class Passing(FrozenClock):
    """A second goes by with every look at it."""

    @override
    def monotonic_s(self) -> float:
        self.move(1)
        return super().monotonic_s()


@dataclass
class Chain:
    """The protocol's side: one balance after the other, the last one for ever."""

    balances: Iterator[Balances | None]
    asked: int = 0

    async def verify(self, *_: object) -> Balances | None:
        self.asked += 1
        return next(self.balances)


@dataclass
class Counts:
    """The ledger's side, in the same way."""

    counts: Iterator[InFlightAmount]
    asked: int = 0

    async def committed(self, _: LedgerEntry) -> InFlightAmount:
        self.asked += 1
        return next(self.counts)


async def covered(
    first: InFlightAmount,
    balances: list[Balances | None],
    then: list[InFlightAmount],
    fees: Fees | None = None,
) -> tuple[int, int]:
    """How often each side was asked until it was found to be covered."""
    one = replace(entry(VECTORS["receipts"][0]), asset=ASSET, amount=PRICE, fees=fees or Fees())
    claim = PaymentClaim(one, is_ours=True, committed=first, failures=0)
    held = Chain(chain(balances, repeat(balances[-1])))
    ledger = Counts(chain(then, repeat(then[-1] if then else first)))
    nothing: Any = None
    needs = ProtocolDependencies(nothing, nothing, nothing, Passing())
    await require_cover(nothing, claim, held, needs, ledger, PaymentSighting())  # type: ignore[arg-type]
    return held.asked, ledger.asked


def dollars(amount: int) -> Balances:
    return {ASSET: amount}


async def test_enough_for_everything_is_seen_at_one_look() -> None:
    assert await covered(InFlightAmount(PRICE), [dollars(2 * PRICE)], []) == (1, 0)


async def test_a_payment_that_has_moved_already_needs_no_cover() -> None:
    assert await covered(InFlightAmount(10**9), [None], []) == (1, 0)


async def test_a_shortage_of_what_is_only_claimed_is_refused_at_once() -> None:
    with pytest.raises(PaymentRefused, match="in flight"):
        await covered(InFlightAmount(PRICE, mark=1), [dollars(2 * PRICE - 1)], [])


async def test_equal_sums_of_other_payments_are_looked_at_again() -> None:
    """One settled and another came: what the balance has lost was still counted."""
    counts = [InFlightAmount(PRICE, mark=2)]
    balances: list[Balances | None] = [dollars(PRICE), dollars(2 * PRICE)]
    assert await covered(InFlightAmount(PRICE, mark=1), balances, counts) == (2, 1)


async def test_what_was_sent_is_waited_for_and_the_chain_is_asked_once_more() -> None:
    sent, gone = InFlightAmount(PRICE, sent=1, mark=1), InFlightAmount()
    assert await covered(sent, [dollars(PRICE)], [sent, sent, gone]) == (2, 3)


async def test_what_stays_unknown_is_no_refusal() -> None:
    sent = InFlightAmount(PRICE, sent=1, mark=1)
    with pytest.raises(PaymentsUnavailable) as unknown:
        await covered(sent, [dollars(PRICE)], [sent])
    assert unknown.value.retry_after_s


async def test_it_ends_even_where_the_count_never_stands_still() -> None:
    moving = [InFlightAmount(PRICE, sent=1, mark=number) for number in range(int(LANDING_S) * 2)]
    with pytest.raises(PaymentsUnavailable):
        await covered(InFlightAmount(PRICE, sent=1), [dollars(PRICE)], moving)


@pytest.mark.parametrize(
    ("fees", "balances", "is_enough"),
    [
        (Fees(ASSET, 7), {ASSET: 2 * PRICE + 7}, True),
        (Fees(ASSET, 7), {ASSET: 2 * PRICE + 6}, False),
        (Fees(OTHER, 7), {ASSET: 2 * PRICE, OTHER: 10}, True),
        (Fees(OTHER, 7), {ASSET: 2 * PRICE, OTHER: 9}, False),
        (Fees(OTHER, 7), {ASSET: 2 * PRICE}, False),
    ],
)
async def test_fees_need_cover_in_their_own_token(
    fees: Fees, balances: Balances, *, is_enough: bool
) -> None:
    committed = InFlightAmount(PRICE, fees=3 if fees.token == OTHER else 0)
    if is_enough:
        assert await covered(committed, [balances], [], fees) == (1, 0)
    else:
        with pytest.raises(PaymentRefused):
            await covered(committed, [balances], [], fees)
