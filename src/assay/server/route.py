"""Declares operations; every route must declare its credential.

The declaration is also its documentation: credential, answers and statuses go into the OpenAPI
document from here.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ValidationError
from starlette.datastructures import State

from assay.common.errors import InvalidRequest, Problem
from assay.server.schemas import ErrorResponse, RequestModel

ALWAYS = (400, 404, 405, 408, 413, 429, 500, 503)
"""Statuses with which any request can be answered. Source: interface.md#status-codes."""

CREATED, NOT_MODIFIED, UNAUTHORIZED, FORBIDDEN = 201, 304, 401, 403

NAME_CHARS_SHOWN = 100
"""Characters of an unknown member's name that a refusal repeats."""

Security: TypeAlias = dict[str, list[str]]
"""A security requirement object (OpenAPI 3.1, section 4.8.30): schemes that are needed together."""


@dataclass(frozen=True, slots=True, eq=False)
class Auth:
    """The credential that an operation requires, and the check of it.

    The packages that check credentials create these; each operation declares one.
    """

    name: str
    """The name shown in lists of operations."""
    security: list[Security]
    """Its description in the OpenAPI document: any one of these suffices; empty: none is needed."""
    check: Callable[[Request], Awaitable[object]]
    """Identifies the caller, and raises `ServiceError` if the credential is insufficient.

    Its result is `request.state.principal` while the operation runs.
    """
    statuses: tuple[int, ...] = (UNAUTHORIZED, FORBIDDEN)
    """Statuses of its refusals: 403 also for a suspended account, or for a key of another scope."""

    async def __call__(self, request: Request) -> None:
        """Check a request before its operation runs."""
        request.state.principal = await self.check(request)


_REFUSED: Final = {
    "content": {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorResponse.__name__}"}}
    }
}
"""A refusal in the document. It avoids `model`, for which the framework would build a validator
each: a millisecond for each of a thousand."""

_ADDITION: Final = re.compile(r"\s*Beyond the specification[^.]*\.")
"""The sentence of docstrings that says nothing to callers."""

B = TypeVar("B", bound=BaseModel)
S = TypeVar("S")
RouteHandler = Callable[..., Awaitable[object]]


def route(  # noqa: PLR0913 - everything an operation declares
    router: APIRouter,
    method: str,
    path: str,
    *,
    operation: str,
    auth: Auth,
    answers: object,
    body: type[RequestModel] | None = None,
    body_required: bool = True,
    also: tuple[int, ...] = (),
    media_types: Mapping[str, object] = MappingProxyType({}),
    created: bool = False,
    cached: bool = False,
) -> Callable[[RouteHandler], RouteHandler]:
    """Declare an operation of interface.md#operations; `also` lists statuses beyond the usual ones.

    `operation` is its id in the OpenAPI document: generated clients name their methods by it, so it
    stays when the function is renamed. `media_types` are those of a response that is not JSON, each
    with the beginning of such a response or an object; with `created` the status is 201, and with
    `cached` it is 304 for a caller with a current copy.
    """
    statuses = {*ALWAYS, *auth.statuses, *also}

    def declare(endpoint: RouteHandler) -> RouteHandler:
        router.add_api_route(
            path,
            endpoint,
            methods=[method],
            response_model=answers,
            status_code=CREATED if created else None,
            dependencies=[Depends(auth)],
            responses={
                **dict.fromkeys(sorted(statuses), _REFUSED),
                **_files(media_types),
                **({NOT_MODIFIED: {"description": "Your copy is current."}} if cached else {}),
            },
            operation_id=operation,
            summary=(endpoint.__doc__ or "").partition(".")[0],
            description=_ADDITION.sub("", cleandoc(endpoint.__doc__ or "")),
            openapi_extra=_extra(auth, body, required=body_required),
            response_class=Response if media_types else JSONResponse,
        )
        return endpoint

    return declare


def read(shape: type[B], body: bytes) -> B:
    """Parse the body as `shape`; raises `InvalidRequest` saying where and what is wrong.

    The body is read as JSON whatever its Content-Type: operations accept only JSON, callers forget
    the header, and a browser's form cannot do harm with it, because credentials are headers, never
    cookies.
    """
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise invalid_body(error) from None


def invalid_body(error: ValidationError) -> InvalidRequest:
    """Return a validation failure in our envelope; only the library's messages are passed on."""
    details = [
        Problem(("body", *(_shown(part) for part in e["loc"])), e["msg"])
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return InvalidRequest(
        "The request body is not valid; `details` says where.", details=details[:20]
    )


def _shown(part: str | int) -> str | int:
    """Return a step of a location, shortened if it is an unknown name, which callers choose."""
    return part[:NAME_CHARS_SHOWN] if isinstance(part, str) else part


def provide(state: State, services: Mapping[type[object], object]) -> None:
    """Register services by type for requests of the application with this state.

    Routes are built once a process; the state belongs to one application.
    """
    state.services = services


def service(request: Request, kind: type[S]) -> S:
    """Return the service of a type; raises `KeyError` for a type that is not registered.

    That is a mistake in the code: a test checks that every type a route uses is registered.
    """
    return request.app.state.services[kind]


def _files(media_types: Mapping[str, object]) -> dict[int | str, dict[str, Any]]:
    content = {
        kind: {
            "schema": {"type": "string" if isinstance(begins, str) else "object"},
            "example": begins,
        }
        for kind, begins in media_types.items()
    }
    return {200: {"content": content}} if content else {}


def _extra(auth: Auth, body: type[RequestModel] | None, *, required: bool) -> dict[str, Any]:
    extra: dict[str, Any] = {"security": auth.security}
    if body is not None:
        schema = {"$ref": f"#/components/schemas/{body.__name__}"}
        extra["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": schema}},
        }
    return extra
