"""Wrapper configs: the operator's own endpoints (spec 2.14, 4.6)."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from assay.accounts.model import Operator
from assay.web.credentials import Credential
from assay.web.route import actor_of, app_of, read, route
from assay.web.wire import endpoints as wire

router = APIRouter(tags=["Wrappers"])


@route(
    router,
    "GET",
    "/operator/endpoints",
    credential=Credential.OP_KEY_OR_JWT,
    answers=list[wire.WarnedEndpointShape],
)
async def list_endpoints(request: Request) -> list[wire.WarnedEndpointShape]:
    """The account's wrappers, newest first, deactivated ones included.

    `warnings` are about price, network and payee of active ones; pairs are warned of when made.
    """
    endpoints = app_of(request).endpoints
    configs = await endpoints.list(_operator(request).id)
    return [wire.warned(config, await endpoints.sale_warnings(config)) for config in configs]


@route(
    router,
    "POST",
    "/operator/endpoints",
    credential=Credential.OP_KEY_OR_JWT,
    body=wire.EndpointBody,
    answers=wire.WarnedEndpointShape,
    also=(409,),
)
async def create_endpoint(request: Request) -> wire.WarnedEndpointShape:
    """A new wrapper, at once. Callers use `/wrap/{operatorId}` and its path."""
    text = await request.body()
    asked = read(wire.EndpointBody, text).new(text)
    endpoints = app_of(request).endpoints
    config = await endpoints.create(_operator(request).id, asked, actor_of(request))
    return wire.warned(config, await endpoints.warnings(config))


@route(
    router,
    "DELETE",
    "/operator/endpoints/{endpointId}",
    credential=Credential.OP_KEY_OR_JWT,
    answers=wire.Deactivated,
)
async def deactivate_endpoint(
    request: Request, endpoint_id: Annotated[str, Path(alias="endpointId", max_length=64)]
) -> wire.Deactivated:
    """Deactivate a wrapper, at once."""
    endpoints = app_of(request).endpoints
    await endpoints.deactivate(_operator(request).id, endpoint_id, actor_of(request))
    return wire.Deactivated(ok=True, id=endpoint_id, active=False)


def _operator(request: Request) -> Operator:
    """Who the declared credential found."""
    return request.state.principal
