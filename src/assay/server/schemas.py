"""JSON bodies that features share: base models, errors, pages, health.

Base models of JSON bodies: camelCase names; request bodies strict and closed.

The error body (interface.md#errors; conventions.md#error-envelope).

Lists in pages: `{items, total, limit, offset, nextCursor}`, unless the interface has an array.

A cursor says where the next page begins. It is opaque to callers, short, and parsed strictly. It
contains only what its caller has seen, so it needs no signature. A cursor that names a missing row
is 404 on every list: the reader starts again.

Health and discovery (interface.md#health-and-discovery).
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from assay.common.errors import InvalidRequest, Problem
from assay.server.errors import STATUS

Timestamp = Annotated[
    str,
    Field(json_schema_extra={"format": "date-time"}, examples=["2026-11-26T09:30:00.000Z"]),
]
"""Always formatted by `common.clock.iso`."""

# What several responses share, each with an example of it for the OpenAPI document.
RecordId = Annotated[str, Field(examples=["0198c0de-7a1b-7c3d-8e4f-5a6b7c8d9e0f"])]
EvmAddress = Annotated[str, Field(examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"])]
ShownAgentId = Annotated[str, Field(examples=["22"])]
NetworkSlug = Annotated[str, Field(examples=["ethereum"])]
NetworkSlugs = Annotated[list[str], Field(examples=[["ethereum", "base", "solana"]])]
Caip2Text = Annotated[str, Field(examples=["eip155:8453"])]
TierName = Annotated[
    str, Field(description="The letter grade, `AAA` (best) to `C`.", examples=["BAA"])
]
RiskLevelName = Annotated[
    str, Field(description="`GREEN`, `YELLOW` or `RED`, from the tier.", examples=["YELLOW"])
]
RouteName = Annotated[str, Field(examples=["prod_throttled"])]
ScoreValue = Annotated[float, Field(examples=[83.64])]
Sentences = Annotated[list[str], Field(examples=[["All 28 probes passed."]])]
Prose = Annotated[str, Field(examples=["Prices of metals."])]
UsdText = Annotated[str, Field(examples=["0.010000"])]
RateText = Annotated[str, Field(examples=["0.0125"])]
Milliseconds = Annotated[float, Field(examples=[84.2])]
Count = Annotated[int, Field(examples=[42])]
Count0 = Annotated[int, Field(examples=[0])]
Off = Annotated[bool, Field(examples=[False])]
DisplayName = Annotated[str, Field(examples=["Ada"])]
EmailText = Annotated[str, Field(examples=["you@example.com"])]
PathText = Annotated[str, Field(examples=["/quote"])]
MethodText = Annotated[str, Field(examples=["GET"])]
UrlText = Annotated[str, Field(examples=["https://api.example.com/v1"])]
HeaderName = Annotated[str, Field(examples=["x-api-key"])]
HashText = Annotated[str, Field(examples=["0x" + "5c" * 32])]
HttpStatus = Annotated[int, Field(examples=[200])]
ActorKindName = Annotated[str, Field(examples=["operator"])]
ClientAddress = Annotated[str, Field(examples=["203.0.113.7"])]


class ResponseModel(BaseModel):
    """A response body."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )


class RequestModel(BaseModel):
    """A request body: exact types, no unknown members."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


CachedReason = Annotated[
    str | None,
    Field(
        description="Why an older evaluation was used: `evaluation_quota` (gates caused as many of"
        " this agent as they may an hour), `egress_budget` (its host has had its share of"
        " requests), or `unfinished` and `indexing` (one was begun, and is finished in the"
        " background); see `evaluatedAt`.",
        exclude_if=lambda value: value is None,
    ),
]


class ErrorResponse(ResponseModel):
    """A refusal. Further members depend on the code."""

    model_config = ConfigDict(extra="allow")

    error: Annotated[str, Field(description="A slug in lower case.", examples=["invalid_request"])]
    code: Annotated[
        str, Field(description="What programs go by; more may come.", examples=list(STATUS))
    ]
    message: Annotated[
        str,
        Field(
            examples=["The request is not valid; `details` says where."],
            description="One sentence for a person.",
        ),
    ]
    request_id: Annotated[
        str,
        Field(
            examples=["0198c0de-7a1b-7c3d-8e4f-5a6b7c8d9e0f"],
            description="Also in the header x-request-id.",
        ),
    ]


T = TypeVar("T")

OFFSET_MAX: Final = 100_000
"""Largest offset in a list."""

PageCursor = Annotated[
    str | None,
    Query(
        max_length=100,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="`nextCursor` of the page before; counts before `offset` and `before`.",
    ),
]
Limit = Annotated[int, Query(ge=1, le=500, description="The most rows of a page.")]
Offset = Annotated[
    int, Query(ge=0, le=OFFSET_MAX, description="Beyond this, page by `cursor` instead.")
]

_AT = re.compile(r"at:(0|[1-9][0-9]{0,5})")
_AFTER = re.compile(r"after:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


class PageResponse(ResponseModel):
    """The fields that every page has."""

    total: Annotated[int, Field(examples=[1], description="Of all pages together.")]
    limit: Count
    """The most rows a page may have, as asked for."""
    offset: Count0
    """How many rows precede this page."""
    next_cursor: Annotated[
        str | None, Field(description="Asks for the next page as `cursor`; null on the last one.")
    ]


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One page of a list, and the values of `PageResponse`."""

    items: Sequence[T]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


def part_of(whole: Sequence[T], limit: int, offset: int, cursor: str | None) -> Part[T]:
    """Return one page of a list short enough to be read whole. Raises `InvalidRequest`."""
    start = offset_of(cursor, offset)
    shown = whole[start : start + limit]
    return Part(shown, len(whole), limit, start, cursor_at(start, len(shown), len(whole)))


def cursor_at(offset: int, shown: int, total: int) -> str | None:
    """Return the cursor of the next page in a list that is paged by offset."""
    place = offset + shown
    return encode_cursor(f"at:{place}") if shown and place < min(total, OFFSET_MAX + 1) else None


def cursor_after(last_id: str | None) -> str | None:
    """Return the cursor of the page after a row in a list that is paged by id."""
    return None if last_id is None else encode_cursor(f"after:{last_id}")


def offset_of(cursor: str | None, offset: int) -> int:
    """Return where the page begins. Raises `InvalidRequest` for a cursor of another list."""
    if cursor is None:
        return offset
    found = _AT.fullmatch(decode_cursor(cursor))
    if found is None or int(found[1]) > OFFSET_MAX:
        raise unknown_cursor()
    return int(found[1])


def before_of(cursor: str | None, before: str | None) -> str | None:
    """Return the id of the row before the page. Raises `InvalidRequest`."""
    if cursor is None:
        return before
    found = _AFTER.fullmatch(decode_cursor(cursor))
    if found is None:
        raise unknown_cursor()
    return found[1]


def encode_cursor(place: str) -> str:
    """Return an opaque cursor for a place in a list."""
    return base64.urlsafe_b64encode(place.encode()).rstrip(b"=").decode()


def decode_cursor(cursor: str) -> str:
    """Return the place that a cursor names. Raises `InvalidRequest`."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded, b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise unknown_cursor() from None


def unknown_cursor() -> InvalidRequest:
    """Return the refusal of a cursor of another list."""
    problem = Problem(("query", "cursor"), "is not a cursor of this list")
    return InvalidRequest("The request is not valid; `details` says where.", details=[problem])


class HealthResponse(ResponseModel):
    """The service is up."""

    ok: bool
    """Always true: the process answers."""
    status: Annotated[str, Field(examples=["ok"])]
    """Always `ok`; `degraded` says what does not work."""
    service: Annotated[str, Field(examples=["assay"])]
    """The service's name."""
    supported_chains: NetworkSlugs
    """Slugs of the networks that it knows."""
    default_chain: NetworkSlug
    """The network of requests that name none."""
    timestamp: Timestamp
    """When this response was made."""
    degraded: Annotated[
        list[str],
        Field(
            description="What does not work at the moment: `database`, `valkey`, `limits`,"
            " `facilitator`, `schema`, `rpc:<network>`. Absent if everything works.",
            exclude_if=lambda names: not names,
        ),
    ] = []


class ProcessResponse(ResponseModel):
    """The process answers."""

    ok: bool = True
    """Always true."""


class DiscoveryResponse(ResponseModel):
    """Where developers find things."""

    service: Annotated[str, Field(examples=["assay"])]
    """The service's name."""
    version: Annotated[str, Field(examples=["0.1.0"])]
    """The version of the service."""
    health: UrlText
    """The address of the health check."""
    openapi: UrlText
    """The address of this document."""
    docs: UrlText
    """The address of the reference for people."""
    jwks: UrlText
    """The address of the keys of decision tokens."""


class JwksResponse(ResponseModel):
    """Public keys of decision tokens (RFC 7517)."""

    keys: Annotated[
        list[dict[str, str]], Field(examples=[[{"kty": "EC", "crv": "P-256", "kid": "1"}]])
    ]
    """The public keys; a token's `kid` says which one signed it."""
