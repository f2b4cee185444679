"""Finds the account of a request by its headers (interface.md#authentication).

Operations declare one of these checks with `route`. The operator that a check finds becomes
`request.state.principal`. It is the account of the request: it bears the request's costs, and is
the actor in the audit trail.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from fastapi import Request

from assay.accounts.allowance import operator_bearer
from assay.accounts.api_keys import ApiKeys
from assay.accounts.logins import Logins
from assay.accounts.model import (
    API_KEY_PREFIX,
    AccountSuspended,
    InvalidCredentials,
    Operator,
    Role,
    Scope,
    TotpEnrolmentRequired,
)
from assay.accounts.ports import Client
from assay.audit.service import Actor
from assay.common.costs import Bearer, Cost, CostLedger, address_bearer
from assay.common.errors import Forbidden, Unavailable
from assay.server.request_context import HeaderMap, RequestContext, exchange_of
from assay.server.route import FORBIDDEN, Auth, Security, service

KEY_SECURITY: Final[Security] = {"operatorKey": []}
TOKEN_SECURITY: Final[Security] = {"dashboardToken": []}
"""Names of the security schemes in the OpenAPI document."""


@dataclass(frozen=True, slots=True)
class AdminRule:
    """What admins need beyond their role."""

    needs_totp: bool
    """Whether each admin must have enrolled a second factor."""


# -- the account of a request ---------------------------------------------------------------------


def operator_of(exchange: RequestContext) -> Operator | None:
    """Return the operator of the request's API key or dashboard token, once it is known."""
    account = exchange.account
    return account if isinstance(account, Operator) else None


def cost_bearer(exchange: RequestContext) -> Bearer:
    """Return the bearer of the request's costs, as far as it is known now.

    Quotas are for strangers: they do not apply to Pro accounts and admins.
    """
    operator = operator_of(exchange)
    if operator is None:
        return address_bearer(exchange.client_address)
    return operator_bearer(operator.id, operator.plan, operator.role)


def count_for_address(exchange: RequestContext) -> None:
    """Count the request's costs from here on for its address, and for no operator."""
    exchange.account = exchange.counted_for = None


def actor_of(request: Request) -> Actor:
    """Return the actor for the audit trail."""
    exchange = exchange_of(request.scope)
    operator = operator_of(exchange)
    where = (exchange.client_address, exchange.request_id)
    if operator is None:
        return Actor("anonymous", None, *where)
    kind = "admin" if operator.role is Role.ADMIN else "operator"
    return Actor(kind, operator.id, *where)


def client_of(request: Request) -> Client:
    """Return the sender of the request."""
    exchange = exchange_of(request.scope)
    user_agent = exchange.headers.get("user-agent", "")
    return Client(exchange.client_address, user_agent, exchange.request_id)


# -- credentials ----------------------------------------------------------------------------------


def bearer(headers: HeaderMap) -> str:
    """Return the bearer token; raises `InvalidCredentials` without one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise InvalidCredentials("An `Authorization: Bearer ...` header is needed.")
    return token.strip()


async def operator_by_key(keys: ApiKeys, exchange: RequestContext, scope: Scope | None) -> Operator:
    """Return the operator of an API key. Raises `InvalidCredentials` and `InsufficientScope`."""
    key, digest = bearer(exchange.headers), exchange.key_digest
    operator = await keys.authenticate(key, scope, digest)
    exchange.account = operator
    return operator


async def _by_key(request: Request, scope: Scope | None) -> Operator:
    return await operator_by_key(service(request, ApiKeys), exchange_of(request.scope), scope)


async def _by_token(request: Request) -> Operator:
    """Return the operator of a dashboard token, not of an API key. Raises `InvalidCredentials`."""
    exchange = exchange_of(request.scope)
    token = bearer(exchange.headers)
    if token.startswith(API_KEY_PREFIX):
        raise InvalidCredentials("A dashboard token is needed here, not an API key: log in.")
    operator, exchange.session_id = await service(request, Logins).authenticate(token)
    exchange.account = operator
    return operator


async def _by_either(request: Request, scope: Scope | None) -> Operator:
    if bearer(exchange_of(request.scope).headers).startswith(API_KEY_PREFIX):
        return await _by_key(request, scope)
    return await _by_token(request)


async def _by_admin(request: Request) -> Operator:
    operator = await _by_token(request)
    if operator.role is not Role.ADMIN:
        raise Forbidden("This needs an account with the role admin.")
    if service(request, AdminRule).needs_totp and not operator.totp_enabled:
        raise TotpEnrolmentRequired("Admins need a second factor here: enrol one first.")
    return operator


async def _anybody(request: Request, scope: Scope | None) -> Operator | None:
    exchange = exchange_of(request.scope)
    if exchange.counted_for is None:
        return None
    try:
        return await _by_either(request, scope)
    except (InvalidCredentials, AccountSuspended, Unavailable):
        count_for_address(exchange)
        return None


# -- changes of an account: each is a row that is never removed -----------------------------------


async def _counted(request: Request, check: Callable[[Request], Awaitable[Operator]]) -> Operator:
    """Return the operator that the check finds, once the change is counted.

    Raises also `QuotaExceeded`.
    """
    operator = await check(request)
    costs = service(request, CostLedger)
    costs.require(Cost.ACCOUNT_CHANGES)
    costs.charge(Cost.ACCOUNT_CHANGES)
    return operator


async def _counted_if_changed(
    request: Request, check: Callable[[Request], Awaitable[Operator]]
) -> Operator:
    if request.method == "GET":
        return await check(request)
    return await _counted(request, check)


async def _by_token_and_password(request: Request) -> Operator:
    operator = await _by_token(request)
    service(request, CostLedger).require(Cost.ACCOUNT_CHANGES, bearer=_owner_of(request))
    return operator


def charge_owner(request: Request) -> None:
    """Count a change that the account's password has authorised, once it is made."""
    service(request, CostLedger).charge(Cost.ACCOUNT_CHANGES, 1, _owner_of(request))


def _owner_of(request: Request) -> Bearer:
    """Return the bearer of changes that need the password as well, with a quota of its own."""
    bearer_now = cost_bearer(exchange_of(request.scope))
    return Bearer(f"owner, {bearer_now.name}", bearer_now.is_limited)


# -- checks for operations ------------------------------------------------------------------------

public: Final = Auth("public", [], partial(_anybody, scope=None), statuses=())
"""No credential is needed. A valid one that is sent decides who bears the costs. One that is
invalid, or that nobody can look up now, counts for nothing: the request counts for its address."""

dashboard_token: Final = Auth(
    "dashboard token", [TOKEN_SECURITY], partial(_counted_if_changed, check=_by_token)
)
"""A dashboard token."""

token_and_password: Final = Auth(
    "dashboard token and password", [TOKEN_SECURITY], _by_token_and_password
)
"""A dashboard token, and a password that the operation checks before it calls `charge_owner`. With
such operations an owner ends a thief's access, so a stolen token must not use up their quota."""

token_for_export: Final = Auth(
    "dashboard token for export", [TOKEN_SECURITY], partial(_counted, check=_by_token)
)
"""A dashboard token, for reads that the audit trail records like changes."""

admin: Final = Auth("admin", [TOKEN_SECURITY], partial(_counted_if_changed, check=_by_admin))
"""A dashboard token of an account with the role `admin`, and with a second factor if admins need
one."""


@lru_cache(maxsize=16)
def public_within(scope: Scope) -> Auth:
    """Return a check like `public`, but an API key that is sent must have the scope."""
    check = partial(_anybody, scope=scope)
    return Auth(f"public, API key: {scope}", [], check, statuses=(FORBIDDEN,))


@lru_cache(maxsize=16)
def api_key(scope: Scope) -> Auth:
    """Return a check that requires an API key with the scope."""
    return Auth(f"API key: {scope}", [KEY_SECURITY], partial(_by_key, scope=scope))


@lru_cache(maxsize=16)
def api_key_or_token(scope: Scope) -> Auth:
    """Return a check that requires an API key with the scope, or a dashboard token."""
    either = partial(_by_either, scope=scope)
    return Auth(
        f"API key: {scope}, or dashboard token",
        [KEY_SECURITY, TOKEN_SECURITY],
        partial(_counted_if_changed, check=either),
    )
