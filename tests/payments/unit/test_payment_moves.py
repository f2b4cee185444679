"""A payment moves as its table says, and in no other way."""

from itertools import product

import pytest

from assay.payments.model import TRANSITIONS, IllegalTransition, PaymentState, require_legal


@pytest.mark.parametrize(("before", "after"), [*product(PaymentState, PaymentState)])
def test_a_move_is_made_exactly_where_the_table_has_it(
    before: PaymentState, after: PaymentState
) -> None:
    if after in TRANSITIONS[before]:
        require_legal(before, after)
        return
    with pytest.raises(IllegalTransition, match=f"{before} cannot become {after}"):
        require_legal(before, after)
