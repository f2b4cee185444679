"""The error body (interface.md#errors; conventions.md#error-envelope)."""

from typing import Annotated

from pydantic import ConfigDict, Field

from assay.server.errors import STATUS
from assay.server.schemas_base import ResponseModel


class ErrorResponse(ResponseModel):
    """A refusal. Further members depend on the code."""

    model_config = ConfigDict(extra="allow")

    error: Annotated[str, Field(description="A slug in lower case.", examples=["invalid_request"])]
    code: Annotated[
        str, Field(description="What programs go by; more may come.", examples=list(STATUS))
    ]
    message: Annotated[str, Field(description="One sentence for a person.")]
    request_id: Annotated[str, Field(description="Also in the header x-request-id.")]
