"""Depositing credentials for evaluations. Beyond the specification's tables."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from assay.chains.model import Network
from assay.common.errors import InvalidRequest, Problem
from assay.evaluation import schemas_credentials as wire
from assay.evaluation.credentials import ServiceCredentials
from assay.evaluation.deposits import NewCredential
from assay.identity.auth import agent
from assay.identity.controllers import require_control
from assay.identity.model import AgentPrincipal
from assay.registries.schemas_parameters import AgentId, OnNetwork
from assay.registries.subject import Subject
from assay.registries.subjects import Subjects
from assay.server.route import read, route, service
from assay.server.schemas_page import Limit, Offset, PageCursor, part_of

router = APIRouter(tags=["Trust"])
_PATH = "/operator/agent/{agentId}/credentials"

CredentialId = Annotated[str, Path(alias="credentialId", max_length=64)]


@route(
    router,
    "POST",
    _PATH,
    operation="deposit_credential",
    auth=agent,
    answers=wire.CredentialResponse,
    body=wire.CredentialRequest,
    also=(409,),
    created=True,
)
async def deposit_credential(
    request: Request, agent_id: AgentId, network: OnNetwork
) -> wire.CredentialResponse:
    """Deposit a credential for a service of yours, replacing one for the same address.

    Visits to the agent send it there if the service refuses requests without it.
    """
    asked = read(wire.CredentialRequest, await request.body())
    subject = await _own(request, agent_id, network)
    new = NewCredential(asked.url, asked.place, asked.name, asked.value)
    return wire.credential(await service(request, ServiceCredentials).deposit(subject, new))


@route(
    router,
    "GET",
    _PATH,
    operation="list_credentials",
    auth=agent,
    answers=wire.CredentialsResponse,
)
async def list_credentials(
    request: Request,
    agent_id: AgentId,
    network: OnNetwork,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: PageCursor = None,
) -> wire.CredentialsResponse:
    """List the credentials deposited for your agent, without their values."""
    subject = await _own(request, agent_id, network)
    found = await service(request, ServiceCredentials).list(subject)
    return wire.credentials(part_of(found, limit, offset, cursor))


@route(
    router,
    "DELETE",
    _PATH + "/{credentialId}",
    operation="delete_credential",
    auth=agent,
    answers=wire.CredentialRemovedResponse,
)
async def delete_credential(
    request: Request, agent_id: AgentId, network: OnNetwork, credential_id: CredentialId
) -> wire.CredentialRemovedResponse:
    """Erase a deposited credential."""
    subject = await _own(request, agent_id, network)
    await service(request, ServiceCredentials).remove(subject, credential_id)
    return wire.CredentialRemovedResponse(ok=True, id=credential_id)


async def _own(request: Request, agent_id: str, network: Network) -> Subject:
    """Return the caller's agent. Raises `IdentityMismatch` for another's."""
    principal: AgentPrincipal = request.state.principal
    subject = await service(request, Subjects).find(network, agent_id)
    require_control(principal.address, subject, principal.contract)
    if subject.agent is None:
        message = "key agents have no services to enter"
        raise InvalidRequest(message, details=[Problem(("path", "agentId"), message)])
    return subject
