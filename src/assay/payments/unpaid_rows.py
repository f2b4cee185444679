"""Rows of payments that move nothing: counted for the caller's network, refused beyond its quota.

Anybody can sign payments without having the money, and each is a row of the ledger before its
balance is known. Payers who have paid before are counted by themselves once strangers have used up
the quota of their address.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from assay.common.costs import NAME_CHARS_MAX, Bearer, Cost, CostLedger
from assay.payments.model import Payment, StoredResponse
from assay.payments.store import SqlLedgerStore

_COSTS: Final = (Cost.ROWS, Cost.DISK_BYTES)


class UnpaidRows:
    """Who bears the row of a payment, and counting it."""

    def __init__(self, costs: CostLedger, payers: SqlLedgerStore | None = None) -> None:
        self._costs = costs
        self._payers = payers

    async def bearer(self, payment: Payment, caller: str) -> str:
        """Who bears the row of a claim that is about to be made.

        Raises `QuotaExceeded` where nobody can; nothing is stored then.
        """
        address = Bearer(f"address {caller}"[:NAME_CHARS_MAX])
        if all(self._costs.has_left(cost, address) for cost in _COSTS):
            return address.name
        if self._payers is None or not await self._payers.has_paid(payment):
            self._costs.require(*_COSTS, bearer=address)
        payer = Bearer(f"payer {payment.payer}"[:NAME_CHARS_MAX])
        self._costs.require(*_COSTS, bearer=payer)
        return payer.name

    def count(
        self, bearer: str, stored: StoredResponse | None = None, *, is_new: bool = True
    ) -> None:
        """Count a row that moved nothing, if it is new, and the answer that was kept for it."""
        if not bearer:
            return
        if is_new:
            self._costs.charge(Cost.ROWS, 1, Bearer(bearer))
        if stored is not None:
            self._costs.charge(Cost.ROWS, 1, Bearer(bearer))
            self._costs.charge(Cost.DISK_BYTES, len(stored.body), Bearer(bearer))

    @contextmanager
    def unless_it_holds(
        self, bearer: str, stored: StoredResponse | None = None, *, is_new: bool = True
    ) -> Generator[None]:
        """Count the row if what is done meanwhile fails, whatever becomes of it later."""
        try:
            yield
        except BaseException:
            self.count(bearer, stored, is_new=is_new)
            raise
