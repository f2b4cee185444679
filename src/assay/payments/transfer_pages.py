"""An account's payouts and refunds as it reads them: in pages, and all of them in pieces."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from assay.payments.transfer_model import Transfer

EXPORTED_AT_ONCE: Final = 500
EXPORTED_MAX: Final = 1_000_000
"""Transfers of one export; the cursor of the last one's page goes on from there."""


class TransferRows(Protocol):
    """The rows of accounts, newest first."""

    async def page(
        self, operator_id: str, before: str | None, limit: int, offset: int
    ) -> Sequence[Transfer]:
        """Those after the one of the id `before`. Raises `TransferNotFound` for another's."""
        ...

    async def count(self, operator_id: str) -> int:
        """How many there are."""
        ...


class TransferPages:
    """Reads them by position: what is added meanwhile neither repeats nor hides a row."""

    def __init__(self, rows: TransferRows) -> None:
        self._rows = rows

    async def page(
        self, operator_id: str, before: str | None, limit: int, offset: int = 0
    ) -> tuple[Sequence[Transfer], int]:
        """A page, and how many rows there are in all. Raises `TransferNotFound`."""
        found = await self._rows.page(operator_id, before, limit, offset)
        return found, await self._rows.count(operator_id)

    async def export(
        self, operator_id: str, before: str | None, limit: int
    ) -> AsyncIterator[Sequence[Transfer]]:
        """Up to `limit` rows in pieces, each read when it is taken. Raises `TransferNotFound`."""
        wanted = min(limit, EXPORTED_AT_ONCE)
        first = await self._rows.page(operator_id, before, wanted, 0)
        return self._pieces(operator_id, first, min(limit, EXPORTED_MAX))

    async def _pieces(
        self, operator_id: str, piece: Sequence[Transfer], left: int
    ) -> AsyncIterator[Sequence[Transfer]]:
        while piece:
            yield piece
            left -= len(piece)
            if left <= 0 or len(piece) < EXPORTED_AT_ONCE:
                return
            wanted = min(left, EXPORTED_AT_ONCE)
            piece = await self._rows.page(operator_id, piece[-1].id, wanted, 0)
