"""A paid call that is cut at each of its steps, before and after its effect, on a real ledger.

Each test walks every step: the process is killed there, or its caller hangs up, or the answer is
lost. What stands on the disk and on the chain is then gone on with by another process.
"""

from pathlib import Path

import pytest

from tests.payments.boundary import Fault, FaultKind
from tests.payments.sales import (
    PAID,
    Prepare,
    Sale,
    cancels,
    empties_wallet,
    faults,
    is_submitted_by_a_stranger,
    nothing,
    sale,
    upstream_fails,
    upstream_refuses,
)
from tests.payments.service import Process
from tests.payments.world import Terms

SOLD = {
    "settled after the answer": Terms(),
    "settled before the answer": Terms("before"),
    "three confirmations": Terms(confirmations=3),
    "a facilitator": Terms(has_facilitator=True),
    "a facilitator, settled before": Terms("before", has_facilitator=True),
    "gas is charged": Terms(is_gas_charged=True),
}
USUAL = "settled after the answer"
"""Sold so, everything is tried that can go wrong; of the rest the slow suite tries it as well."""

LOST_MONEY = {"sent away": empties_wallet, "cancelled": cancels}
AGAIN = {
    "upstream fails": upstream_fails,
    "upstream refuses": upstream_refuses,
    "a stranger submits it": is_submitted_by_a_stranger,
}
KINDS: tuple[FaultKind, ...] = ("killed", "hung_up", "lost")
CUTS = [
    pytest.param(sold, kind, marks=() if kind == "killed" or sold == USUAL else pytest.mark.slow)
    for sold in SOLD
    for kind in KINDS
]


def cut(made: Sale, fault: Fault) -> tuple[Process, Process]:
    """The call that is cut, and the process that goes on."""
    first = made.process(fault)
    made.show(first)
    assert first.boundary.has_failed, str(fault)
    return first, made.process()


@pytest.mark.slow
@pytest.mark.parametrize(("sold", "kind"), CUTS)
def test_who_comes_again_is_served_and_pays_once(folder: Path, sold: str, kind: FaultKind) -> None:
    terms = SOLD[sold]
    for fault in faults(folder, terms, nothing, kind):
        with sale(folder, terms, nothing) as made:
            first, second = cut(made, fault)
            reply = made.comes_again(second, first)
            made.is_served_and_paid_once(reply)
            made.steal(second)
            made.ends(second, first)
            made.books_agree(second)
            assert made.show(second) == reply, str(fault)


@pytest.mark.parametrize(("sold", "kind"), CUTS)
def test_who_does_not_come_again_is_charged_at_most_for_what_is_kept(
    folder: Path, sold: str, kind: FaultKind
) -> None:
    terms = SOLD[sold]
    for fault in faults(folder, terms, nothing, kind):
        with sale(folder, terms, nothing) as made:
            first, second = cut(made, fault)
            made.ends(second, first)
            made.books_agree(second)
            reply = made.comes_again(second, first)
            if {state for state, _ in made.states()} & PAID:
                made.is_served_and_paid_once(reply)
            else:
                made.is_charged_nothing(reply)


@pytest.mark.parametrize("how", LOST_MONEY)
@pytest.mark.parametrize("sold", [USUAL, "a facilitator"])
def test_who_cannot_pay_any_more_gets_nothing_wherever_it_is_cut(
    folder: Path, sold: str, how: str
) -> None:
    terms, prepare = SOLD[sold], LOST_MONEY[how]
    for fault in faults(folder, terms, prepare, "killed"):
        with sale(folder, terms, prepare) as made:
            first, second = cut(made, fault)
            reply = made.comes_again(second, first)
            made.is_charged_nothing(reply)
            made.ends(second, first)
            made.books_agree(second)


@pytest.mark.parametrize("what", AGAIN)
def test_what_failed_once_is_bought_with_the_same_payment_wherever_it_is_cut(
    folder: Path, what: str
) -> None:
    prepare: Prepare = AGAIN[what]
    for fault in faults(folder, Terms(), prepare, "killed"):
        with sale(folder, Terms(), prepare) as made:
            first, second = cut(made, fault)
            made.is_served_and_paid_once(made.comes_again(second, first))
            made.ends(second, first)
            made.books_agree(second)
