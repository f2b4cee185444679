"""Webhook registrations and deliveries in requests and responses.

Source: interface.md#webhook-registration, #webhooks, #events.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from assay.common.clock import iso
from assay.server.schemas import (
    HttpStatus,
    PageResponse,
    RecordId,
    RequestModel,
    ResponseModel,
    ShownAgentId,
    Timestamp,
)
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
    """The event to hear about."""
    url: Annotated[
        str, Field(max_length=URL_CHARS_MAX, examples=["https://hooks.example.com/assay"])
    ]
    """The receiver: an HTTPS address that is reachable from the internet."""
    agent_ids: Annotated[list[AgentRef], Field(max_length=AGENTS_MAX, examples=[["22"]])] | None = (
        None
    )
    """Agents to hear about, at most 1000; null or absent: all."""
    secret: Annotated[str | None, Field(max_length=200, json_schema_extra={"writeOnly": True})] = (
        None
    )
    """Signs deliveries (Standard Webhooks): `whsec_` and base64. Absent: unsigned."""

    def new(self) -> NewWebhook:
        """Return it as the use case takes it."""
        return NewWebhook(self.event, self.url, self.agent_ids, self.secret)


class WebhookResponse(ResponseModel):
    """A registration; its secret is never shown, `signed` says whether it has one.

    Source: interface.md#webhook-registration.
    """

    id: RecordId
    """Its id, a UUID."""
    event: Annotated[str, Field(examples=["evaluation_complete"])]
    """The event."""
    url: Annotated[str, Field(examples=["https://hooks.example.com/assay"])]
    """The receiver's address."""
    agent_ids: Annotated[list[int | str], Field(examples=[["22"]])] | None
    """Agents to hear about; null: all."""
    signed: bool
    """Whether deliveries are signed."""
    verification_url: Annotated[
        str | None,
        Field(description="Where the receiver may show `verificationToken`, on a line of its own."),
    ]
    verification_token: Annotated[
        str | None,
        Field(description="Shown there, it gives the receiver a budget of deliveries of its own."),
    ]
    created_at: Timestamp
    """When it was created."""


class RemovedResponse(ResponseModel):
    """The registration is gone."""

    ok: bool
    """Always true in a success."""
    id: RecordId
    """Its id, a UUID."""


class DeliveryResponse(ResponseModel):
    """One event for one registration: `pending`, then `sent` or `failed`, and never again."""

    id: RecordId
    """Its id, a UUID."""
    webhook_id: RecordId
    """The registration's id."""
    url: Annotated[str, Field(examples=["https://hooks.example.com/assay"])]
    """The receiver's address."""
    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    state: State
    """`pending`, then `sent` or `failed`."""
    status: HttpStatus | None
    """The receiver's HTTP status; null without a response."""
    reason: Annotated[str, Field(examples=[""])] | None
    """Why it failed; null if it did not."""
    created_at: Timestamp
    """When it was created."""
    ended_at: Timestamp | None
    """When it was sent or given up; null while pending."""
    payload: dict[str, Any]
    """What is sent."""


class WebhooksResponse(PageResponse):
    """A page of registrations, newest first."""

    items: list[WebhookResponse]
    """The rows of this page."""


class DeliveriesResponse(PageResponse):
    """A page of deliveries, newest first. `deliveries` and `nextBefore` are earlier names."""

    items: list[DeliveryResponse]
    """The rows of this page."""
    deliveries: list[DeliveryResponse]
    """`items` under its earlier name."""
    next_before: RecordId | None
    """`nextCursor` under its earlier name, as an id; null on the last page."""


class WebhookVerifiedResponse(ResponseModel):
    """Whether the receiver showed the account's token just now."""

    id: RecordId
    """Its id, a UUID."""
    verified: bool
    """Whether the receiver showed the token."""


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
