"""Enrolled agents and deposited credentials, in requests and responses.

Request and response bodies of deposited credentials. No response contains their values.

Agents in the schedule of visits, in responses.
"""

from typing import Annotated, Literal

from pydantic import Field

from assay.common.clock import iso
from assay.evaluation.credentials import DepositedCredential
from assay.evaluation.schedule import VisitRequest
from assay.server.schemas import (
    HeaderName,
    NetworkSlug,
    PageResponse,
    Part,
    RecordId,
    RequestModel,
    ResponseModel,
    ShownAgentId,
    Timestamp,
    UrlText,
)

_CHARS_MAX = 8192
"""More than any member may have; its actual limit is reported with the other problems."""


class CredentialRequest(RequestModel):
    """The credential to deposit."""

    url: Annotated[
        str,
        Field(
            examples=["https://api.example.com/v1"],
            max_length=_CHARS_MAX,
            description="Address it is for, and all below: at the host of a declared service, under"
            " proven control.",
        ),
    ]
    place: Annotated[
        Literal["header", "query"],
        Field(description="Sent as a header, or as a parameter of the query."),
    ] = "header"
    name: Annotated[
        str,
        Field(
            examples=["authorization"],
            max_length=_CHARS_MAX,
            description="Name of the header (`Authorization`, `X-API-Key`) or of the parameter.",
        ),
    ]
    value: Annotated[
        str,
        Field(
            examples=["Bearer example"],
            max_length=_CHARS_MAX,
            description="Its value, such as `Bearer ...`. It is sealed, and shown to nobody.",
            json_schema_extra={"format": "password", "writeOnly": True},
        ),
    ]


class CredentialResponse(ResponseModel):
    """A deposited credential, without its value."""

    id: RecordId
    """Its id, a UUID."""
    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    chain: NetworkSlug
    """The agent's network, by its slug."""
    url: UrlText
    """The service that it opens."""
    place: Annotated[str, Field(examples=["header"])]
    """`header` or `query`: where it is sent."""
    name: HeaderName
    """The name of the header or parameter."""
    set_at: Timestamp
    """When it was deposited."""
    last_used_at: Annotated[
        Timestamp | None, Field(description="The last visit that had it; null before the first.")
    ]
    last_outcome: Annotated[
        str | None,
        Field(
            description="What came of it there: `entered`, `refused` (with it, too), or"
            " `not_needed` (the service answered without it, and it was not sent)."
        ),
    ]


class CredentialsResponse(PageResponse):
    """The agent's deposited credentials, oldest first."""

    items: list[CredentialResponse]
    """The rows of this page."""


class CredentialRemovedResponse(ResponseModel):
    """The credential was erased."""

    ok: bool
    """Always true in a success."""
    id: RecordId
    """Its id, a UUID."""


def credential(kept: DepositedCredential) -> CredentialResponse:
    """Return one of them as a response."""
    return CredentialResponse(
        id=kept.id,
        agent_id=kept.agent_id,
        chain=kept.chain,
        url=kept.url,
        place=kept.place,
        name=kept.name,
        set_at=iso(kept.created_at),
        last_used_at=None if kept.used_at is None else iso(kept.used_at),
        last_outcome=kept.outcome,
    )


def credentials(part: Part[DepositedCredential]) -> CredentialsResponse:
    """Return a page of an agent's credentials."""
    return CredentialsResponse(
        items=[credential(one) for one in part.items],
        total=part.total,
        limit=part.limit,
        offset=part.offset,
        next_cursor=part.next_cursor,
    )


class EnrolledResponse(ResponseModel):
    """Whether the agent is visited regularly."""

    ok: bool
    """Always true in a success."""
    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    chain: NetworkSlug
    """The agent's network, by its slug."""


class EnrolmentResponse(ResponseModel):
    """An agent for which visits were requested."""

    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    chain: NetworkSlug
    """The agent's network, by its slug."""
    since: Timestamp
    """When visits were requested."""


class EnrolmentsResponse(PageResponse):
    """Every agent the caller requested, oldest first."""

    items: list[EnrolmentResponse]
    """The rows of this page."""


def enrolments(part: Part[VisitRequest]) -> EnrolmentsResponse:
    """Return a page of a holder's requests."""
    rows = [
        EnrolmentResponse(agent_id=one.agent_id, chain=one.chain, since=iso(one.since))
        for one in part.items
    ]
    return EnrolmentsResponse(
        items=rows,
        total=part.total,
        limit=part.limit,
        offset=part.offset,
        next_cursor=part.next_cursor,
    )
