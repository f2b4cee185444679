"""Base models of JSON bodies: camelCase names; request bodies strict and closed."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""Always formatted by `common.clock.iso`."""


class ResponseModel(BaseModel):
    """A response body."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, serialize_by_alias=True
    )


class RequestModel(BaseModel):
    """A request body: exact types, no unknown members."""

    model_config = ConfigDict(
        alias_generator=to_camel, frozen=True, strict=True, extra="forbid", allow_inf_nan=False
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
