"""The table of a payment's moves is the one that was decided, and the one that is documented."""

import re
from pathlib import Path

import pytest

from assay.payments.model import TRANSITIONS, IllegalTransition, PaymentState, require_legal

DOCUMENT = Path(__file__).parents[2] / "docs" / "payments.md"

DECIDED = {
    "claimed": "claimed settling settled released",
    "settling": "settling pending settled failed",
    "pending": "settling pending settled failed",
    "settled": "settled delivered reversed",
    "delivered": "delivered reversed",
    "released": "released claimed settled",
    "failed": "settled",
    "reversed": "",
}
"""Written down apart from the code: a move to the same state changes a lease or an attempt."""

PAIRS = [(before, after) for before in PaymentState for after in PaymentState]


def test_the_moves_of_a_payment_are_the_decided_ones() -> None:
    assert {one.value: set(found) for one, found in TRANSITIONS.items()} == {
        name: set(after.split()) for name, after in DECIDED.items()
    }


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_move_is_legal_only_where_the_table_has_it(
    before: PaymentState, after: PaymentState
) -> None:
    if after.value in DECIDED[before].split():
        require_legal(before, after)
    else:
        with pytest.raises(IllegalTransition, match=f"{before} cannot become {after}"):
            require_legal(before, after)


def test_money_that_came_in_is_never_forgotten() -> None:
    """From where it has been paid, nothing leads to where it has not but its reversal."""
    for before in (PaymentState.SETTLED, PaymentState.DELIVERED):
        assert TRANSITIONS[before] <= {
            PaymentState.SETTLED,
            PaymentState.DELIVERED,
            PaymentState.REVERSED,
        }


def test_nothing_that_was_begun_is_given_back_unasked() -> None:
    """What may have been sent ends by the chain's word alone: it is not released."""
    assert (
        PaymentState.RELEASED
        not in TRANSITIONS[PaymentState.SETTLING] | TRANSITIONS[PaymentState.PENDING]
    )


def test_every_state_is_reached() -> None:
    reached = {PaymentState.CLAIMED}
    while more := {after for one in reached for after in TRANSITIONS[one]} - reached:
        reached |= more
    assert reached == set(PaymentState)


def test_the_documented_table_is_the_one_that_is_kept() -> None:
    told: dict[PaymentState, set[PaymentState]] = {}
    for line in DOCUMENT.read_text("utf-8").partition("\n| from | to |\n")[2].splitlines()[1:]:
        if not line.startswith("| "):
            break
        _, first, second, _ = line.split("|")
        states = _states(first)
        for one in states:
            others = set(states) - {one} if "each other" in second else set[PaymentState]()
            told[one] = {*_states(second), *others}
    assert told == {one: set(found) - {one} for one, found in TRANSITIONS.items()}


def _states(text: str) -> list[PaymentState]:
    return [PaymentState(word) for word in re.findall(r"`(\w+)`", text) if word in DECIDED]
