"""From the headers of a request to the agent that asks (interface.md#agent-identity).

With it stand the checks that take an operator's credential in its place.
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
"""Names of the agent's schemes in the OpenAPI document."""


def agent_headers(headers: HeaderMap) -> AgentHeaders:
    """The identity headers of interface.md#agent-identity."""
    return AgentHeaders(
        address=headers.get("x-agent-address"),
        session=headers.get("x-agent-session"),
        signature=headers.get("x-agent-signature"),
        challenge=headers.get("x-agent-challenge"),
    )


def names_agent(headers: HeaderMap) -> bool:
    """Whether the request names an agent it speaks for."""
    return "x-agent-address" in headers


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


async def _agent(request: Request) -> AgentPrincipal:
    return await prove_agent(service(request, AgentIdentity), exchange_of(request.scope))


agent: Final = Auth("agent", [AGENT_SECURITY], _agent)
"""The agent that proves its address; the principal is an `AgentPrincipal`."""


@lru_cache(maxsize=16)
def api_key_or_agent(scope: Scope) -> Auth:
    """The operator of an API key with the scope, else the agent: either credential is enough.

    A key that does not hold is the refusal only where no agent names itself; else it counts for
    nothing. The principal is an `Operator` or an `AgentPrincipal`.
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
