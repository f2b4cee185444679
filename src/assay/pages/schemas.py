"""What programs get at the address of the service itself."""

from typing import Annotated

from pydantic import Field

from assay.server.schemas import ResponseModel, UrlText


class HomeResponse(ResponseModel):
    """Where programs find what they can ask."""

    service: Annotated[str, Field(examples=["assay"])]
    """The service's name."""
    about: str
    """What it is, in a sentence or two."""
    docs: UrlText
    """The reference for people."""
    openapi: UrlText
    """The OpenAPI document."""
    agents: UrlText
    """The list of evaluated agents."""
    guide: UrlText
    """The service explained to a language model."""
