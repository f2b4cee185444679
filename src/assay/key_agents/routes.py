"""Operations on key agents: challenge, verification, profile, session.

Source: interface.md#key-agents, #agent-identity.
"""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from assay.accounts.allowance import require
from assay.accounts.auth import api_key, public
from assay.accounts.model import Feature, Operator, PlanRequired, Scope
from assay.chains.model import parse_address
from assay.identity.auth import agent, api_key_or_agent, names_agent, prove_agent
from assay.identity.challenge import Challenges
from assay.identity.model import (
    AgentPrincipal,
    IdentityMismatch,
    IdentityRequired,
    SignatureInvalid,
)
from assay.identity.service import AgentIdentity, Sessions
from assay.key_agents import schemas as wire
from assay.key_agents.profile import KeyProfiles
from assay.registries.schemas_parameters import AgentAddress
from assay.server.request_context import RequestContext, exchange_of
from assay.server.route import read, route, service

router = APIRouter(tags=["Key agents"])


@dataclass(frozen=True, slots=True)
class AttestationPlan:
    """Where an operator is sent whose plan has no attestations."""

    upgrade_url: str


@route(
    router,
    "POST",
    "/operator/key/{agentAddress}/challenge",
    operation="challenge",
    auth=public,
    answers=wire.ChallengeResponse,
)
async def challenge(request: Request, agent_address: AgentAddress) -> wire.ChallengeResponse:
    """Create a challenge for the address: sign it within five minutes."""
    address = parse_address(agent_address, "agentAddress")
    return wire.challenge(service(request, Challenges).issue(address))


@route(
    router,
    "POST",
    "/operator/key/verify",
    operation="verify",
    auth=public,
    body=wire.VerifyRequest,
    answers=wire.KeyProfileResponse,
    also=(401,),
)
async def verify(request: Request, response: Response) -> wire.KeyProfileResponse:
    """Answer a challenge; the session comes in the header `x-agent-session`."""
    body = read(wire.VerifyRequest, await request.body())
    address = parse_address(body.agent_address, "agentAddress")
    principal = await service(request, AgentIdentity).answer(
        address, body.challenge, body.signature
    )
    if not principal.is_key_agent:
        raise SignatureInvalid("The contract accepts on another chain than key agents' own.")
    if principal.new_session is not None:
        response.headers["x-agent-session"] = principal.new_session.token
    return wire.key_profile(await service(request, KeyProfiles).profile(address))


@route(
    router,
    "GET",
    "/operator/key/{agentAddress}",
    operation="key_agent",
    auth=api_key(Scope.EVALUATE),
    answers=wire.KeyProfileResponse,
)
async def key_agent(request: Request, agent_address: AgentAddress) -> wire.KeyProfileResponse:
    """Show the profile of a key agent. A profile grants no access."""
    address = parse_address(agent_address, "agentAddress")
    return wire.key_profile(await service(request, KeyProfiles).profile(address))


@route(
    router,
    "GET",
    "/operator/key/{agentAddress}/attestation",
    operation="attestation",
    auth=api_key_or_agent(Scope.EVALUATE),
    answers=wire.AttestationContextResponse,
    also=(403,),
)
async def attestation(
    request: Request, agent_address: AgentAddress
) -> wire.AttestationContextResponse:
    """List verified profiles of the agent's owner, for a Pro operator or the agent itself."""
    address = parse_address(agent_address, "agentAddress")
    principal: Operator | AgentPrincipal = request.state.principal
    if isinstance(principal, Operator):
        principal = await _entitled(request, exchange_of(request.scope), principal)
    if isinstance(principal, AgentPrincipal) and (
        principal.address != address or not principal.is_key_agent
    ):
        raise IdentityMismatch("An agent can only ask for its own attestation.")
    found = await service(request, KeyProfiles).attestation(address)
    return wire.AttestationContextResponse(
        agent_address=address, attestation=wire.attestation(found)
    )


@route(
    router,
    "DELETE",
    "/operator/key/{agentAddress}/session",
    operation="end_session",
    auth=agent,
    answers=wire.AgentSessionEnded,
)
async def end_session(request: Request, agent_address: AgentAddress) -> wire.AgentSessionEnded:
    """End the session of the request. Beyond the specification."""
    address = parse_address(agent_address, "agentAddress")
    principal: AgentPrincipal = request.state.principal
    token = exchange_of(request.scope).headers.get("x-agent-session")
    if token is None:
        raise IdentityRequired("Send the session to end as x-agent-session.")
    if principal.address != address:
        raise IdentityMismatch("A session can only be ended by its own address.")
    await service(request, Sessions).revoke(address, token)
    return wire.AgentSessionEnded(ok=True, agent_address=address)


async def _entitled(
    request: Request, exchange: RequestContext, operator: Operator
) -> Operator | AgentPrincipal:
    """Return the operator whose plan has attestations, else the request's agent.

    Raises `PlanRequired` without one, and like `credentials.agent`.
    """
    try:
        require(
            operator.plan,
            Feature.ATTESTATION,
            service(request, AttestationPlan).upgrade_url,
            "signal",
        )
    except PlanRequired:
        if not names_agent(exchange.headers):
            raise
        return await prove_agent(service(request, AgentIdentity), exchange)
    return operator
