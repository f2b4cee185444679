"""Calls made for operators: the Pro plan's proxy, and the playground.

Source: interface.md#proxy-and-playground.
"""

from fastapi import APIRouter, Request

from assay.accounts.auth import api_key, dashboard_token
from assay.accounts.model import Operator, Scope
from assay.chains.networks import Networks
from assay.playground import schemas as wire
from assay.playground.service import Playground, Proxy
from assay.registries.schemas_parameters import AgentId, OnNetwork
from assay.server.request_context import exchange_of
from assay.server.route import read, route, service

router = APIRouter(tags=["Proxy and playground"])


@route(
    router,
    "POST",
    "/operator/proxy/{agentId}",
    operation="proxy",
    auth=api_key(Scope.PROXY),
    body=wire.ProxyRequest,
    answers=wire.ProxyResponse,
    also=(502,),
)
async def proxy(request: Request, agent_id: AgentId, network: OnNetwork) -> wire.ProxyResponse:
    """Call a target through guarded egress, with the agent's grade beside it. Pro plan only."""
    asked = read(wire.ProxyRequest, await request.body())
    found = await service(request, Proxy).call(_operator(request), network, agent_id, asked.call())
    return wire.proxied(found)


@route(
    router,
    "POST",
    "/operator/playground",
    operation="playground",
    auth=dashboard_token,
    body=wire.PlaygroundRequest,
    answers=wire.PlaygroundResponse,
    also=(502,),
)
async def playground(request: Request) -> wire.PlaygroundResponse:
    """Try one of your wrappers, or any address, as an agent would; nobody is charged."""
    asked = read(wire.PlaygroundRequest, await request.body())
    networks, tried = service(request, Networks), service(request, Playground)
    slug = networks.default.slug if asked.chain is None else asked.chain
    network = networks.by_slug(slug, where="body")
    who = _operator(request).id
    if asked.dry_run:
        return wire.dry(await tried.dry_run(who, network, asked.trial()))
    found = await tried.call(who, network, asked.trial())
    return wire.tried(found, exchange_of(request.scope).request_id)


def _operator(request: Request) -> Operator:
    """Return the operator of the declared credential."""
    return request.state.principal
