"""Webhook registrations and deliveries in requests and responses.

Source: interface.md#webhook-registration, #webhooks, #events.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from assay.common.clock import iso
from assay.server.schemas import PageResponse, RequestModel, ResponseModel, Timestamp
from assay.webhooks.model import Delivery, DeliveryState, WebhookRegistration
from assay.webhooks.receiver_proof import Verification
from assay.webhooks.service import AGENTS_MAX, URL_CHARS_MAX, NewWebhook

State = Literal["pending", "sent", "failed"]

_SHOWN: Mapping[DeliveryState, State] = {
    DeliveryState.PENDING: "pending",
    DeliveryState.SENDING: "pending",
    DeliveryState.SENT: "sent",
    DeliveryState.FAILED: "failed",
}

AgentRef = int | Annotated[str, Field(max_length=100)]


class WebhookRequest(RequestModel):
    """The receiver of events about evaluations. With a `secret`, deliveries are signed."""

    event: Literal["evaluation_complete", "grade_changed", "agent_drift"]
    url: Annotated[
        str, Field(max_length=URL_CHARS_MAX, examples=["https://hooks.example.com/assay"])
    ]
    agent_ids: Annotated[list[AgentRef], Field(max_length=AGENTS_MAX)] | None = None
    secret: Annotated[str | None, Field(max_length=200, json_schema_extra={"writeOnly": True})] = (
        None
    )

    def new(self) -> NewWebhook:
        """Return it as the use case takes it."""
        return NewWebhook(self.event, self.url, self.agent_ids, self.secret)


class WebhookResponse(ResponseModel):
    """A registration; its secret is never shown, `signed` says whether it has one.

    Source: interface.md#webhook-registration.
    """

    id: str
    event: str
    url: str
    agent_ids: list[int | str] | None
    signed: bool
    verification_url: Annotated[
        str | None,
        Field(description="Where the receiver may show `verificationToken`, on a line of its own."),
    ]
    verification_token: Annotated[
        str | None,
        Field(description="Shown there, it gives the receiver a budget of deliveries of its own."),
    ]
    created_at: Timestamp


class RemovedResponse(ResponseModel):
    """The registration is gone."""

    ok: bool
    id: str


class DeliveryResponse(ResponseModel):
    """One event for one registration: `pending`, then `sent` or `failed`, and never again."""

    id: str
    webhook_id: str
    url: str
    agent_id: str
    state: State
    status: int | None
    reason: str | None
    created_at: Timestamp
    ended_at: Timestamp | None
    payload: dict[str, Any]


class WebhooksResponse(PageResponse):
    """A page of registrations, newest first."""

    items: list[WebhookResponse]


class DeliveriesResponse(PageResponse):
    """A page of deliveries, newest first. `deliveries` and `nextBefore` are earlier names."""

    items: list[DeliveryResponse]
    deliveries: list[DeliveryResponse]
    next_before: str | None


class WebhookVerifiedResponse(ResponseModel):
    """Whether the receiver showed the account's token just now."""

    id: str
    verified: bool


def webhook(found: WebhookRegistration, shown: Verification | None) -> WebhookResponse:
    """Return a registration as a response, with what its receiver may show."""
    return WebhookResponse(
        id=found.id,
        event=found.event,
        url=found.url,
        agent_ids=None if found.agent_ids is None else list(found.agent_ids),
        signed=found.sealed_secret is not None,
        verification_url=None if shown is None else shown.url,
        verification_token=None if shown is None else shown.token,
        created_at=iso(found.created_at),
    )


def delivery(found: Delivery) -> DeliveryResponse:
    """Return a delivery as a response; one that is running is still pending."""
    return DeliveryResponse(
        id=found.id,
        webhook_id=found.webhook_id,
        url=found.url,
        agent_id=found.agent_id,
        state=_SHOWN[found.state],
        status=found.status,
        reason=found.reason,
        created_at=iso(found.created_at),
        ended_at=None if found.ended_at is None else iso(found.ended_at),
        payload=json.loads(found.payload),
    )
