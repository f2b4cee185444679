"""What admins see of an account, and what their views need of the outside.

What an admin sees of the whole platform (interface.md#dashboard).

What the admin's views need of the outside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.accounts.model import Operator
from assay.analytics.model import CallSums, Funnel
from assay.audit.service import AuditEntry


@dataclass(frozen=True, slots=True)
class PlatformStats:
    """Everything together. `agents` counts an agent once for every operator it called."""

    operators: int
    pro: int
    admins: int
    suspended: int
    active_keys: int
    active_endpoints: int
    agents: int
    total: CallSums
    today: CallSums
    funnel: Funnel


@dataclass(frozen=True, slots=True)
class OperatorOverview:
    """An account and its sums."""

    operator: Operator
    counted: CallSums
    agents: int
    active_keys: int
    active_endpoints: int


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
