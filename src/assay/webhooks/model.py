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
"""Those beyond it go only to who registers for them. Source: evidence.md#drift."""

REGISTRATIONS_MAX: Final = 1000
"""Of one operator. Source: interface.md#limits."""

DELIVERY_S: Final = 10.0
"""How long a receiver may take to answer. Source: interface.md#limits."""

OVER_BUDGET: Final = "budget"
"""Why a delivery failed that waited for its receiver's budget in vain."""

WAIT_S: Final = 600.0
"""How long a delivery waits for its receiver's budget before it is failed."""

AgentRef: TypeAlias = int | str
"""An agent as a filter names it: a token id as a number, or any id as a string."""


class WebhookNotFound(NotFound):
    """The operator has no registration of this id."""

    code = "webhook_not_found"


class DeliveryNotFound(NotFound):
    """The operator has no delivery of this id, or none any more."""

    code = "delivery_not_found"


class WebhookLimitReached(Conflict):
    """The operator has as many registrations as there may be."""

    code = "webhook_limit_reached"


@dataclass(frozen=True, slots=True)
class WebhookRegistration:
    """Where one operator wants to hear of evaluations; `agent_ids` None means of all agents."""

    id: str
    operator_id: str
    event: str
    url: str
    agent_ids: Sequence[AgentRef] | None
    sealed_secret: bytes | None
    """What deliveries are signed with, sealed; None for unsigned ones."""
    created_at: datetime


class DeliveryState(StrEnum):
    """pending -> sending -> sent | failed.

    `sending` is written down before the attempt: whatever happens to it, there is no second one.
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
    """The very body that is sent."""
    state: DeliveryState
    status: int | None
    reason: str | None
    created_at: datetime
    ended_at: datetime | None
    has_waited: bool = False
    """Whether it has had to wait for its receiver's budget."""
