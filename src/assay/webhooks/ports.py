"""What webhooks need from outside."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from assay.audit.service import AuditEntry
from assay.webhooks.model import Delivery, DeliveryState, WebhookRegistration


class WebhookStore(Protocol):
    """Registrations and deliveries.

    A delivery row is made in the transaction that stores its evaluation.
    """

    async def add(
        self, made: WebhookRegistration, keys: Sequence[str], limit: int, entry: AuditEntry
    ) -> bool:
        """Store it; return False if the operator has `limit` already.

        `keys` are the agents', or `*`.
        """
        ...

    async def list(self, operator_id: str) -> Sequence[WebhookRegistration]:
        """Return the operator's registrations, newest first."""
        ...

    async def find(self, operator_id: str, webhook_id: str) -> WebhookRegistration | None:
        """Return one of the operator's registrations; None also while its account is suspended."""
        ...

    async def remove(self, operator_id: str, webhook_id: str, entry: AuditEntry) -> bool:
        """Remove it and fail what is pending for it; return whether it existed."""
        ...

    async def reseal(self, made: WebhookRegistration, entry: AuditEntry) -> None:
        """Replace the sealed secret, if the operator has such a registration."""
        ...

    async def deliveries(
        self,
        operator_id: str,
        webhook_id: str | None,
        before: str | None,
        limit: int,
        offset: int = 0,
    ) -> Sequence[Delivery]:
        """Return the operator's deliveries, newest first, older than the one with id `before`.

        Raises `DeliveryNotFound` if the operator has none with that id.
        """
        ...

    async def count_deliveries(self, operator_id: str, webhook_id: str | None) -> int:
        """Return how many there are."""
        ...

    async def deliveries_for_admin(
        self, state: DeliveryState | None, limit: int
    ) -> Sequence[Delivery]:
        """Return everybody's deliveries, newest first."""
        ...

    async def claim_due(
        self,
        now: datetime,
        limit: int,
        exclude: Collection[str] = (),
        left: Callable[[str], int] | None = None,
    ) -> Sequence[Delivery]:
        """Take pending deliveries, of each operator the oldest first, none of those in `exclude`.

        Operators take turns, one delivery each, from where the last call ended. One operator has at
        most as many as `left` returns. Each delivery is durably `sending` when this returns, and
        nobody else gets it.
        """
        ...

    async def complete(
        self, delivery_id: str, state: DeliveryState, status: int | None, reason: str | None,
        now: datetime,
    ) -> None:  # fmt: skip
        """Store the result of the one attempt."""
        ...

    async def put_back(self, delivery: Delivery, until: datetime) -> None:
        """Make it pending until then: it was not attempted, its receiver's budget is used up.

        So is everything else of its operator that waits for the same domain.
        """
        ...

    async def give_up(self, created_before: datetime, now: datetime) -> int:
        """Fail what has waited for a budget since before that moment; return how many."""
        ...

    async def fail_abandoned(self, begun_before: datetime, now: datetime) -> int:
        """Fail what was begun before that moment and never ended; return how many."""
        ...

    async def purge(self, ended_before: datetime) -> int:
        """Remove deliveries that ended before that moment; return how many."""
        ...
