"""Enrolling agents for visits, and depositing credentials for them. Beyond the specification.

Depositing credentials for evaluations. Beyond the specification's tables.

Enrolling agents for visits at random times. Beyond the specification's tables.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from assay.accounts.model import Operator, Scope
from assay.chains.model import Network
from assay.common.errors import InvalidRequest, Problem
from assay.evaluation import schemas_visits as wire
from assay.evaluation.credentials import NewCredential, ServiceCredentials
from assay.evaluation.schedule import EnrolmentHolder, Enrolments
from assay.identity.auth import agent, api_key_or_agent
from assay.identity.model import AgentPrincipal, require_control
from assay.registries.model import Subject, subject_key
from assay.registries.schemas_parameters import AgentId, OnNetwork
from assay.registries.subjects import Subjects, canonical_agent_id
from assay.server.route import read, route, service
from assay.server.schemas import Limit, Offset, PageCursor, part_of

router = APIRouter(tags=["Trust"])
_CREDENTIALS = "/operator/agent/{agentId}/credentials"

CredentialId = Annotated[
    str, Path(alias="credentialId", max_length=64, description="Id of the credential.")
]


@route(
    router,
    "POST",
    _CREDENTIALS,
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
    _CREDENTIALS,
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
    _CREDENTIALS + "/{credentialId}",
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


_VISITS = "/operator/agent/{agentId}/visits"


@route(
    router,
    "POST",
    _VISITS,
    operation="enrol_agent",
    auth=api_key_or_agent(Scope.EVALUATE),
    answers=wire.EnrolledResponse,
    also=(409,),
)
async def enrol_agent(
    request: Request, agent_id: AgentId, network: OnNetwork
) -> wire.EnrolledResponse:
    """Request regular visits at random times, as the agent's owner or an operator relying on it."""
    subject = await service(request, Subjects).find(network, agent_id)
    await service(request, Enrolments).enrol(_holder(request, subject), subject)
    return wire.EnrolledResponse(ok=True, agent_id=subject.agent_id, chain=network.slug)


@route(
    router,
    "DELETE",
    _VISITS,
    operation="withdraw_agent",
    auth=api_key_or_agent(Scope.EVALUATE),
    answers=wire.EnrolledResponse,
)
async def withdraw_agent(
    request: Request, agent_id: AgentId, network: OnNetwork
) -> wire.EnrolledResponse:
    """Withdraw your request for visits to the agent."""
    if isinstance(request.state.principal, Operator):
        named = canonical_agent_id(network, agent_id)
        key, holder = (
            subject_key(network, named),
            EnrolmentHolder("operator", request.state.principal.id),
        )
    else:
        subject = await service(request, Subjects).find(network, agent_id)
        named, key, holder = subject.agent_id, subject.key, _holder(request, subject)
    await service(request, Enrolments).withdraw(holder, key)
    return wire.EnrolledResponse(ok=True, agent_id=named, chain=network.slug)


@route(
    router,
    "GET",
    "/operator/visits",
    operation="list_enrolments",
    auth=api_key_or_agent(Scope.EVALUATE),
    answers=wire.EnrolmentsResponse,
)
async def list_enrolments(
    request: Request, limit: Limit = 100, offset: Offset = 0, cursor: PageCursor = None
) -> wire.EnrolmentsResponse:
    """List the agents that the caller enrolled."""
    principal: Operator | AgentPrincipal = request.state.principal
    holder = (
        EnrolmentHolder("operator", principal.id)
        if isinstance(principal, Operator)
        else EnrolmentHolder("owner", principal.address)
    )
    found = await service(request, Enrolments).list(holder)
    return wire.enrolments(part_of(list(found), limit, offset, cursor))


def _holder(request: Request, subject: Subject) -> EnrolmentHolder:
    """Return the requesting party.

    Raises `IdentityMismatch` for an agent that is not the caller's.
    """
    principal: Operator | AgentPrincipal = request.state.principal
    if subject.agent is None:
        message = "key agents have no services to visit"
        raise InvalidRequest(message, details=[Problem(("path", "agentId"), message)])
    if isinstance(principal, Operator):
        return EnrolmentHolder("operator", principal.id)
    require_control(principal.address, subject, principal.contract)
    return EnrolmentHolder("owner", subject.agent.owner)
