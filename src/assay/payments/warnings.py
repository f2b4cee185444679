"""What the seller of a priced wrapper should know: sentences beside an answer that refuses nothing.

To add a warning, write a function of the form `Check`, and add it where `app.wrappers` makes
`SaleWarnings`. It is asked whenever a wrapper is made, changed or listed: what it reads from a
chain must be remembered, failures included.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import TypeAlias

from assay.payments.model import PaymentNetwork


@dataclass(frozen=True, slots=True)
class SaleTerms:
    """What a wrapper with a price sells: one call, for `amount` base units, paid to `pay_to`."""

    operator_id: str
    network: PaymentNetwork
    amount: int
    pay_to: str
    """In lower case."""
    fee_rate: Decimal = Decimal(0)
    """The account's, 0 to 1."""
    work_s: float = 0.0
    """How long the upstream may take."""
    settles_first: bool = False


Check: TypeAlias = Callable[[SaleTerms], Awaitable[str | None]]
"""A warning in one sentence, or None. Raises nothing: what cannot be known now is not warned of."""


class SaleWarnings:
    """Asks every check."""

    def __init__(self, checks: Sequence[Check] = ()) -> None:
        self._checks = checks

    async def of(self, sale: SaleTerms) -> list[str]:
        """The warnings of a sale, in the order of the checks."""
        [found] = await self.of_each([sale])
        return found

    async def of_each(self, sales: Sequence[SaleTerms]) -> list[list[str]]:
        """The same of several sales, in their order.

        Every network is asked first, and all of them at once: afterwards the checks remember.
        """
        one_of_each = {sale.network.id: sale for sale in sales}.values()
        async with asyncio.TaskGroup() as group:
            for sale, check in product(one_of_each, self._checks):
                group.create_task(_asked(check, sale))
        return [
            [said for check in self._checks if (said := await check(sale)) is not None]
            for sale in sales
        ]


async def _asked(check: Check, sale: SaleTerms) -> None:
    await check(sale)
