"""Authenticates the agent from the headers of a request (interface.md#agent-identity).

It also has the checks that accept an operator's credential instead.
"""

from functools import lru_cache
from typing import Final

from fastapi import Request

from assay.accounts.api_keys import ApiKeys
from assay.accounts.auth import KEY_SECURITY, count_for_address, operator_by_key
from assay.accounts.model import (
    AccountSuspended,
    InsufficientScope,
    InvalidCredentials,
    Operator,
    Scope,
)
from assay.identity.model import AgentHeaders, AgentPrincipal
from assay.identity.service import AgentIdentity
from assay.server.request_context import HeaderMap, RequestContext, exchange_of
from assay.server.route import Auth, Security, service

AGENT_SECURITY: Final[Security] = {"agentAddress": [], "agentSession": []}
"""Names of the agent's security schemes in the OpenAPI document."""


def agent_headers(headers: HeaderMap) -> AgentHeaders:
    """Return the identity headers of interface.md#agent-identity."""
    return AgentHeaders(
        address=headers.get("x-agent-address"),
        session=headers.get("x-agent-session"),
        signature=headers.get("x-agent-signature"),
        challenge=headers.get("x-agent-challenge"),
        signature_agent=headers.get("signature-agent")
        if '"x-agent-id"' in headers.get("signature-input", "")
        else None,
    )


def names_agent(headers: HeaderMap) -> bool:
    """Return whether the request names an agent that it acts for."""
    return "x-agent-address" in headers


async def prove_agent(identity: AgentIdentity, exchange: RequestContext) -> AgentPrincipal:
    """Return the proven address; raises like `AgentIdentity.prove`.

    A new session is sent with any response, even a refusal: its challenge is spent.
    """
    principal = await identity.prove(agent_headers(exchange.headers))
    send_session(exchange, principal)
    return principal


def send_session(exchange: RequestContext, principal: AgentPrincipal) -> None:
    """Send the session that began, if one did, with any response."""
    if principal.new_session is not None:
        token = principal.new_session.token.encode()
        exchange.answer_headers.append((b"x-agent-session", token))


async def _agent(request: Request) -> AgentPrincipal:
    return await prove_agent(service(request, AgentIdentity), exchange_of(request.scope))


agent: Final = Auth("agent", [AGENT_SECURITY], _agent)
"""Requires an agent that proves its address; the principal is an `AgentPrincipal`."""


@lru_cache(maxsize=16)
def api_key_or_agent(scope: Scope) -> Auth:
    """Require an API key with the scope, or else a proven agent.

    An invalid key is refused only if the request names no agent; otherwise it is ignored. The
    principal is an `Operator` or an `AgentPrincipal`.
    Source: interface.md#credentials-by-operation.
    """

    async def check(request: Request) -> Operator | AgentPrincipal:
        exchange = exchange_of(request.scope)
        if "authorization" not in exchange.headers:
            return await _agent(request)
        try:
            return await operator_by_key(service(request, ApiKeys), exchange, scope)
        except (InvalidCredentials, InsufficientScope, AccountSuspended):
            if not names_agent(exchange.headers):
                raise
            count_for_address(exchange)
        return await _agent(request)

    return Auth(f"API key: {scope}, or agent", [KEY_SECURITY, AGENT_SECURITY], check)
