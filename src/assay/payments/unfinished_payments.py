"""What finishing payments needs of the ledger beyond moving them one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol as Port

from assay.payments.model import LedgerEntry
from assay.payments.outcomes import Look


@dataclass(frozen=True, slots=True)
class Due:
    """Which unfinished entries are asked for: nobody's second comes before anybody's first."""

    network: str
    free_at: datetime
    """Their lease ended before that moment."""
    look_at: datetime | None
    """Their next look is not after that moment; None: whenever it is."""
    at_most: int
    of_payer: int
    """How many of one payer at most."""


class UnfinishedStore(Port):
    """Entries in settling or pending, many at once; durable as everything in the ledger."""

    async def lease_unfinished(self, due: Due, lease_until: datetime) -> Sequence[LedgerEntry]:
        """Those that are due, leased until then: each of them to one asker."""
        ...

    async def put_off(self, entries: Sequence[LedgerEntry]) -> None:
        """Write each as pending, with its own `reason`, `lease_until` and `look`.

        Those that have moved since they were read stay as they are.
        """
        ...

    async def put_off_all(self, leased: LedgerEntry, look: Look, reason: str) -> None:
        """Look at no unfinished entry of its network before `look.at`, which is not None.

        Whatever was leased with it, to the same moment, is pending and free, for that reason.
        """
        ...
