"""What a wrapper has been, on the wire."""

from typing import Annotated

from pydantic import Field, JsonValue

from assay.common.clock import iso
from assay.common.money import usd
from assay.server.schemas_base import ResponseModel, Timestamp
from assay.server.schemas_page import PageResponse
from assay.wrappers.history import Revision


class FieldChangeResponse(ResponseModel):
    """A field that was changed; of a secret only that it was there."""

    field: str
    from_: Annotated[JsonValue, Field(alias="from", description="Its value before.")]
    to: Annotated[JsonValue, Field(description="Its value since.")]


class ActorResponse(ResponseModel):
    """Who made a change: an account, one with the role admin, or the service's own terminal."""

    kind: str
    operator_id: str | None


class QuotedResponse(ResponseModel):
    """What a wrapper asked for a call."""

    price_per_call: str
    payment_protocol: str
    payment_network: str
    payout_address: str | None


class RevisionResponse(ResponseModel):
    """A wrapper as it was from one moment to the next change."""

    revision: int
    at: Timestamp
    until: Annotated[Timestamp | None, Field(description="Null: it is the newest.")]
    action: str
    actor: Annotated[
        ActorResponse | None, Field(description="Null for what is older than the history.")
    ]
    changes: list[FieldChangeResponse]
    quoted: Annotated[
        QuotedResponse | None, Field(description="Null: nobody was asked for money in that time.")
    ]


class HistoryResponse(PageResponse):
    """What a wrapper has been, newest first."""

    items: list[RevisionResponse]


def revision(found: Revision) -> RevisionResponse:
    """A revision on the wire."""
    actor, config = None, found.config
    if found.actor_kind is not None:
        actor = ActorResponse(kind=found.actor_kind, operator_id=found.actor_id)
    quoted = None
    if config.active and config.price and config.target_url:
        quoted = QuotedResponse(
            price_per_call=usd(config.price),
            payment_protocol=config.protocol,
            payment_network=config.network,
            payout_address=config.payout_address,
        )
    return RevisionResponse(
        revision=config.revision,
        at=iso(found.at),
        until=None if found.until is None else iso(found.until),
        action=found.action.removeprefix("endpoint."),
        actor=actor,
        changes=[
            FieldChangeResponse.model_validate({"field": name, "from": before, "to": after})
            for name, before, after in found.changes
        ],
        quoted=quoted,
    )
