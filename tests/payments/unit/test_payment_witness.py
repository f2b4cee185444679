"""What ends a payment for good, where one endpoint may lie: two have to agree."""

from collections.abc import Sequence
from typing import Any

import pytest

from assay.common.clock import SystemClock
from assay.common.errors import Unavailable
from assay.payments.finality import View, Witness
from assay.payments.model import LedgerEntry, WatchedPayment
from assay.payments.networks import payment_networks
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, Undecided
from assay.payments.ports import ProtocolDependencies
from tests.payments.unit.test_x402_vectors import VECTORS, entry

ENTRY: LedgerEntry = entry(VECTORS["receipts"][0])
PAID, EXPIRED, CANCELLED = Settled("0x" + "11" * 32), Rejected("expired_unused"), Rejected("gone")
UNSPENT, DOWN = Undecided("not used yet", is_unused=True), Undecided("nobody answers")
REFUSED = Rejected("transaction_failed")
FIRST, SECOND = "first", "second"
ALL = "every node"


class Scripted:
    """A protocol whose nodes together say what is written down; None: none of them answers."""

    def __init__(self, said: PaymentOutcome | None = None) -> None:
        self.said = said
        self.asked: list[str] = []

    async def outcomes(
        self, entries: Sequence[LedgerEntry], needs: Any, *, every_node: bool
    ) -> Sequence[PaymentOutcome]:
        assert entries == [ENTRY]
        assert needs == FIRST
        assert every_node
        self.asked.append(ALL)
        if self.said is None:
            raise Unavailable("down")
        return [self.said]


class Depths:
    """Receipts of blocks that are so deep."""

    def __init__(self, *depths: int | None) -> None:
        self.depths_told = list(depths)
        self.asked = 0

    async def depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        assert network == ENTRY.network
        self.asked += 1
        told = self.depths_told.pop(0) if len(self.depths_told) > 1 else self.depths_told[0]
        if told is None:
            raise Unavailable("down")
        return [told for _ in watched]

    agreed_depths = depths


def witness(
    protocol: Scripted,
    receipts: Depths,
    *,
    two: bool = True,
    confirmations: int = 1,
    wait_s: float = 30,
) -> Witness:
    def view(needs: Any) -> View:
        own: ProtocolDependencies = needs
        return View(own, receipts)

    others = {ENTRY.network: view(SECOND)} if two else {}
    networks = payment_networks({}, {ENTRY.network: confirmations})
    protocols: Any = {"x402": protocol}
    return Witness(networks, protocols, view(FIRST), others, SystemClock(), wait_s)


async def judged(
    found: PaymentOutcome, said: PaymentOutcome | None
) -> tuple[PaymentOutcome, list[str]]:
    protocol = Scripted(said)
    outcome = await witness(protocol, Depths(1)).judged(ENTRY, found, waits=True)
    return outcome, protocol.asked


@pytest.mark.parametrize("found", [PAID, UNSPENT, DOWN])
async def test_a_payment_that_goes_well_costs_no_question(found: PaymentOutcome) -> None:
    protocol, receipts = Scripted(), Depths(0)
    assert await witness(protocol, receipts).judged(ENTRY, found, waits=True) is found
    assert (protocol.asked, receipts.asked) == ([], 0)


@pytest.mark.parametrize("found", [EXPIRED, CANCELLED, REFUSED])
async def test_with_one_endpoint_its_word_is_the_last(found: Rejected) -> None:
    protocol = Scripted()
    alone = witness(protocol, Depths(0), two=False)
    assert await alone.judged(ENTRY, found, waits=True) is found
    assert protocol.asked == []


async def test_what_all_say_ends_it() -> None:
    assert await judged(EXPIRED, EXPIRED) == (EXPIRED, [ALL])
    assert await judged(REFUSED, UNSPENT) == (REFUSED, [ALL])


async def test_what_two_have_said_is_asked_nobody_else() -> None:
    agreed = Rejected("expired_unused", is_agreed=True)
    assert await judged(agreed, PAID) == (agreed, [])


async def test_money_that_the_second_shows_is_not_lost_to_a_lie_of_the_first() -> None:
    for lie in (EXPIRED, CANCELLED, REFUSED):
        assert (await judged(lie, PAID))[0] == PAID


async def test_while_the_second_cannot_be_asked_nothing_ends() -> None:
    for nobody in (DOWN, None):
        outcome, _ = await judged(EXPIRED, nobody)
        assert isinstance(outcome, Undecided)
        assert not outcome.is_unused


async def test_a_payment_that_only_another_view_shows_is_deep_by_its_word() -> None:
    blind, other = Depths(0), Depths(3)
    needs: Any = None
    views = View(needs, blind), {ENTRY.network: View(needs, other)}
    networks = payment_networks({}, {ENTRY.network: 3})
    deep = Witness(networks, {}, *views, SystemClock(), 0.0)
    assert await deep.judged(ENTRY, PAID, waits=False) == PAID
    assert (blind.asked, other.asked) == (1, 1)


async def test_confirmations_are_waited_for() -> None:
    receipts = Depths(1, None, 0, 2, 3)
    deep = witness(Scripted(), receipts, confirmations=3)
    assert await deep.judged(ENTRY, PAID, waits=True) == PAID
    assert receipts.asked == 5


async def test_what_is_not_deep_in_time_is_pending_and_no_refusal() -> None:
    deep = witness(Scripted(), Depths(2), confirmations=3, wait_s=0.3)
    assert await deep.judged(ENTRY, PAID, waits=False) == Undecided("2 of 3 confirmations")
    assert await deep.judged(ENTRY, PAID, waits=True) == Undecided("2 of 3 confirmations")
