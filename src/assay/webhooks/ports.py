"""What webhooks need of the outside."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Protocol

from assay.audit.service import AuditEntry
from assay.webhooks.model import Delivery, DeliveryState, WebhookRegistration


class WebhookStore(Protocol):
    """Registrations and deliveries.

    A delivery row is made in the transaction that stores the evaluation it tells of.
    """

    async def add(
        self, made: WebhookRegistration, keys: Sequence[str], at_most: int, note: AuditEntry
    ) -> bool:
        """Store; False when the operator has `at_most` already. `keys` are the agents', or `*`."""
        ...

    async def list(self, operator_id: str) -> Sequence[WebhookRegistration]:
        """The operator's registrations, newest first."""
        ...

    async def find(self, operator_id: str, webhook_id: str) -> WebhookRegistration | None:
        """One of the operator's registrations; None also while its account is suspended."""
        ...

    async def remove(self, operator_id: str, webhook_id: str, note: AuditEntry) -> bool:
        """Whether there was one; what is still pending for it is failed."""
        ...

    async def reseal(self, made: WebhookRegistration, note: AuditEntry) -> None:
        """Replace the sealed secret, if the operator has such a registration."""
        ...

    async def deliveries(
        self,
        operator_id: str,
        webhook_id: str | None,
        before: str | None,
        at_most: int,
        offset: int = 0,
    ) -> Sequence[Delivery]:
        """The operator's deliveries, newest first, older than the one of id `before`.

        Raises `DeliveryNotFound` when the operator has none of that id.
        """
        ...

    async def count_deliveries(self, operator_id: str, webhook_id: str | None) -> int:
        """How many there are."""
        ...

    async def deliveries_for_admin(
        self, state: DeliveryState | None, at_most: int
    ) -> Sequence[Delivery]:
        """Everybody's deliveries, newest first."""
        ...

    async def begin(
        self,
        now: datetime,
        at_most: int,
        but_not: Collection[str] = (),
        left: Callable[[str], int] | None = None,
    ) -> Sequence[Delivery]:
        """Take pending deliveries, of each operator the oldest first, none of those `but_not`.

        Operators take turns, one delivery each, wherever the last call ended; of one there are at
        most as many as `left` says. Each is `sending` when this returns, durably, and nobody else
        gets it.
        """
        ...

    async def end(
        self, delivery_id: str, state: DeliveryState, status: int | None, reason: str | None,
        now: datetime,
    ) -> None:  # fmt: skip
        """How the one attempt ended."""
        ...

    async def put_back(self, delivery: Delivery, until: datetime) -> None:
        """It was not attempted, for its receiver's budget is used up: pending until then.

        So is whatever else of its operator waits for the same domain.
        """
        ...

    async def give_up(self, created_before: datetime, now: datetime) -> int:
        """Fail what has waited for a budget since before that moment; how many."""
        ...

    async def abandon(self, begun_before: datetime, now: datetime) -> int:
        """Fail what somebody began before that moment and never ended; how many."""
        ...

    async def purge(self, ended_before: datetime) -> int:
        """Forget deliveries that ended before that moment; how many."""
        ...
