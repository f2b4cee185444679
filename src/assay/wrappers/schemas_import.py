"""The import of an OpenAPI document, in requests and responses."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from assay.server.schemas import Prose, RecordId, ResponseModel, UrlText
from assay.wrappers.matching import METHOD_CHARS_MAX, PATH_CHARS_MAX
from assay.wrappers.model import WrapperConfig
from assay.wrappers.openapi_import import ImportedOperation, OpenApiImport
from assay.wrappers.openapi_operations import OPERATIONS_MAX
from assay.wrappers.openapi_text import REQUEST
from assay.wrappers.schemas import EndpointTerms

_NAME_CHARS_MAX = METHOD_CHARS_MAX + 1 + PATH_CHARS_MAX

OperationText = Annotated[str, Field(examples=["GET /pets/{petId}"])]


class EndpointImport(EndpointTerms):
    """A document, and the terms of every wrapper that is made of it."""

    document: Annotated[
        str,
        Field(
            max_length=REQUEST.bytes_max,
            examples=['{"openapi": "3.1.0", "paths": {"/quote": {"get": {}}}}'],
        ),
    ]
    """The text of an OpenAPI document, version 2.0 to 3.2, as JSON or YAML."""
    operations: Annotated[
        tuple[Annotated[str, Field(max_length=_NAME_CHARS_MAX)], ...],
        Field(
            max_length=OPERATIONS_MAX,
            description="Operations other than GET to import; those of GET need not be named.",
            examples=[["POST /orders"]],
        ),
    ] = ()
    active: bool = False
    """`true` lets the new wrappers answer at once; otherwise they are drafts."""
    dry_run: bool = False
    """`true` stores nothing; the answer says what an import would do."""

    def asked(self, text: bytes) -> OpenApiImport:
        """Return what is asked for, as the use case takes it; `text` is the body's text."""
        return OpenApiImport(self.document, self.terms(text), self.operations, self.dry_run)


class ImportedWrapper(ResponseModel):
    """An operation, and its wrapper."""

    operation: OperationText
    """Method and path, as the document has them."""
    id: RecordId | None
    """The id of its wrapper; null in a dry run for one that would be new."""
    path: Annotated[str, Field(examples=["/pets/{petId}"])]
    """The wrapper's path."""
    target_url: UrlText
    """The address that calls are forwarded to."""
    active: bool
    """Whether it answers calls."""


class RefusedOperation(ResponseModel):
    """An operation of which no wrapper is made."""

    operation: OperationText
    """Method and path, as the document has them; for a part without a method, its name."""
    reason: Prose
    """Why, in a sentence."""


class ImportResponse(ResponseModel):
    """What became of every operation of the document, in its order."""

    dry_run: bool
    """Whether nothing was stored."""
    created: list[ImportedWrapper]
    """The new wrappers."""
    existing: list[ImportedWrapper]
    """Wrappers that have the operation's method and path already; they stay as they are."""
    refused: list[RefusedOperation]
    """The operations without a wrapper, each with the reason."""


def imported(results: Sequence[ImportedOperation], *, dry_run: bool) -> ImportResponse:
    """Return the results of an import as a response."""
    made = [(one, one.wrapper) for one in results if one.wrapper is not None]
    return ImportResponse(
        dry_run=dry_run,
        created=[
            _wrapper(one.name, wrapper, None if dry_run else wrapper.id)
            for one, wrapper in made
            if one.is_new
        ],
        existing=[
            _wrapper(one.name, wrapper, wrapper.id) for one, wrapper in made if not one.is_new
        ],
        refused=[
            RefusedOperation(operation=one.name, reason=one.problem)
            for one in results
            if one.problem
        ],
    )


def _wrapper(operation: str, config: WrapperConfig, shown_id: str | None) -> ImportedWrapper:
    return ImportedWrapper(
        operation=operation,
        id=shown_id,
        path=config.path,
        target_url=config.target_url,
        active=config.active,
    )
