"""What the admin's views need of the outside."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from assay.admin.model import OperatorOverview, PlatformStats
from assay.audit.service import AuditEntry


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


class AccountEnd(Protocol):
    """Erases what is personal of an account, and ends everything that acts for it."""

    async def erase(
        self, operator_id: str, at: datetime, origin_until: datetime, note: AuditEntry
    ) -> None:
        """End the account, in one transaction.

        Personal fields are erased, keys and sessions void, wrappers deactivated, webhooks removed;
        calls and payments stay under the account's id, which is a pseudonym from then on. The hash
        of the network that signed up goes too, unless that was after `origin_until`.

        Raises `OperatorNotFound`, and `LastAdmin` for the only admin that is not suspended.
        """
        ...
