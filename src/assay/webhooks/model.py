"""Webhook registrations and deliveries.

Source: interface.md#webhook-registration, #webhooks, #events; conventions.md#webhook-delivery.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

from assay.common.errors import Conflict, NotFound

EVENT: Final = "evaluation_complete"
"""The one event of interface.md#events."""

GRADE_CHANGED: Final = "grade_changed"
AGENT_DRIFT: Final = "agent_drift"
EVENTS: Final = (EVENT, GRADE_CHANGED, AGENT_DRIFT)
"""All events. The others go only to registrations that ask for them. Source: evidence.md#drift."""

REGISTRATIONS_MAX: Final = 1000
"""Most registrations of one operator. Source: interface.md#limits."""

DELIVERY_S: Final = 10.0
"""Longest time for a receiver's answer. Source: interface.md#limits."""

OVER_BUDGET: Final = "budget"
"""Why a delivery failed that waited too long for its receiver's budget."""

WAIT_S: Final = 600.0
"""Longest wait of a delivery for its receiver's budget."""

AgentRef: TypeAlias = int | str
"""An agent as a filter names it: a token id as a number, or any id as a string."""


class WebhookNotFound(NotFound):
    """The operator has no registration with this id."""

    code = "webhook_not_found"


class DeliveryNotFound(NotFound):
    """The operator has no delivery with this id, or no longer has it."""

    code = "delivery_not_found"


class WebhookLimitReached(Conflict):
    """The operator has as many registrations as it may have."""

    code = "webhook_limit_reached"


@dataclass(frozen=True, slots=True)
class WebhookRegistration:
    """Where one operator receives events; `agent_ids` None means all agents."""

    id: str
    operator_id: str
    event: str
    url: str
    agent_ids: Sequence[AgentRef] | None
    sealed_secret: bytes | None
    """The sealed secret that signs deliveries; None for unsigned ones."""
    created_at: datetime


class DeliveryState(StrEnum):
    """pending -> sending -> sent | failed.

    `sending` is stored before the attempt: whatever happens to it, there is no second attempt.
    """

    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event on its way to one registration."""

    id: str
    webhook_id: str
    operator_id: str
    url: str
    agent_id: str
    payload: str
    """The exact body that is sent."""
    state: DeliveryState
    status: int | None
    reason: str | None
    created_at: datetime
    ended_at: datetime | None
    has_waited: bool = False
    """Whether it had to wait for its receiver's budget."""
