"""What the seller of a priced wrapper should know: sentences beside an answer that refuses nothing.

To add a warning, write a function of the form `Check`, and add it where `wiring.wrappers` makes
`SaleWarnings`. It is asked whenever a wrapper is made, changed or listed: what it reads from a
chain must be remembered, failures included.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from assay.payments.model import PaymentNetwork


@dataclass(frozen=True, slots=True)
class Sale:
    """What a wrapper with a price sells: one call, for `amount` base units, paid to `pay_to`."""

    operator_id: str
    network: PaymentNetwork
    amount: int
    pay_to: str
    """In lower case."""
    fee_rate: Decimal = Decimal(0)
    """The account's, 0 to 1."""


Check: TypeAlias = Callable[[Sale], Awaitable[str | None]]
"""A warning in one sentence, or None. Raises nothing: what cannot be known now is not warned of."""


class SaleWarnings:
    """Asks every check."""

    def __init__(self, checks: Sequence[Check] = ()) -> None:
        self._checks = checks

    async def of(self, sale: Sale) -> list[str]:
        """The warnings of a sale, in the order of the checks."""
        found = [await check(sale) for check in self._checks]
        return [sentence for sentence in found if sentence is not None]
