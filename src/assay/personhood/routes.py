"""Proofs of personhood (interface.md#personhood)."""

from fastapi import APIRouter, Request

from assay.accounts.auth import public
from assay.personhood import schemas as wire
from assay.personhood.service import Personhoods
from assay.registries.schemas_parameters import AgentId, OnNetwork
from assay.server.route import read, route, service

router = APIRouter(tags=["Personhood"])


@route(
    router,
    "POST",
    "/operator/personhood/verify/{agentId}",
    operation="verify_personhood",
    auth=public,
    body=wire.ProofRequest,
    answers=wire.PersonhoodVerifiedResponse,
    also=(409,),
)
async def verify_personhood(
    request: Request, agent_id: AgentId, network: OnNetwork
) -> wire.PersonhoodVerifiedResponse:
    """Prove that a human backs the agent; the bonus applies from now on."""
    body = read(wire.ProofRequest, await request.body())
    found = await service(request, Personhoods).verify(network, agent_id, body.parsed())
    return wire.verified(found)


@route(
    router,
    "GET",
    "/operator/personhood/status/{agentId}",
    operation="personhood_status",
    auth=public,
    answers=wire.StatusResponse,
)
async def personhood_status(
    request: Request, agent_id: AgentId, network: OnNetwork
) -> wire.StatusResponse:
    """Show whether a human has proven to back the agent."""
    _, found = await service(request, Personhoods).find(network, agent_id)
    return wire.status(found)


@route(
    router,
    "GET",
    "/operator/personhood/profile/{agentId}",
    operation="personhood_profile",
    auth=public,
    answers=wire.PersonhoodProfileResponse,
)
async def personhood_profile(
    request: Request, agent_id: AgentId, network: OnNetwork
) -> wire.PersonhoodProfileResponse:
    """Return the agent, and the human who backs it."""
    canonical, found = await service(request, Personhoods).find(network, agent_id)
    return wire.PersonhoodProfileResponse(agent_id=canonical, personhood=wire.status(found))
