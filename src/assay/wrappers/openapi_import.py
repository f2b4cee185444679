"""Makes wrappers of the operations in an OpenAPI document (docs/wrappers.md)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from assay.audit.service import TERMINAL, Actor
from assay.common.errors import InvalidRequest, Problem
from assay.wrappers.endpoint_rules import NewEndpoint
from assay.wrappers.model import WrapperConfig
from assay.wrappers.openapi_operations import DocumentOperation, operations_of
from assay.wrappers.openapi_text import REQUEST, TextBounds, read_document
from assay.wrappers.service import Endpoints

_ANY_TARGET: Final = "https://example.com"
"""Stands for the document's servers while the other terms are validated."""


@dataclass(frozen=True, slots=True)
class ImportedOperation:
    """What became of an operation: a wrapper, or the reason why there is none."""

    name: str
    """Method and path, as the document has them."""
    wrapper: WrapperConfig | None = None
    is_new: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OpenApiImport:
    """What an operator asks for. `terms` are those of each wrapper, without method and path."""

    document: str
    terms: NewEndpoint
    """Without a target, the servers of the document are the targets."""
    named: Sequence[str] = ()
    """Operations other than GET to import, such as `POST /pets`."""
    dry_run: bool = False
    bounds: TextBounds = REQUEST


async def import_openapi(
    endpoints: Endpoints, operator_id: str, asked: OpenApiImport, actor: Actor = TERMINAL
) -> Sequence[ImportedOperation]:
    """Create a wrapper for each operation that has none, and say what became of every one.

    Raises `InvalidRequest` naming every problem of the terms, or that of the document, and what
    `Endpoints.create_missing` raises. Then nothing is stored.
    """
    terms = asked.terms
    if terms.auth_secret is not None and terms.target_url is None:
        message = "needs targetUrl: a secret is not sent where only the document says"
        problem = Problem(("body", "upstreamAuthSecret"), message)
        raise InvalidRequest("The wrappers cannot be made like this.", details=[problem])
    target = terms.target_url or _ANY_TARGET
    endpoints.preview_new(operator_id, replace(terms, path="/", target_url=target))
    found = await asyncio.to_thread(_operations, asked)
    new = [
        replace(
            terms,
            path=one.path,
            method=one.method,
            description=one.description,
            target_url=terms.target_url or one.server,
        )
        for one in found
        if not one.problem
    ]
    outcomes = iter(await endpoints.create_missing(operator_id, new, actor, dry_run=asked.dry_run))
    results: list[ImportedOperation] = []
    for one in found:
        if one.problem:
            results.append(ImportedOperation(one.name, problem=one.problem))
            continue
        made = next(outcomes)
        wrapper, is_new = made.created or made.existing, made.created is not None
        results.append(ImportedOperation(one.name, wrapper, is_new, made.problem))
    return results


def _operations(asked: OpenApiImport) -> Sequence[DocumentOperation]:
    document = read_document(asked.document, asked.bounds)
    return operations_of(document, asked.named, has_target=asked.terms.target_url is not None)
