"""Enrolling agents for visits at random times. Beyond the specification's tables."""

from fastapi import APIRouter, Request

from assay.accounts.model import Operator, Scope
from assay.common.errors import InvalidRequest, Problem
from assay.evaluation import schemas_visits as wire
from assay.evaluation.enrolment import EnrolmentHolder, Enrolments
from assay.identity.auth import api_key_or_agent
from assay.identity.controllers import require_control
from assay.identity.model import AgentPrincipal
from assay.registries.schemas_parameters import AgentId, OnNetwork
from assay.registries.subject import Subject, subject_key
from assay.registries.subjects import Subjects, canonical_agent_id
from assay.server.route import route, service
from assay.server.schemas_page import Limit, Offset, PageCursor, part_of

router = APIRouter(tags=["Trust"])
_PATH = "/operator/agent/{agentId}/visits"


@route(
    router,
    "POST",
    _PATH,
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
    _PATH,
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
