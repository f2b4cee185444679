"""Public reads of registered agents: list, report and history. Beyond the specification.

They read what the stores have: none of them evaluates an agent or makes an outgoing request.
"""

import re
from dataclasses import dataclass, replace
from typing import Annotated, Final, get_args

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from assay.accounts.auth import public
from assay.chains.model import Network
from assay.chains.networks import Networks
from assay.common.errors import InvalidRequest, Problem
from assay.evaluation import schemas_public as wire
from assay.evaluation.listing import PROTOCOLS, SEARCH_CHARS, AgentQuery, Sort, search_of
from assay.evaluation.model import Tier
from assay.evaluation.public_agents import PublicAccess, PublicAgents
from assay.registries.schemas_parameters import AgentId, OnNetwork
from assay.server.public_documents import public_document
from assay.server.route import route, service
from assay.server.schemas import PageCursor, ResponseModel, decode_cursor, unknown_cursor

router = APIRouter(tags=["Public reports"])

MAX_AGE_S: Final = 60
_TIERS: Final = get_args(Tier)
_PLACE = re.compile(r"(score|visited):([0-9]{1,17}):([0-9]{1,18})")
_SEQ = re.compile(r"seq:([0-9]{1,18})")

PageLimit = Annotated[int, Query(ge=1, le=100, description="The most rows of a page.")]


@dataclass(frozen=True, slots=True)
class ListFilters:
    """The parameters of a list, as they were sent."""

    q: str
    tier: str | None
    chain: str | None
    protocol: str | None
    sort: str
    limit: int
    cursor: str | None


def filters_of(  # noqa: PLR0913, PLR0917 - the parameters of a list
    q: Annotated[
        str,
        Query(
            max_length=SEARCH_CHARS,
            description="An agent's id, a wallet, a CAIP-10 account, a registry and id, a URL of a"
            " service, or how the name begins.",
        ),
    ] = "",
    tier: Annotated[str | None, Query(max_length=3, description="Only this letter grade.")] = None,
    chain: Annotated[
        str | None, Query(max_length=64, description="Only this chain, by its slug or CAIP-2.")
    ] = None,
    protocol: Annotated[
        str | None,
        Query(
            max_length=8,
            description="Only agents that speak `a2a`, `mcp`, `http`, `x402` or `grpc`.",
        ),
    ] = None,
    sort: Annotated[
        str,
        Query(pattern="^(score|visited)?$", description="`score` or `visited`; highest first."),
    ] = "score",
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> ListFilters:
    """Return the parameters of a list; what they mean is read by `query_of`."""
    return ListFilters(q, tier, chain, protocol, sort, limit, cursor)


FiltersAsked = Annotated[ListFilters, Depends(filters_of)]


def query_of(request: Request, asked: ListFilters) -> AgentQuery:
    """Return the query that parameters ask; an empty one counts as absent.

    Raises `InvalidRequest`.
    """
    networks = service(request, Networks)
    order: Sort = "visited" if asked.sort == "visited" else "score"
    return AgentQuery(
        search=search_of(asked.q, networks),
        tier=_one_of("tier", asked.tier, _TIERS),
        chain=networks.by_slug(asked.chain).slug if asked.chain else None,
        protocol=_one_of("protocol", asked.protocol, PROTOCOLS),
        sort=order,
        after=None if asked.cursor is None else _after(asked.cursor, order),
        limit=asked.limit,
    )


def _one_of(name: str, value: str | None, allowed: tuple[str, ...]) -> str | None:
    if not value:
        return None
    if value not in allowed:
        message = f"must be one of {', '.join(allowed)}"
        raise InvalidRequest(
            "The request is not valid; `details` says where.",
            details=[Problem(("query", name), message)],
        )
    return value


def _after(cursor: str, sort: Sort) -> tuple[int, int]:
    found = _PLACE.fullmatch(decode_cursor(cursor))
    if found is None or found[1] != sort:
        raise unknown_cursor()
    return int(found[2]), int(found[3])


@route(
    router,
    "GET",
    "/operator/agents",
    operation="list_agents",
    auth=public,
    answers=wire.ListedAgentsResponse,
    cached=True,
)
async def list_agents(request: Request, asked: FiltersAsked) -> Response:
    """List and search the registered agents that this service has evaluated.

    Key agents are never listed. Beyond the specification.
    """
    return _sent(request, await page_of(request, query_of(request, asked)))


async def page_of(request: Request, query: AgentQuery) -> wire.ListedAgentsResponse:
    """Return a page of the list. Raises `NotFound` where no list is published."""
    service(request, PublicAccess).require_lists()
    wanted = replace(query, limit=query.limit + 1)
    return wire.agents(await service(request, PublicAgents).page(wanted), query, query.limit)


@route(
    router,
    "GET",
    "/operator/agent/{agentId}/report",
    operation="agent_report",
    auth=public,
    answers=wire.PublicReportResponse,
    cached=True,
)
async def agent_report(request: Request, agent_id: AgentId, network: OnNetwork) -> Response:
    """Return the public report of a registered agent: its newest evaluation.

    Evaluates nothing: 404 with `agent_not_evaluated` for an agent that was never evaluated here.
    Beyond the specification.
    """
    return _sent(request, await report_of(request, network, agent_id))


async def report_of(request: Request, network: Network, agent_id: str) -> wire.PublicReportResponse:
    """Return an agent's report. Raises like `PublicAgents.report`, and where none is published."""
    service(request, PublicAccess).require_reports()
    return wire.report(await service(request, PublicAgents).report(network, agent_id))


@route(
    router,
    "GET",
    "/operator/agent/{agentId}/history",
    operation="agent_history",
    auth=public,
    answers=wire.AgentHistoryResponse,
    cached=True,
)
async def agent_history(
    request: Request,
    agent_id: AgentId,
    network: OnNetwork,
    limit: PageLimit = 20,
    cursor: PageCursor = None,
) -> Response:
    """Return the grades of a registered agent, newest first, with the reason of every change.

    Beyond the specification.
    """
    service(request, PublicAccess).require_reports()
    before = None
    if cursor is not None:
        place = _SEQ.fullmatch(decode_cursor(cursor))
        if place is None:
            raise unknown_cursor()
        before = int(place[1])
    return _sent(request, await history_of(request, network, agent_id, before, limit))


async def history_of(
    request: Request, network: Network, agent_id: str, before: int | None, limit: int
) -> wire.AgentHistoryResponse:
    """Return a page of an agent's history. Raises like `PublicAgents.history`."""
    found = await service(request, PublicAgents).history(network, agent_id, before, limit + 1)
    return wire.history(agent_id, network.slug, found, limit)


def _sent(request: Request, shown: ResponseModel) -> Response:
    body = shown.model_dump_json().encode()
    headers = service(request, PublicAccess).headers
    return public_document(request, body, "application/json", headers, max_age_s=MAX_AGE_S)
