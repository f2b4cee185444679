"""The states of a payment and the moves between them: one table that the ledger keeps to.

`docs/payments.md` says when each is made. A move to the same state writes something else down: a
lease, an attempt, a reason. Pure.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from assay.payments.model import PaymentState

_OPEN_MOVES: Final = frozenset(
    {PaymentState.SETTLING, PaymentState.PENDING, PaymentState.SETTLED, PaymentState.FAILED}
)

TRANSITIONS: Final[Mapping[PaymentState, frozenset[PaymentState]]] = MappingProxyType(
    {
        PaymentState.CLAIMED: frozenset(
            {
                PaymentState.CLAIMED,
                PaymentState.SETTLING,
                PaymentState.SETTLED,
                PaymentState.RELEASED,
            }
        ),
        PaymentState.SETTLING: _OPEN_MOVES,
        PaymentState.PENDING: _OPEN_MOVES,
        PaymentState.SETTLED: frozenset(
            {PaymentState.SETTLED, PaymentState.DELIVERED, PaymentState.REVERSED}
        ),
        PaymentState.DELIVERED: frozenset({PaymentState.DELIVERED, PaymentState.REVERSED}),
        PaymentState.RELEASED: frozenset(
            {PaymentState.RELEASED, PaymentState.CLAIMED, PaymentState.SETTLED}
        ),
        PaymentState.FAILED: frozenset({PaymentState.SETTLED}),
        PaymentState.REVERSED: frozenset(),
    }
)
"""From each state those that a payment may be moved to."""


class IllegalTransition(ValueError):
    """A mistake of ours: nothing is written then."""


def require_legal(before: PaymentState, after: PaymentState) -> None:
    """Raises `IllegalTransition` for a move that is not in the table."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"a payment that is {before} cannot become {after}")
