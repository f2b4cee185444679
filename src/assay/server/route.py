"""How an operation is declared: no credential, no route.

The declaration is also its documentation: credential, answers and statuses go into the OpenAPI
document from here.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ValidationError
from starlette.datastructures import State

from assay.accounts import auth as credentials
from assay.accounts.auth import Credential
from assay.accounts.clients import Client
from assay.accounts.model import Operator, Role, Scope
from assay.accounts.scopes import SCOPES, scope_of
from assay.app import App
from assay.audit.service import Actor
from assay.common.costs import Bearer, Cost, CostLedger
from assay.common.errors import InvalidRequest, Problem
from assay.server.request_context import RequestContext, exchange_of
from assay.server.schemas_base import RequestModel
from assay.server.schemas_error import ErrorResponse

ALWAYS = (400, 404, 405, 408, 413, 429, 500, 503)
"""Statuses the edge can answer any request with. Source: interface.md#status-codes."""

CREATED, UNAUTHORIZED, FORBIDDEN = 201, 401, 403

NAME_CHARS_SHOWN = 100
"""Characters of an unknown member's name that a refusal repeats."""

SECURITY: Mapping[Credential, list[dict[str, list[str]]]] = {
    Credential.NONE: [],
    Credential.OP_KEY: [{"operatorKey": []}],
    Credential.AGENT: [{"agentAddress": [], "agentSession": []}],
    Credential.JWT: [{"dashboardToken": []}],
    Credential.ADMIN: [{"dashboardToken": []}],
    Credential.OP_KEY_OR_JWT: [{"operatorKey": []}, {"dashboardToken": []}],
    Credential.OP_KEY_AND_AGENT: [{"operatorKey": [], "agentAddress": [], "agentSession": []}],
    Credential.OP_KEY_OR_AGENT: [
        {"operatorKey": []},
        {"agentAddress": [], "agentSession": []},
    ],
}
"""Names of the security schemes in the OpenAPI document."""


async def _by_key(app: App, exchange: RequestContext, scope: Scope) -> Operator:
    return await credentials.operator_by_key(app.api_keys, exchange, scope)


async def _by_token(app: App, exchange: RequestContext) -> Operator:
    return await credentials.operator_by_token(app.logins, exchange)


_CHECKS: Mapping[Credential, Callable[..., Awaitable[object]]] = {
    Credential.AGENT: credentials.agent,
    Credential.JWT: _by_token,
    Credential.ADMIN: credentials.admin,
}
_KEY_CHECKS: Mapping[Credential, Callable[..., Awaitable[object]]] = {
    Credential.OP_KEY: _by_key,
    Credential.OP_KEY_OR_AGENT: credentials.operator_or_agent,
    Credential.OP_KEY_OR_JWT: credentials.operator_by_either,
}
"""Those that take an API key, and with it the operation's scope."""

_ACCOUNT = frozenset({Credential.JWT, Credential.OP_KEY_OR_JWT, Credential.ADMIN})
"""With these an account is changed, if anything is: each change is a row that is never removed."""

_PROVEN_BY_PASSWORD = frozenset(
    {
        "POST /operator/password",
        "POST /operator/totp/disable",
        "POST /operator/totp/recovery-codes",
        "DELETE /operator/me",
    }
)
"""What an owner ends a thief's access with: a stolen token must not use up its quota first."""

_READS_THAT_ARE_NOTED = frozenset({"GET /operator/me/export"})

_REFUSED: Final = {
    "content": {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorResponse.__name__}"}}
    }
}
"""A refusal in the document. Not `model`: the framework would make a validator for each, a
millisecond for each of a thousand."""

B = TypeVar("B", bound=BaseModel)
S = TypeVar("S")
RouteHandler = Callable[..., Awaitable[object]]


def route(  # noqa: PLR0913 - everything an operation declares
    router: APIRouter,
    method: str,
    path: str,
    *,
    operation: str,
    credential: Credential,
    answers: object,
    body: type[RequestModel] | None = None,
    body_required: bool = True,
    also: tuple[int, ...] = (),
    media_types: tuple[str, ...] = (),
    created: bool = False,
) -> Callable[[RouteHandler], RouteHandler]:
    """Declare an operation of interface.md#operations; `also` lists statuses beyond the usual ones.

    `operation` is its id in the OpenAPI document: generated clients name their methods by it, so
    it stays whatever the function is called. `media_types` are those of an answer that is no JSON;
    with `created` it is a 201.
    """
    statuses = {*ALWAYS, *also}
    if credential is not Credential.NONE:
        statuses.add(UNAUTHORIZED)
        statuses.add(FORBIDDEN)  # a suspended account, or one that is no admin's
    elif f"{method} {path}" in SCOPES:
        statuses.add(FORBIDDEN)  # a key that was not issued for it

    def declare(endpoint: RouteHandler) -> RouteHandler:
        router.add_api_route(
            path,
            endpoint,
            methods=[method],
            response_model=answers,
            status_code=CREATED if created else None,
            dependencies=[Depends(_authenticate(credential, method, path))],
            responses={
                **dict.fromkeys(sorted(statuses), _REFUSED),
                **_files(media_types),
            },
            operation_id=operation,
            summary=(endpoint.__doc__ or "").partition(".")[0],
            openapi_extra=_extra(credential, body, required=body_required),
            response_class=Response if media_types else JSONResponse,
        )
        return endpoint

    return declare


def read(shape: type[B], body: bytes) -> B:
    """The body in its shape; raises `InvalidRequest` saying where and what.

    Read as JSON whatever Content-Type says: JSON is all an operation takes, callers forget the
    header, and a browser's form cannot do harm with it, for credentials are headers, never cookies.
    """
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise invalid_body(error) from None


def invalid_body(error: ValidationError) -> InvalidRequest:
    """A validation failure in our envelope; the library's own words are its messages only."""
    details = [
        Problem(("body", *(_shown(part) for part in e["loc"])), e["msg"])
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return InvalidRequest(
        "The request body is not valid; `details` says where.", details=details[:20]
    )


def _shown(part: str | int) -> str | int:
    """A step of a location; the name of an unknown member is the caller's, and of any length."""
    return part[:NAME_CHARS_SHOWN] if isinstance(part, str) else part


def provide(state: State, services: Mapping[type[object], object]) -> None:
    """Have `service` find these, by their types, for requests of the application with this state.

    Routes are built once a process; the state is each application's own.
    """
    state.services = services


def service(request: Request, kind: type[S]) -> S:
    """The one service of a type; raises `KeyError` for a type that nobody provides.

    That is a mistake in the code: a test holds every type that a route asks for to those provided.
    """
    return request.app.state.services[kind]


def actor_of(request: Request) -> Actor:
    """Who acts, for the audit trail."""
    exchange = exchange_of(request.scope)
    operator = exchange.operator
    where = (exchange.client_address, exchange.request_id)
    if operator is None:
        return Actor("anonymous", None, *where)
    kind = "admin" if operator.role is Role.ADMIN else "operator"
    return Actor(kind, operator.id, *where)


def client_of(request: Request) -> Client:
    """Where the request comes from."""
    exchange = exchange_of(request.scope)
    user_agent = exchange.headers.get("user-agent", "")
    return Client(exchange.client_address, user_agent, exchange.request_id)


def _authenticate(
    credential: Credential, method: str, path: str
) -> Callable[[Request], Awaitable[None]]:
    check = _CHECKS.get(credential)
    if credential in _KEY_CHECKS:
        check = partial(_KEY_CHECKS[credential], scope=scope_of(method, path))
    elif credential is Credential.NONE:
        check = partial(credentials.anybody, scope=SCOPES.get(f"{method} {path}"))

    async def authenticate(request: Request) -> None:
        if check is None:
            return
        app = service(request, App)
        request.state.principal = await check(app, exchange_of(request.scope))
        operation = f"{method} {path}"
        if credential not in _ACCOUNT:
            return
        if operation in _PROVEN_BY_PASSWORD:
            app.costs.require(Cost.ACCOUNT_CHANGES, bearer=_owner_of(request))
        elif method != "GET" or operation in _READS_THAT_ARE_NOTED:
            app.costs.require(Cost.ACCOUNT_CHANGES)
            app.costs.charge(Cost.ACCOUNT_CHANGES)

    return authenticate


def charge_owner(request: Request) -> None:
    """Count a change that the account's password has proven, once it is made."""
    service(request, CostLedger).charge(Cost.ACCOUNT_CHANGES, 1, _owner_of(request))


def _owner_of(request: Request) -> Bearer:
    """Who bears what needs the password as well: nobody else can use up its quota."""
    bearer = exchange_of(request.scope).bearer()
    return Bearer(f"owner, {bearer.name}", bearer.is_limited)


def _files(media_types: tuple[str, ...]) -> dict[int | str, dict[str, Any]]:
    text = {"schema": {"type": "string"}}
    return {200: {"content": dict.fromkeys(media_types, text)}} if media_types else {}


def _extra(
    credential: Credential, body: type[RequestModel] | None, *, required: bool
) -> dict[str, Any]:
    extra: dict[str, Any] = {"security": SECURITY[credential]}
    if body is not None:
        schema = {"$ref": f"#/components/schemas/{body.__name__}"}
        extra["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": schema}},
        }
    return extra
