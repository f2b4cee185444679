"""What the admin's views need of the outside."""

from collections.abc import Sequence
from typing import Protocol

from assay.admin.model import OperatorOverview, PlatformStats


class AdminStore(Protocol):
    """Reads across all accounts; every method is for admins only."""

    async def stats_for_admin(self, today: int) -> PlatformStats:
        """The platform's sums; `today` is a day numbered from 1970-01-01, UTC."""
        ...

    async def operators_for_admin(
        self, at_most: int, offset: int
    ) -> tuple[Sequence[OperatorOverview], int]:
        """Accounts, newest first, with their sums; and how many there are."""
        ...
