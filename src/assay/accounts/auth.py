"""From the headers of a request to who is asking (interface.md#authentication)."""

from enum import StrEnum

from assay.accounts.api_keys import ApiKeys
from assay.accounts.logins import Logins
from assay.accounts.model import (
    API_KEY_PREFIX,
    AccountSuspended,
    InsufficientScope,
    InvalidCredentials,
    Operator,
    Role,
    Scope,
    TotpEnrolmentRequired,
)
from assay.app import App
from assay.common.errors import Forbidden, Unavailable
from assay.identity.model import AgentHeaders, AgentPrincipal
from assay.identity.service import AgentIdentity
from assay.server.request_context import HeaderMap, RequestContext


class Credential(StrEnum):
    """What an operation asks for. Source: interface.md#credentials-by-operation."""

    NONE = "none"
    OP_KEY = "op-key"
    AGENT = "agent"
    JWT = "JWT"
    ADMIN = "admin"
    OP_KEY_AND_AGENT = "op-key and agent"
    OP_KEY_OR_AGENT = "op-key or agent"
    OP_KEY_OR_JWT = "op-key or JWT"


def bearer(headers: HeaderMap) -> str:
    """The bearer token; raises `InvalidCredentials` without one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise InvalidCredentials("An `Authorization: Bearer ...` header is needed.")
    return token.strip()


async def operator_by_key(keys: ApiKeys, exchange: RequestContext, scope: Scope | None) -> Operator:
    """The operator of an API key. Raises `InvalidCredentials` and `InsufficientScope`."""
    key, digest = bearer(exchange.headers), exchange.key_digest
    operator = await keys.authenticate(key, scope, digest)
    exchange.operator = operator
    return operator


async def operator_by_token(logins: Logins, exchange: RequestContext) -> Operator:
    """The operator of a dashboard token; an API key is none. Raises `InvalidCredentials`."""
    token = bearer(exchange.headers)
    if token.startswith(API_KEY_PREFIX):
        raise InvalidCredentials("A dashboard token is needed here, not an API key: log in.")
    operator, exchange.session_id = await logins.authenticate(token)
    exchange.operator = operator
    return operator


async def operator_by_either(app: App, exchange: RequestContext, scope: Scope | None) -> Operator:
    """The operator of an API key or of a dashboard token.

    Raises `InvalidCredentials`, and `InsufficientScope` for a key.
    """
    if bearer(exchange.headers).startswith(API_KEY_PREFIX):
        return await operator_by_key(app.api_keys, exchange, scope)
    return await operator_by_token(app.logins, exchange)


async def anybody(app: App, exchange: RequestContext, scope: Scope | None) -> Operator | None:
    """The operator whose API key or dashboard token the request carries, though none is needed.

    One that does not hold, or that nobody can look up now, counts for nothing: the request is its
    address's. Raises `InsufficientScope` for a key.
    """
    if exchange.counted_for is None:
        return None
    try:
        return await operator_by_either(app, exchange, scope)
    except (InvalidCredentials, AccountSuspended, Unavailable):
        _count_for_address(exchange)
        return None


async def admin(app: App, exchange: RequestContext) -> Operator:
    """The operator of a dashboard token with role `admin`.

    Raises also `Forbidden`, and `TotpEnrolmentRequired` where admins need a second factor.
    """
    operator = await operator_by_token(app.logins, exchange)
    if operator.role is not Role.ADMIN:
        raise Forbidden("This needs an account with the role admin.")
    if app.settings.admin_totp == "required" and not operator.totp_enabled:
        raise TotpEnrolmentRequired("Admins need a second factor here: enrol one first.")
    return operator


def agent_headers(headers: HeaderMap) -> AgentHeaders:
    """The identity headers of interface.md#agent-identity."""
    return AgentHeaders(
        address=headers.get("x-agent-address"),
        session=headers.get("x-agent-session"),
        signature=headers.get("x-agent-signature"),
        challenge=headers.get("x-agent-challenge"),
    )


async def prove_agent(identity: AgentIdentity, exchange: RequestContext) -> AgentPrincipal:
    """The address that proved itself; raises as `AgentIdentity.prove`.

    A session that began is handed out with whatever the answer turns out to be: its challenge
    is spent.
    """
    principal = await identity.prove(agent_headers(exchange.headers))
    if principal.new_session is not None:
        token = principal.new_session.token.encode()
        exchange.answer_headers.append((b"x-agent-session", token))
    return principal


async def agent(app: App, exchange: RequestContext) -> AgentPrincipal:
    """The address that proved itself; raises as `AgentIdentity.prove`."""
    return await prove_agent(app.identity, exchange)


async def operator_or_agent(
    app: App, exchange: RequestContext, scope: Scope
) -> Operator | AgentPrincipal:
    """The operator of an API key, else the agent: either credential is enough.

    A key that does not hold is the refusal only where no agent names itself; else it counts for
    nothing. Raises as either. Source: interface.md#credentials-by-operation.
    """
    if "authorization" not in exchange.headers:
        return await prove_agent(app.identity, exchange)
    try:
        return await operator_by_key(app.api_keys, exchange, scope)
    except (InvalidCredentials, InsufficientScope, AccountSuspended):
        if not names_agent(exchange.headers):
            raise
        _count_for_address(exchange)
    return await prove_agent(app.identity, exchange)


def _count_for_address(exchange: RequestContext) -> None:
    """What the request costs from here on is no operator's."""
    exchange.operator = exchange.counted_for = None


def names_agent(headers: HeaderMap) -> bool:
    """Whether the request names an agent it speaks for."""
    return "x-agent-address" in headers
